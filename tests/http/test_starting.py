"""Starting and stopping (specification, section 1): what the conformance suite leaves out."""

from __future__ import annotations

import json
import os
import pathlib
import re
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import httpx
import pytest
from kit import TOKEN, free_port, program
from wire import WAIT_S, Wire, head, post, run

if TYPE_CHECKING:
    from kit import Server


class Started:
    """A server whose banner has come."""

    def __init__(self, *words: str | bytes, env: dict[str, str], cwd: pathlib.Path | None = None) -> None:
        self.process = subprocess.Popen(
            [*program(), "serve", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
            cwd=cwd,
        )
        assert self.process.stdout is not None
        self.banner: list[bytes] = []
        while line := self.process.stdout.readline():
            self.banner.append(line)
            if line.startswith(b"curl "):
                return
        raise AssertionError(self.process.communicate()[1])

    @property
    def port(self) -> int:
        found = re.search(rb"http://[^ /]*:(\d+)", b"".join(self.banner))
        assert found is not None
        return int(found[1])

    def stop(self) -> tuple[int, bytes]:
        """Return the exit status and what stood on stderr."""
        self.process.terminate()
        log = self.process.communicate(timeout=WAIT_S)[1]
        return self.process.returncode, log


Start = Callable[..., Started]


@pytest.fixture
def env(tmp_path: pathlib.Path) -> dict[str, str]:
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home), "XDG_STATE_HOME": ""}


@pytest.fixture
def root(tmp_path: pathlib.Path) -> pathlib.Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made.resolve()


@pytest.fixture
def start(env: dict[str, str]) -> Iterator[Start]:
    running: list[Started] = []

    def started(*words: str | bytes, cwd: pathlib.Path | None = None, **more: str) -> Started:
        running.append(Started(*words, env={**env, **more}, cwd=cwd))
        return running[-1]

    yield started
    for one in running:
        one.process.kill()
        one.process.communicate()


# ------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("words", "variables", "named"),
    [
        (["--port", "x"], {}, "--port"),
        (["--port", "65536"], {}, "--port"),
        (["--port", "-1"], {}, "--port"),
        ([], {"TOOLSERVER_PORT": "none"}, "TOOLSERVER_PORT"),
        (["--capsule", "maybe"], {}, "--capsule"),
        ([], {"TOOLSERVER_NETWORK": "closed"}, "TOOLSERVER_NETWORK"),
        (["--idle-stop", "soon"], {}, "--idle-stop"),
        (["--idle-stop", "-1"], {}, "--idle-stop"),
        (["--log-level", "loud"], {}, "--log-level"),
        (["--nonsense"], {}, "--nonsense"),
        (["--por", "1"], {}, "--por"),
        (["two", "roots"], {}, "roots"),
        (["--host", "no.such.host.invalid"], {}, "no.such.host.invalid"),
        (["--uds", "/nowhere/at/all"], {}, "/nowhere/at/all"),
        (["--capsule", "require"], {"PATH": "/nowhere"}, "--capsule require"),
    ],
)
def test_one_line_and_status_2(
    root: pathlib.Path, env: dict[str, str], words: list[str], variables: dict[str, str], named: str
) -> None:
    [command] = program()
    with open(command, "rb") as file:
        interpreter = file.readline()[2:].strip().decode()  # PATH may be gone
    done = subprocess.run(
        [interpreter, command, "serve", *words],
        capture_output=True,
        timeout=WAIT_S,
        cwd=root,
        env={**os.environ, **env, **variables},
    )
    lines = done.stderr.decode().splitlines()
    assert done.returncode == 2
    assert len(lines) == 1
    assert named in lines[0]
    assert done.stdout == b""


@pytest.mark.parametrize("name", ["a\nb", "tab\tbed", "\x1b[31m", "é", "\udcff"])
def test_a_missing_root_of_any_name_is_one_line(tmp_path: pathlib.Path, env: dict[str, str], name: str) -> None:
    done = run("serve", os.fsencode(f"{tmp_path}/{name}"), env=env)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"\x1b" not in done.stderr


def test_a_flag_wins_over_its_variable(root: pathlib.Path, start: Start) -> None:
    port = free_port()
    server = start(str(root), "--port", str(port), TOOLSERVER_PORT="1", TOOLSERVER_LOG_LEVEL="")
    assert server.port == port


# ---------------------------------------------------------------------------------------------------- the token file


def state_files(home: str) -> list[pathlib.Path]:
    return [path for path in pathlib.Path(home).rglob("*") if path.is_file()]


def test_the_token_file_stays(root: pathlib.Path, env: dict[str, str], start: Start) -> None:
    """The same at the next start, for this user alone, whatever spelling the root has."""
    first = start(str(root), "--port", "0")
    [path] = state_files(env["HOME"])
    assert pathlib.Path(env["HOME"], ".local/state/toolserver") in path.parents
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    token = path.read_text()
    assert len(token.strip()) >= 40
    assert first.stop()[0] == 0
    (root.parent / "link").symlink_to(root)
    start("../link/", "--port", "0", cwd=root)
    assert state_files(env["HOME"]) == [path]
    assert path.read_text() == token


def test_a_blank_token_file_is_made_anew(root: pathlib.Path, env: dict[str, str], start: Start) -> None:
    start(str(root), "--port", "0").stop()
    [path] = state_files(env["HOME"])
    path.write_text("\n")
    start(str(root), "--port", "0").stop()
    assert len(path.read_text().strip()) >= 40
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_servers_that_start_together_have_one_token(root: pathlib.Path, env: dict[str, str], start: Start) -> None:
    servers: list[Started] = []
    threads = [threading.Thread(target=lambda: servers.append(start(str(root), "--port", "0"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [path] = state_files(env["HOME"])
    token = path.read_text().strip()
    for server in servers:
        headers = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"http://127.0.0.1:{server.port}/tools", headers=headers).status_code == 200


def test_a_state_directory_that_cannot_be_made(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    done = run("serve", str(root), "--port", "0", env={"XDG_STATE_HOME": str(tmp_path / "file")})
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"token file" in done.stderr


def test_xdg_state_home(root: pathlib.Path, tmp_path: pathlib.Path, env: dict[str, str], start: Start) -> None:
    """Used when absolute, and passed over when not, as its specification says."""
    start(str(root), "--port", "0", XDG_STATE_HOME=str(tmp_path / "state"))
    assert len(state_files(str(tmp_path / "state"))) == 1
    assert state_files(env["HOME"]) == []
    start(str(root), "--port", "0", XDG_STATE_HOME="state", cwd=tmp_path)
    assert len(state_files(env["HOME"])) == 1


NAMES = [
    "plain", "two words", "it's", 'say "x"', "$(date)", "`date`", "back\\slash", "new\nline", "last\n", "-f", "%s%n",
    "tab\tbed", "\udcff\udcfe", "é", "curl x", "a;b&c", "!x", "*",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_line_to_paste(root: pathlib.Path, tmp_path: pathlib.Path, start: Start, name: str, shell: str) -> None:
    """A shell takes it whatever the token file is named; it is the one line with `curl `, and shows no token."""
    path = f"{tmp_path}/{name}"
    with open(os.fsencode(path), "w") as file:
        file.write(f"  {TOKEN}\n")
    server = start(str(root), "--port", "0", "--token-file", os.fsencode(path))
    lines = [line for line in server.banner if b"curl " in line]
    assert len(lines) == 1
    assert TOKEN.encode() not in b"".join(server.banner)
    done = subprocess.run([shell, "-c", lines[0].decode(errors="surrogateescape")], capture_output=True, timeout=WAIT_S)
    assert {tool["name"] for tool in json.loads(done.stdout)["tools"]} >= {"read"}


def test_the_banner_of_a_socket(root: pathlib.Path, tmp_path: pathlib.Path, start: Start) -> None:
    path = tmp_path / "my socket"
    server = start(str(root), "--uds", str(path))
    line = server.banner[-1].decode()
    assert "--unix-socket" in line
    assert "http://localhost/" in line
    done = subprocess.run(["sh", "-c", line], capture_output=True, timeout=WAIT_S)
    assert "tools" in json.loads(done.stdout)


# -------------------------------------------------------------------------------------------------------- the address


def test_a_socket_is_private_and_goes_with_the_server(root: pathlib.Path, tmp_path: pathlib.Path, start: Start) -> None:
    path = tmp_path / "s"
    server = start(str(root), "--uds", str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    done = run("serve", str(root), "--uds", str(path))
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert str(path).encode() in done.stderr
    assert server.stop()[0] == 0
    assert not path.exists()


def test_a_dead_servers_socket_is_taken_over(root: pathlib.Path, tmp_path: pathlib.Path, start: Start) -> None:
    path = tmp_path / "s"
    server = start(str(root), "--uds", str(path))
    server.process.kill()
    server.process.wait()
    assert path.exists()
    start(str(root), "--uds", str(path))
    with httpx.Client(transport=httpx.HTTPTransport(uds=str(path))) as client:
        assert client.get("http://localhost/healthz").json()["ok"] is True


def test_a_file_in_the_sockets_place_is_left_alone(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    assert run("serve", str(root), "--uds", str(path)).returncode == 2
    assert path.read_text() == "precious"


def test_ipv6(root: pathlib.Path, start: Start) -> None:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no ::1")
    server = start(str(root), "--host", "::1", "--port", "0")
    found = re.search(rb"http://\[::1\]:\d+", server.banner[0])
    assert found is not None
    assert httpx.get(found[0].decode() + "/healthz").json()["root"] == str(root)


# ------------------------------------------------------------------------------------------------------------ the stop


def test_a_stop_waits_for_nobody(serve: Callable[..., Server]) -> None:
    """Not for idle connections, nor for half a head, half a body or half a handshake."""
    server = serve()
    halves = [
        b"",
        b"POST /tools/re",
        head("POST", "/tools/read", "Content-Length: 100") + b'{"path',
        head("POST", "/tools/read", "Transfer-Encoding: chunked") + b"5\r\n{",
        head("GET", "/healthz") + b"GET /he",
    ]
    wires = [Wire(server.port) for _ in halves]
    for wire, half in zip(wires, halves, strict=True):
        wire.send(half)
    assert wires[-1].answer().status == 200
    server.http.get("/healthz")
    begun = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begun < 10
    for wire in wires:
        wire.__exit__()


@pytest.mark.parametrize("_", range(5))
def test_signals_again_and_again(serve: Callable[..., Server], _: int) -> None:
    """Until its very end it goes on ending, with status 0."""
    server = serve()
    while server.process.poll() is None:
        server.process.send_signal(signal.SIGINT)
        server.process.send_signal(signal.SIGTERM)
    assert server.process.returncode == 0


def test_a_signal_right_at_the_start(root: pathlib.Path, start: Start) -> None:
    """When its banner is out, a server can be stopped."""
    for number in (signal.SIGINT, signal.SIGTERM):
        server = start(str(root), "--port", "0")
        server.process.send_signal(number)
        assert server.process.wait(WAIT_S) == 0


def test_idle_stop(root: pathlib.Path, start: Start) -> None:
    """The server ends by itself; what is no activity does not keep it."""
    server = start(str(root), "--port", "0", "--idle-stop", "0.5")
    url = f"http://127.0.0.1:{server.port}"
    with pytest.raises(httpx.TransportError):
        while server.process.poll() is None:
            httpx.get(url + "/healthz")
    assert server.process.wait(WAIT_S) == 0


def switches(pid: int) -> int:
    """How often threads of a process were given the processor or gave it up."""
    total = 0
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        total += sum(int(line.split()[1]) for line in status.read_text().splitlines() if "ctxt_switches" in line)
    return total


def test_an_idle_server_sleeps(serve: Callable[..., Server]) -> None:
    """No tick, no polling, with connections open too: in a second no thread of it wakes once."""
    server = serve()
    server.put("f", "x\n")
    with Wire(server.port) as wire:
        wire.send(post("/tools/read", b'{"path": "f"}'))
        assert wire.answer().status == 200
        for _ in range(20):
            before = switches(server.process.pid)
            time.sleep(1)  # the span that is looked at
            if switches(server.process.pid) == before:
                return
    raise AssertionError("the server woke up in each of 20 seconds")
