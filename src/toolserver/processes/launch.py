"""From a command to a running child: the environment, the program that is really executed, its descriptors."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from toolserver._fast.spawn import spawn
from toolserver.errors import BadArgument, ToolError
from toolserver.processes.children import Children
from toolserver.processes.command import Command, Terminal
from toolserver.processes.group import members
from toolserver.processes.procfs import ticks

SCRIPT_FD = 9
"""Where a shell finds the text of its command; one digit, since POSIX shells redirect no other number."""
SHORT = 4096
"""Bytes of a shell's text that are handed over in a variable; longer ones in a file in memory, which takes longer."""
DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
_TRY_NEXT = (errno.ENOENT, errno.EACCES, errno.ENOTDIR)


@dataclass(frozen=True, slots=True)
class Where:
    """The directory a command starts in: the tree's name and root, `cwd` link-free and relative to it, open as `fd`."""

    tree: str
    root: bytes
    cwd: bytes
    fd: int

    @property
    def path(self) -> bytes:
        """The absolute path of the directory."""
        return os.path.join(self.root, self.cwd) if self.cwd else self.root


@dataclass(frozen=True, slots=True)
class Program:
    """What is executed: `argv[0]`, looked for on the PATH of `env`; `passed` are (here, there) numbers."""

    argv: tuple[bytes, ...]
    env: Mapping[bytes, bytes]
    passed: tuple[tuple[int, int], ...] = ()
    own_terminal: bool = False
    """Whether it makes its standard input, a terminal then, the controlling one by itself."""


class Child:
    """A child process and its group. After the exit its holder calls `reap` once; until then its pid is its own."""

    __slots__ = ("_notes", "pid", "pidfd")

    def __init__(self, pid: int, notes: Children | None = None, since: int = 0) -> None:
        """`notes` are told of its start, which came at the clock tick `since` or after it, and of its end."""
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self._notes = notes
        if notes is not None:
            notes.add(pid, since)

    def terminate(self) -> None:
        """Send TERM to the whole group, as far as we may."""
        with contextlib.suppress(PermissionError):
            os.killpg(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Send KILL to the whole group, as far as we may."""
        with contextlib.suppress(PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def status(self) -> int:
        """Answer the exit code of an exited child, 128 + N after signal N. It stays a zombie, and its group its own."""
        found = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT)
        assert found is not None
        return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status

    def members(self) -> list[int]:
        """Answer who else lives in the group. Reads /proc: call it in a thread."""
        return members(self.pid)

    def reap(self) -> None:
        """Take the exited child out of the process table."""
        os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED)
        os.close(self.pidfd)
        if self._notes is not None:
            self._notes.drop(self.pid)


class Launcher:
    """Starts commands as they are. A capsule overrides `wrap`, and `child` where its processes end in another way."""

    def __init__(self, environment: Callable[[], dict[bytes, bytes]]) -> None:
        self._environment = environment
        self.children: Children | None = None
        """Where children are noted that do not end with the server by themselves."""
        self._null = high(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def close(self) -> None:
        os.close(self._null)

    def wrap(self, program: Program, command: Command, where: Where) -> Program:
        """Answer what is executed in place of `program`."""
        return program

    def child(self, pid: int, since: int) -> Child:
        """Take a process that was started at the clock tick `since` or after it as a child."""
        return Child(pid, self.children, since)

    def home(self, where: Where) -> bytes | None:
        """Answer the HOME of a tree's commands; None: the server's."""
        return None

    def start(self, command: Command, where: Where, *, takes_input: bool) -> tuple[Child, Ends]:
        """Run a command and answer it with our ends of its streams.

        It blocks for the time of one exec, about 0.1 ms. BadArgument: longer than the kernel takes; ToolError: it
        cannot be executed. Nothing runs then. Call it in the main thread: a child may be told to end with its thread.
        """
        ends = Ends()
        script = -1
        try:
            env = self.variables(command, where)
            if not isinstance(command.cmd, str):
                program = Program(tuple(map(os.fsencode, command.cmd)), env)
            elif len(text := command.cmd.encode()) <= SHORT:
                program = _shell_with_variable(text, env)
            else:
                script = _script(text)
                program = Program(_shell(b". /dev/fd/%d" % SCRIPT_FD), env, ((script, SCRIPT_FD),))
            program = self.wrap(program, command, where)
            tty = ends.open(self._null, command.terminal, takes_input, by_itself=program.own_terminal)
            return self._run(program, where, ends, tty), ends
        except OSError as error:
            ends.close()
            raise not_started(command, error) from error
        except BaseException:
            ends.close()
            raise
        finally:
            ends.close_theirs()
            if script >= 0:
                os.close(script)

    def variables(self, command: Command, where: Where) -> dict[bytes, bytes]:
        env = self._environment()
        env[b"PWD"] = where.path
        home = self.home(where)
        if home is not None:
            env[b"HOME"] = home
        if command.terminal is not None:
            env |= {b"PAGER": b"cat", b"GIT_PAGER": b"cat"}
            env.setdefault(b"TERM", b"xterm-256color")
        for name, value in command.env.items():
            env[name.encode()] = value.encode()
        return env

    def _run(self, program: Program, where: Where, ends: Ends, tty: tuple[int, bytes] | None) -> Child:
        name = program.argv[0]
        env = [b"%s=%s" % variable for variable in program.env.items()]
        fds = [*ends.theirs, *program.passed]
        paths = candidates(name, program.env.get(b"PATH", DEFAULT_PATH))
        worst = 0
        for path in paths:
            if len(paths) > 1 and not os.access(path, os.X_OK, dir_fd=where.fd):
                continue
            since = ticks()
            reserved = os.dup(self._null)  # so that a command that runs can always be held on to
            try:
                pid = spawn(path, program.argv, env, where.fd, fds, tty)
            except OSError as error:
                if error.errno == errno.E2BIG:
                    raise BadArgument("cmd: the argv and env together are longer than the kernel takes") from error
                worst = error.errno or worst
                if worst not in _TRY_NEXT:
                    break
                continue
            finally:
                os.close(reserved)
            try:
                return self.child(pid, since)
            except OSError:  # another thread has taken it
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
                raise
        if not worst:  # none can be executed, but some may be there
            there = any(os.access(path, os.F_OK, dir_fd=where.fd) for path in paths)
            worst = errno.EACCES if there else errno.ENOENT
        raise ToolError(cannot(name.decode(errors="replace"), worst))


class Ends:
    """The descriptors of a command's streams: ours, and those (here, there) that it gets."""

    __slots__ = ("_given", "errors", "input", "output", "theirs")

    def __init__(self) -> None:
        self.input = self.output = self.errors = -1
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
    """Answer the descriptor, moved out of the way of the numbers that a child gets."""
    if fd > SCRIPT_FD:
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, SCRIPT_FD + 1)
    os.close(fd)
    return moved


def _shell(text: bytes) -> tuple[bytes, ...]:
    """Answer a shell that runs the text with `$0` as a shell's own command has it, whatever PATH it is given.

    The text is never the command's own: that must not stand on a command line, where `pkill -f` would find it.
    """
    return b"/bin/sh", b"-c", text, b"sh"


def _shell_with_variable(text: bytes, env: dict[bytes, bytes]) -> Program:
    """Answer a shell that runs a text from a variable, of which the commands it runs know nothing."""
    name = b"_toolserver_command"
    while name in env:
        name += b"_"
    return Program(_shell(b'eval "unset %s;$%s"' % (name, name)), env | {name: text})


def _script(text: bytes) -> int:
    """Answer a descriptor of the text, for the shell to read with its `.`.

    So the text may be of any length and stdin stays free. The first words close the descriptor: the shell has a copy
    of its own by then, and the commands it runs get none.
    """
    fd = high(os.memfd_create("command", os.MFD_CLOEXEC))
    data = memoryview(b"exec %d<&-;%s" % (SCRIPT_FD, text))
    while data:
        data = data[os.write(fd, data) :]
    return fd


def not_started(command: Command, error: OSError) -> ToolError:
    """Answer why the system does not let a command start."""
    return ToolError(f"{command.shown[:200]}: {(error.strerror or 'cannot be started').lower()}")


def candidates(name: bytes, path: bytes) -> list[bytes]:
    if b"/" in name:
        return [name]
    return [os.path.join(folder or b".", name) for folder in path.split(b":")]


def cannot(name: str, code: int) -> str:
    if code == errno.ENOENT:
        return (
            f"{name}: no such file, or its interpreter is missing"
            if "/" in name
            else f"{name}: no such program on PATH"
        )
    if code == errno.EACCES:
        return f"{name}: cannot be executed: permission denied"
    return f"{name}: cannot be executed: {os.strerror(code).lower()}"
