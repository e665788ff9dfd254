"""The settings of a server, from flags and environment variables (specification, section 1)."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolserver.log import LEVELS


class StartError(Exception):
    """The command cannot start. The text is one line; the exit status is 2."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The resolved settings of `toolserver serve`."""

    root: str
    token_file: str
    """Empty: the platform's, else the root's own."""
    host: str = "127.0.0.1"
    port: int = 7788
    uds: str = ""
    """Path of a Unix socket that is served instead of host and port."""
    capsule: Literal["auto", "off", "require"] = "auto"
    network: Literal["open", "fenced"] = "open"
    network_fenced: bool = False
    """The platform fences the network, whatever `network` says."""
    bind_ro: tuple[str, ...] = ()
    """Further paths that commands see, read-only."""
    idle_stop: float = 0.0
    """Seconds without activity after which the server stops; 0 is never."""
    workspace_id: str = ""
    container_cli: str = ""
    log_level: str = "info"
    allow_origin: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag, `--NAME`, and its variable, `TOOLSERVER_NAME`."""

    name: str
    help: str
    default: Any = ""
    parse: Callable[[str], Any] = str
    """Raises ValueError with what was expected."""
    metavar: str = "TEXT"
    repeat: bool = False
    """It may be given several times. The value is a tuple; the variable holds values separated by white space."""

    @property
    def field(self) -> str:
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        return "TOOLSERVER_" + self.field.upper()


def one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return parse


def port_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise ValueError("a number from 0 to 65535")
    return int(text)


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError("a number of seconds, 0 or more")
    return number


HOST = Flag("host", "address to listen on", "127.0.0.1", metavar="HOST")
PORT = Flag("port", "port to listen on; 0 takes a free one", 7788, port_number, "PORT")
UDS = Flag("uds", "Unix socket, in place of host and port", metavar="PATH")
TOKEN_FILE = Flag("token-file", "file that holds the token", metavar="FILE")

SERVE: tuple[Flag, ...] = (
    HOST,
    PORT,
    UDS,
    TOKEN_FILE,
    Flag("capsule", "confine commands: auto, off or require", "auto", one_of("auto", "off", "require"), "WHEN"),
    Flag("bind-ro", "one more place that commands see, read-only", (), metavar="PATH", repeat=True),
    Flag("network", "network of commands: open or fenced", "open", one_of("open", "fenced"), "WHICH"),
    Flag("idle-stop", "stop after so many seconds without activity", 0.0, seconds, "SECONDS"),
    Flag("workspace-id", "id that tells this workspace from a copy of it", metavar="ID"),
    Flag("container-cli", "command that builds and pushes containers", metavar="CMD"),
    Flag("log-level", f"least level of log lines: {', '.join(LEVELS)}", "info", one_of(*LEVELS), "LEVEL"),
    Flag("allow-origin", "origin whose pages may call the server", (), metavar="URL", repeat=True),
)
CALL: tuple[Flag, ...] = (HOST, PORT, UDS, TOKEN_FILE, Flag("tree", "working directory of the call", metavar="NAME"))


def add_flags(parser: argparse.ArgumentParser, flags: tuple[Flag, ...]) -> None:
    """Declare the flags. Their values stay text until `resolve`."""
    for flag in flags:
        action = "append" if flag.repeat else "store"
        text = f"{flag.help} [{flag.variable}]".replace("%", "%%")
        parser.add_argument(f"--{flag.name}", action=action, metavar=flag.metavar, help=text)


def resolve(flags: tuple[Flag, ...], given: argparse.Namespace, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the value of each flag by its field: the flag's, else its variable's, else the default.

    An empty variable counts as not set. Raises StartError that names the flag or the variable.
    """
    return {flag.field: _value(flag, getattr(given, flag.field), environ.get(flag.variable, "")) for flag in flags}


def _value(flag: Flag, given: Any, variable: str) -> Any:
    if given is not None:
        source, texts = f"--{flag.name}", given if flag.repeat else [given]
    elif variable.strip():
        source, texts = flag.variable, variable.split() if flag.repeat else [variable]
    else:
        return flag.default
    try:
        values = tuple(flag.parse(text) for text in texts)
    except ValueError as error:
        raise StartError(f"{source}: expected {error}, not {' '.join(texts)!r}") from error
    return values if flag.repeat else values[0]


def serve_settings(given: argparse.Namespace, environ: Mapping[str, str]) -> Settings:
    """Resolve the settings of `toolserver serve`. Raises StartError."""
    fenced = environ.get("TOOLSERVER_NETWORK_FENCED", "") == "1"
    return Settings(root=given.root, network_fenced=fenced, **resolve(SERVE, given, environ))
