"""Host headers that no page of another site can send (specification, section 2, Trees).

A page whose own name was made to lead to this machine asks with that name and could read the answer as its own.
"""

from __future__ import annotations

import ipaddress
import re

_HOST = re.compile(rb"(?P<name>\[[^\]]{1,253}\]|[^:\[\]]{1,253})(:[0-9]{0,5})?")


class Hosts:
    """The names of a server: localhost, any IP address, and the host it was told to listen on."""

    __slots__ = ("_names",)

    def __init__(self, host: str) -> None:
        self._names = frozenset(("localhost", host.lower()))

    def include(self, header: bytes | None) -> bool:
        """Whether a Host header names the server. None is a request without one, which no browser sends."""
        if header is None:
            return True
        found = _HOST.fullmatch(header)
        if found is None:
            return False
        name = found["name"].decode("latin-1").lower()
        return name in self._names or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        if name.startswith("["):
            ipaddress.IPv6Address(name[1:-1])
        else:
            ipaddress.IPv4Address(name)
    except ValueError:
        return False
    return True
