"""Which Host headers name the server."""

from __future__ import annotations

import pytest

from toolserver.http.hosts import Hosts

HOSTS = Hosts("Box.example")


@pytest.mark.parametrize(
    "header",
    [
        b"localhost",
        b"LocalHost:7788",
        b"localhost:",
        b"127.0.0.1",
        b"10.1.2.3:80",
        b"[::1]",
        b"[::1]:7788",
        b"[fe80::1%25eth0]:1",
        b"box.example",
        b"BOX.example:7788",
        None,
    ],
)
def test_named(header: bytes | None) -> None:
    assert HOSTS.include(header)


@pytest.mark.parametrize(
    "header",
    [
        b"evil.example",
        b"evil.example:7788",
        b"localhost.evil.example",
        b"127.0.0.1.evil.example",
        b"evil.example:80:80",
        b"127.0.0.1:80@evil.example",
        b"127.0.0.1/",
        b"sub.box.example",
        b"localhost, evil.example",
        b"localhost evil.example",
        b"[localhost]",
        b"[box.example]",
        b"[127.0.0.1]",
        b"[::1",
        b"::1",
        b"[]",
        b"",
        b":7788",
        b"1",
        b"\xff",
        b"x" * 1000,
    ],
)
def test_not_named(header: bytes) -> None:
    assert not HOSTS.include(header)


def test_a_server_on_every_address_has_no_name_of_its_own() -> None:
    assert not Hosts("").include(b"")
    assert not Hosts("").include(b":80")
    assert Hosts("::1").include(b"[::1]:80")
