"""The ends of a command's streams: pipes or a terminal, ours and those that it is given."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from toolserver.processes.command import Terminal

GIVEN = 10
"""Descriptors below this are left free for the numbers that a child gets."""


class Ends:
    """The descriptors of a command's streams: ours, and those (here, there) that it gets."""

    __slots__ = ("_given", "errors", "input", "output", "pipe", "theirs")

    def __init__(self) -> None:
        self.input = self.output = self.errors = -1
        self.pipe = 0
        """The inode of the pipe of its output; 0: a terminal."""
        self.theirs: list[tuple[int, int]] = []
        self._given: list[int] = []

    def open(
        self, null: int, terminal: Terminal | None, takes_input: bool, *, by_itself: bool
    ) -> tuple[int, bytes] | None:
        """Open all of them; ours do not block. Answer the terminal to open as the controlling one, if there is one.

        With `by_itself` the program gets the terminal as its input, too, whatever it takes, and sees to that.
        """
        if terminal is not None:
            return self._open_terminal(null, terminal, takes_input, by_itself)
        self.output = self._pipe(1)
        self.pipe = os.fstat(self.output).st_ino
        self.errors = self._pipe(2)
        if takes_input:
            read, self.input = os.pipe2(os.O_CLOEXEC)
            self._give(read, 0)
            os.set_blocking(self.input, False)
        else:
            self.theirs.append((null, 0))
        return None

    def _open_terminal(
        self, null: int, terminal: Terminal, takes_input: bool, by_itself: bool
    ) -> tuple[int, bytes] | None:
        self.output, slave = os.openpty()
        self._given.append(slave)
        os.set_blocking(self.output, False)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", terminal.rows, terminal.cols, 0, 0))
        name = os.ttyname(slave).encode()
        slave = self._give(os.dup(slave), 1, 2)
        if takes_input:
            self.input = os.dup(self.output)
        self.theirs.append((slave if takes_input or by_itself else null, 0))
        if by_itself:
            return None
        return (0 if takes_input else 2), name

    def _pipe(self, number: int) -> int:
        read, write = os.pipe2(os.O_CLOEXEC)
        self._give(write, number)
        os.set_blocking(read, False)
        return read

    def _give(self, fd: int, *numbers: int) -> int:
        fd = high(fd)
        self._given.append(fd)
        self.theirs += [(fd, number) for number in numbers]
        return fd

    def close_theirs(self) -> None:
        for fd in self._given:
            os.close(fd)
        self._given.clear()

    def close(self) -> None:
        for fd in (self.input, self.output, self.errors):
            if fd >= 0:
                os.close(fd)
        self.input = self.output = self.errors = -1


def high(fd: int) -> int:
    """Return the descriptor, moved out of the way of the numbers that a child gets."""
    if fd >= GIVEN:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, GIVEN)
    os.close(fd)
    return moved
