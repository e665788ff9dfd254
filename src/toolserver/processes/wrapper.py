"""How a command is wrapped: the base runs it as it is, the capsule overrides every method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from toolserver.processes.child import Child
from toolserver.processes.command import Command
from toolserver.processes.program import Program
from toolserver.processes.stdio import Stdio
from toolserver.processes.working_directory import WorkingDirectory


@dataclass(slots=True)
class Launch:
    """One start of a command: what is asked for, and the descriptors opened for it."""

    command: Command
    directory: WorkingDirectory
    takes_input: bool
    null: int
    """A descriptor of /dev/null, for reading."""
    stdio: Stdio = field(default_factory=Stdio)
    status: int = -1
    """Where a wrapper reads what becomes of the command; -1: no wrapper tells."""
    lent: list[int] = field(default_factory=list)
    """Descriptors for the child alone, besides those of its streams; closed here once it has started or failed."""


class Wrapper:
    """Runs commands unwrapped."""

    outlives_server = True
    """Whether a child may outlive a killed server, so that its start has to be noted."""

    def home(self, directory: WorkingDirectory) -> bytes | None:
        """Return the HOME of commands in this directory; None: the server's."""
        return None

    def wrap(self, program: Program, launch: Launch) -> Program:
        """Return what is executed in place of `program`; adds to `launch` what has to be closed.

        Raises ToolError for what could not be executed when wrapped.
        """
        return program

    def child(self, pid: int, launch: Launch, forget: Callable[[], None] | None) -> Child:
        """Return a started process as a child, which takes over `launch.status`. Raises OSError."""
        return Child(pid, forget)
