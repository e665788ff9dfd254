"""A command's standard streams: pipes or a pseudo-terminal, the server's ends and the child's."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from typing import TypeAlias

from toolserver.processes.command import Terminal

GIVEN = 10
"""Descriptors below this are left free for the numbers that a child gets."""

ControllingTerminal: TypeAlias = tuple[int, bytes] | None
"""A number in the child and the path of the terminal to open there as the controlling one; None: there is none."""


class Stdio:
    """The descriptors of a command's streams: the server's ends, and those of the child as pairs (here, there)."""

    __slots__ = ("_lent", "child_fds", "errors", "input", "output", "pipe")

    def __init__(self) -> None:
        self.input = self.output = self.errors = -1
        """The server's ends; they do not block. -1: there is none, or it was closed."""
        self.pipe = 0
        """The inode of the pipe of the output; 0: a terminal."""
        self.child_fds: list[tuple[int, int]] = []
        self._lent: list[int] = []

    def open(
        self, null: int, terminal: Terminal | None, takes_input: bool, *, own_terminal: bool
    ) -> ControllingTerminal:
        """Open all of them; return the terminal that the child opens as its controlling one.

        `null` is the input of a command that takes none. A program with `own_terminal` gets the terminal as its input
        in any case, and makes it the controlling one itself.
        """
        if terminal is not None:
            return self._open_terminal(null, terminal, takes_input, own_terminal)
        self.output = self._pipe(1)
        self.pipe = os.fstat(self.output).st_ino
        self.errors = self._pipe(2)
        if takes_input:
            read, self.input = os.pipe2(os.O_CLOEXEC)
            self._lend(read, 0)
            os.set_blocking(self.input, False)
        else:
            self.child_fds.append((null, 0))
        return None

    def _open_terminal(
        self, null: int, terminal: Terminal, takes_input: bool, own_terminal: bool
    ) -> ControllingTerminal:
        self.output, slave = os.openpty()
        self._lent.append(slave)
        os.set_blocking(self.output, False)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", terminal.rows, terminal.cols, 0, 0))
        name = os.ttyname(slave).encode()
        slave = self._lend(os.dup(slave), 1, 2)
        if takes_input:
            self.input = os.dup(self.output)
        self.child_fds.append((slave if takes_input or own_terminal else null, 0))
        if own_terminal:
            return None
        return (0 if takes_input else 2), name

    def _pipe(self, number: int) -> int:
        read, write = os.pipe2(os.O_CLOEXEC)
        try:
            self._lend(write, number)
        except OSError:
            os.close(read)
            raise
        os.set_blocking(read, False)
        return read

    def _lend(self, fd: int, *numbers: int) -> int:
        fd = above_given(fd)
        self._lent.append(fd)
        self.child_fds += [(fd, number) for number in numbers]
        return fd

    def close_child_ends(self) -> None:
        """Close the child's ends here, once it has started or failed to."""
        for fd in self._lent:
            os.close(fd)
        self._lent.clear()

    def close(self) -> None:
        """Close the server's ends."""
        for fd in (self.input, self.output, self.errors):
            if fd >= 0:
                os.close(fd)
        self.input = self.output = self.errors = -1


def above_given(fd: int) -> int:
    """Return a descriptor moved to a number that no child gets; takes over `fd`."""
    if fd >= GIVEN:
        return fd
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, GIVEN)
    finally:
        os.close(fd)
