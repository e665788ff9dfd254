"""A tool (name, description, arguments, handler) and what its handler is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from toolserver.calls.arguments import Arguments
from toolserver.calls.client import Client
from toolserver.calls.freed_memory import FreedMemory
from toolserver.calls.large_answers import AnswerMemory
from toolserver.git.views import Views
from toolserver.processes.table import ProcessTable
from toolserver.search.engine import SearchEngine
from toolserver.state.journal import Journal
from toolserver.state.tasks import Tasks
from toolserver.watches.table import WatchTable
from toolserver.workspace.offload import Readers
from toolserver.workspace.paths import Tree
from toolserver.workspace.root import Workspace
from toolserver.writing.upload import Uploads
from toolserver.writing.writer import Writer

A = TypeVar("A", bound=Arguments)
Answer = dict[str, Any]
"""A tool's answer: what orjson can write, `orjson.Fragment` included."""

Pieces = list[bytes | memoryview]
"""JSON in pieces, in their order."""


@dataclass(frozen=True, slots=True)
class Written:
    """A large answer that is JSON already, in pieces that are sent one after the other and dropped as they go."""

    pieces: Pieces

    @property
    def size(self) -> int:
        return sum(map(len, self.pieces))


@dataclass(frozen=True, slots=True)
class Fence:
    """What confines commands, as GET /tools tells it."""

    capsule: Literal["active", "unavailable"] = "unavailable"
    network: Literal["fenced", "open"] = "open"


@dataclass(frozen=True, slots=True)
class Services:
    """What all calls of a server share. `app.py` makes it."""

    workspace: Workspace
    writer: Writer
    processes: ProcessTable
    watches: WatchTable
    search: SearchEngine
    views: Views
    uploads: Uploads
    tasks: Tasks
    journal: Journal
    fence: Fence = Fence()
    answer_memory: AnswerMemory = field(default_factory=AnswerMemory)
    freed_memory: FreedMemory = field(default_factory=FreedMemory)
    readers: Readers = field(default_factory=Readers)


@dataclass(frozen=True, slots=True)
class Call:
    """One call: its tree, which stays open until the answer is made, the server's services and the client.

    `client.on_leave(callback)` calls back when the client leaves; see `Client`.
    """

    tree: Tree
    services: Services
    client: Client = field(default_factory=Client)


@dataclass(frozen=True, slots=True)
class Told:
    """What the journal tells of one call, secrets not yet taken out."""

    summary: str
    paths: list[str] = field(default_factory=list)
    outcome: str = "ok"
    secrets: tuple[str, ...] = ()
    """Texts that are secret wherever they stand."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """One tool. `run` returns the body of a 200 or raises ToolError."""

    name: str
    description: str
    arguments: type[A]
    run: Callable[[Call, A], Awaitable[Answer | Written]]
    large: bool = False
    """Whether a call may take and free large buffers, whatever the size of its body and its answer."""
    told: Callable[[Call, A, Answer | None], Told | None] | None = None
    """What the journal tells of a call, from its arguments and its answer (None: it failed); None: nothing."""
