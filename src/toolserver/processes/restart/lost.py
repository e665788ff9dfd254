"""A process of an earlier run of the server that does not run now, and is listed for a while."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

CANNOT_START = 127
"""The exit code told of a command that could not be executed, a shell's."""


@dataclass(frozen=True, slots=True)
class Former:
    """What is left of a process: it was not brought back, or (`failed` tells why) it could not be started again."""

    id: str
    tree: str
    shown: str
    """Its command as it is listed."""
    restarted_at: datetime
    """When the server was started that did not bring it back."""
    started_at: datetime | None = None
    failed: str | None = None
    restarts: int = 0

    @property
    def state(self) -> str:
        return "killed_by_restart" if self.failed is None else "exited"

    @property
    def hint(self) -> str:
        """What a caller who still has the id is told."""
        return (
            f"The server was started again at {moment(self.restarted_at)}, which ended this process; it was not "
            "brought back and its output is gone. Run the command again with exec if you need it."
        )


def moment(at: datetime) -> str:
    """Return RFC 3339 in UTC, with milliseconds."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
