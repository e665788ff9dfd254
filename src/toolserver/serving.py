"""Runs a server: sockets, banner, event loop, shutdown."""

from __future__ import annotations

import contextlib
import gc
import os
import shlex
import signal
import socket
import stat
import string
import sys
from collections.abc import Iterator

import uvloop

from toolserver import log
from toolserver._fast.allocator import reuse_large_buffers
from toolserver.app import Application, make_app
from toolserver.http.server import STOPS, Server, warn_of_untested_uvicorn
from toolserver.settings import Settings, StartError

BACKLOG = 2048


def serve(settings: Settings) -> None:
    """Serve until SIGTERM, SIGINT or the end of `--idle-stop`. Raises StartError where it cannot begin."""
    early: list[int] = []
    for number in STOPS:
        # until the server handles them itself, only remember that one came
        signal.signal(number, lambda number, _: early.append(number))
    log.configure(settings.log_level)
    warn_of_untested_uvicorn()
    reuse_large_buffers()
    app = make_app(settings)
    try:
        with listening(settings) as sockets:
            uvloop.run(_serve(app, settings, sockets, early))
    finally:
        for number in STOPS:
            # a signal that comes while the interpreter ends must not change the exit status
            signal.signal(number, signal.SIG_IGN)
        app.close()


async def _serve(app: Application, settings: Settings, sockets: list[socket.socket], early: list[int]) -> None:
    with contextlib.ExitStack() as stack:

        def ready() -> None:
            if settings.idle_stop:
                stack.callback(app.activity.watch(settings.idle_stop, server.stop))
            sys.stdout.buffer.write(os.fsencode(banner(settings, app, sockets[0])))
            sys.stdout.buffer.flush()
            gc.collect()
            gc.freeze()  # objects made at the start live as long as the server: collections skip them
            if early:
                server.stop()

        await app.begin()
        server = Server(app.gate, sockets, ready=ready, ending=app.end)
        await server.serve()


# ---------------------------------------------------------------------------------------------------------- sockets


@contextlib.contextmanager
def listening(settings: Settings) -> Iterator[list[socket.socket]]:
    """Open the listening sockets; at the end close them and remove the Unix socket. Raises StartError."""
    sockets = [_unix_socket(settings.uds)] if settings.uds else _tcp_sockets(settings.host, settings.port)
    made = os.stat(settings.uds) if settings.uds else None
    try:
        yield sockets
    finally:
        for one in sockets:
            one.close()
        if made is not None:
            with contextlib.suppress(FileNotFoundError):
                there = os.lstat(settings.uds)
                if (there.st_dev, there.st_ino) == (made.st_dev, made.st_ino):
                    os.unlink(settings.uds)


def _tcp_sockets(host: str, port: int) -> list[socket.socket]:
    """Listen on every address of a host, all with the same port."""
    where = f"cannot listen on {address(host, port)}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise StartError(f"{where}: {getattr(error, 'strerror', None) or error}") from error
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, target in dict.fromkeys(found):
            one = socket.socket(family, kind, protocol)
            sockets.append(one)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            _keep_alive(one)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((target[0], port, *target[2:]))
            port = one.getsockname()[1]
            one.listen(BACKLOG)
            one.setblocking(False)
    except OSError as error:
        for one in sockets:
            one.close()
        raise StartError(f"{where}: {error.strerror}") from error
    return sockets


def _keep_alive(one: socket.socket) -> None:
    """Turn on TCP keep-alive, so that an NDJSON stream to a dead peer ends: after 60 s of silence, 6 probes 10 s apart.

    Connections inherit the options of the listening socket on Linux.
    """
    one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 6)


def _unix_socket(path: str) -> socket.socket:
    """Listen on a Unix socket that only this user can reach. One that a dead server left is replaced."""
    where = f"cannot listen on {path}"
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_dead(path)
        mask = os.umask(0o177)
        try:
            one.bind(path)
        finally:
            os.umask(mask)
        one.listen(BACKLOG)
        one.setblocking(False)
    except OSError as error:
        one.close()
        raise StartError(f"{where}: {error.strerror or error}") from error
    return one


def _remove_dead(path: str) -> None:
    """Remove a socket that nobody listens on. Anything else at its place stays, and the bind fails."""
    try:
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            return
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)


# ----------------------------------------------------------------------------------------------------------- banner


def address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def banner(settings: Settings, app: Application, listener: socket.socket) -> str:
    """Return what is printed at the start: the address, the token file and a curl command to paste into a shell."""
    token_file = app.token.path
    header = f'-H "Authorization: Bearer $({_cat(token_file)})"'
    if settings.uds:
        path = os.path.abspath(settings.uds)
        where, command = f"unix:{_one_line(path)}", f"--unix-socket {_word(path)} {header} http://localhost/tools"
    else:
        where = address(settings.host, listener.getsockname()[1])
        command = f"{header} {where}/tools"
    root = _one_line(os.fsdecode(app.services.workspace.root))
    return f"toolserver serves {root} at {where}\ntoken file: {_one_line(token_file)}\ncurl {command}\n"


def _one_line(path: str) -> str:
    """Return a path as one line of text that does not look like the curl command."""
    shown = "".join(char if char.isprintable() or "\udc80" <= char <= "\udcff" else ascii(char)[1:-1] for char in path)
    return shown.replace("curl ", "curl\\x20")


PLAIN = frozenset(string.ascii_letters.encode() + string.digits.encode() + b"/._-")


def _octal(path: str) -> str:
    """Return a path as a format of printf(1)."""
    return "".join(chr(byte) if byte in PLAIN else f"\\{byte:03o}" for byte in os.fsencode(path))


def _cat(path: str) -> str:
    if path.isprintable():
        return f"cat {shlex.quote(path)}"
    return f"printf '{_octal(path)}\\000' | xargs -0 cat"


def _word(path: str) -> str:
    return shlex.quote(path) if path.isprintable() else f"\"$(printf '{_octal(path)}')\""
