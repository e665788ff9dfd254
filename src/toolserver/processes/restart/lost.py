"""A process of an earlier run of the server that does not run now, and is listed for a while."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

CANNOT_START = 127
"""The exit code of a command that could not be executed, as a shell has it."""


@dataclass(frozen=True, slots=True)
class LostProcess:
    """A process that was not started again, or (`failed` tells why) could not be."""

    id: str
    tree: str
    shown: str
    """Its command as it is listed."""
    restarted_at: datetime
    """When the server that did not start it again was started."""
    started_at: datetime | None = None
    failed: str | None = None
    restarts: int = 0

    @property
    def state(self) -> str:
        return "killed_by_restart" if self.failed is None else "exited"

    @property
    def hint(self) -> str:
        """The hint for a caller that still has the id."""
        return (
            f"The server was started again at {moment(self.restarted_at)}, which ended this process; it was not "
            "brought back and its output is gone. Run the command again with exec if you need it."
        )


def moment(at: datetime) -> str:
    """Return RFC 3339 in UTC, with milliseconds."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
