"""Selects what exec returns of a job's output: all that is kept, its first or last lines, or almost nothing."""

from __future__ import annotations

from dataclasses import dataclass

from toolserver.processes.output import Output

ON_FAILURE = 20
"""Lines of stderr that `quiet` leaves of a command that failed."""


@dataclass(frozen=True, slots=True)
class Window:
    """Numbers of lines kept at the beginning and the end; both None: all lines."""

    head: int | None = None
    tail: int | None = None


@dataclass(frozen=True, slots=True)
class Windows:
    """The window of a job; `quiet` takes precedence over it."""

    lines: Window
    quiet: bool = False

    def cut(self, stdout: Output, stderr: Output, *, success: bool) -> tuple[bytes, bytes, bool]:
        """Return what is kept of both streams, and whether anything was left out."""
        nothing = Window(0, None)
        of_out = nothing if self.quiet else self.lines
        of_err = (nothing if success else Window(None, ON_FAILURE)) if self.quiet else self.lines
        out, less = cut(stdout, of_out)
        err, less_err = cut(stderr, of_err)
        return out, err, less or less_err


def cut(output: Output, window: Window) -> tuple[bytes, bool]:
    """Return the lines inside a window, their ends kept, and whether lines were left out.

    The first lines count from the first byte that was written, the last ones from what is still held.
    """
    ring = output.ring
    if window.head is None and window.tail is None:
        return ring.slice(0, ring.total), False
    if window.head is None:
        begin = ring.last_lines(window.tail or 0)
        return ring.slice(begin, ring.total), begin > ring.start
    head = output.head if output.head is not None else ring.slice(0, ring.after_lines(window.head))
    begin = ring.total if window.tail is None else ring.last_lines(window.tail)
    if len(head) >= begin:
        return head + ring.slice(len(head), ring.total), False
    return head + ring.slice(begin, ring.total), True
