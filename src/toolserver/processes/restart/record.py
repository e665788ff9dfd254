"""The content of `.kd/processes.json`: its types, reading with checks, writing (specification, section 9).

Commands that run unwrapped can write the file, so nothing in it is trusted: its shape is checked here, and commands and
directories are checked like those of a call when they are used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from toolserver.processes.command import Command, Terminal, checked
from toolserver.processes.process import Process
from toolserver.workspace.paths import shown

RECORD_FILE = b"processes.json"

Id = Annotated[str, Meta(pattern=r"\Ap[1-9][0-9]{0,14}\Z")]
TreeName = Annotated[str, Meta(pattern=r"\A[a-z0-9-]{1,32}\Z")]
Count = Annotated[int, Meta(ge=0, lt=10**15)]
Side = Annotated[int, Meta(ge=0, le=65_535)]
Time = Annotated[datetime, Meta(tz=True)]


class Corrupt(Exception):
    """The record is not one that a server has written. The text says what is wrong."""


class Size(msgspec.Struct, frozen=True):
    """The size of a terminal."""

    cols: Side
    rows: Side


class Running(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that was running when this was written."""

    id: Id
    tree: TreeName
    cmd: str | list[str]
    cwd: str
    """Relative to the tree."""
    cwd_b64: bytes | None = None
    """The same where it is not UTF-8, as base64 in the file."""
    env: dict[str, str]
    pty: Size | None
    relaunch: bool
    detached: bool
    """False: a job that was promoted."""
    restarts: Count
    started_at: Time

    def command(self) -> Command:
        """Return the command, checked as a call's. Raises BadArgument."""
        terminal = None if self.pty is None else Terminal(self.pty.cols, self.pty.rows)
        return checked(self.cmd, self.env, terminal)

    @property
    def directory(self) -> bytes:
        """The directory it ran in, as it stands in the record."""
        return self.cwd.encode() if self.cwd_b64 is None else self.cwd_b64

    @property
    def shown(self) -> str:
        """The command as it is listed."""
        return Command(self.cmd if isinstance(self.cmd, str) else tuple(self.cmd), {}).shown


class Killed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A process that a restart of the server ended."""

    id: Id
    tree: TreeName
    cmd: str
    restarted_at: Time
    started_at: Time | None = None
    """None: written by an older server."""


class ProcessRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file as it is read."""

    version: Literal[1]
    workspace: str
    last_process: Count
    last_watch: Count
    running: list[Running]
    killed: list[Killed]

    @property
    def ids(self) -> list[str]:
        """The ids of all processes in it."""
        return [entry.id for entry in self.running] + [entry.id for entry in self.killed]


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """The whole file as it is written, entries encoded already."""

    version: int
    workspace: str
    last_process: int
    last_watch: int
    running: list[msgspec.Raw]
    killed: list[Killed]


_decoder = msgspec.json.Decoder(ProcessRecord)
_encoder = msgspec.json.Encoder()


def number(name: str) -> int:
    """Return the number of an id."""
    return int(name[1:])


def decode(data: bytes) -> ProcessRecord:
    """Decode a record. Raises Corrupt."""
    try:
        record = _decoder.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Corrupt(str(error)) from error
    names = record.ids
    if len(set(names)) < len(names):
        raise Corrupt("an id stands in it twice")
    return record


def salvage(data: bytes) -> ProcessRecord:
    """Return a record with only the highest ids found in a corrupt one, since ids are never used again."""
    processes = re.findall(rb'"last_process": ?(\d{1,15})\b|"p(\d{1,15})"', data)
    watches = re.findall(rb'"last_watch": ?(\d{1,15})\b', data)
    return ProcessRecord(
        version=1,
        workspace="",
        last_process=max((int(one or other) for one, other in processes), default=0),
        last_watch=max(map(int, watches), default=0),
        running=[],
        killed=[],
    )


def encode_running(entry: Running) -> msgspec.Raw:
    """Encode one entry, which does not change as long as the process runs."""
    return msgspec.Raw(_encoder.encode(entry))


def encode(
    workspace: str, last_process: int, last_watch: int, running: Iterable[msgspec.Raw], killed: Iterable[Killed]
) -> bytes:
    """Encode a record."""
    whole = _Written(
        version=1,
        workspace=workspace,
        last_process=last_process,
        last_watch=last_watch,
        running=list(running),
        killed=list(killed),
    )
    return _encoder.encode(whole)


def entry_of(process: Process) -> Running:
    """Return the entry of a process of this server."""
    assert process.id is not None
    command = process.command
    cwd = shown(process.cwd)
    return Running(
        id=process.id,
        tree=process.tree,
        cmd=command.cmd if isinstance(command.cmd, str) else list(command.cmd),
        cwd=cwd["path"],
        cwd_b64=process.cwd if "path_b64" in cwd else None,
        env=dict(command.env),
        pty=None if command.terminal is None else Size(command.terminal.cols, command.terminal.rows),
        relaunch=process.relaunch,
        detached=process.detached,
        restarts=process.restarts,
        started_at=process.started_at,
    )
