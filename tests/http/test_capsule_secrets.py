"""The token file and the state directory are seen by no command, whatever way leads to them."""

from __future__ import annotations

import os
import pathlib
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from commands import detach, wait
from kit import program
from wire import run

if TYPE_CHECKING:
    from kit import Server

TOKEN = "a-token-of-this-test"
Serve = Callable[..., "Server"]


@pytest.fixture
def house(tmp_path: pathlib.Path) -> pathlib.Path:
    """Folders beside one another: `ws` is the root, `keys` and `shown` lie outside of it."""
    for name in ("ws", "keys", "shown"):
        (tmp_path / name).mkdir()
    (tmp_path / "keys/token").write_text(TOKEN)
    return tmp_path.resolve()


@pytest.fixture
def with_token(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Server]:
    """Start a server with a token file of the test's own, in the capsule."""

    def start(token: pathlib.Path, *flags: str, root: pathlib.Path, env: dict[str, str] | None = None) -> Server:
        given = f'exec "$@" --token-file {shlex.quote(str(token))}'
        with monkeypatch.context() as patch:
            patch.setenv("TOOLSERVER_BIN", shlex.join(["sh", "-c", given, "sh", *program()]))
            server = serve("--capsule", "require", *flags, root=root, env=env)
        server.http.headers["authorization"] = f"Bearer {TOKEN}"
        return server

    return start


@pytest.fixture(autouse=True)
def needs_the_capsule(serve: Serve) -> None:
    if serve().http.get("/tools").json()["fence"]["capsule"] != "active":
        pytest.skip("the capsule does not work here")


def seen(server: Server, *places: pathlib.Path, **more: Any) -> bool:
    """Whether a command finds the token anywhere below some places."""
    found = server.ok("exec", cmd=["grep", "-rslF", TOKEN, *map(str, places)], **more)
    assert found["exit_code"] in (0, 1, 2), found
    return bool(found["stdout"])


def refused(token: pathlib.Path, root: pathlib.Path, *flags: str, env: dict[str, str] | None = None) -> str:
    """Return the one line of a server that does not start."""
    done = run("serve", str(root), "--port", "0", "--token-file", str(token), "--capsule", "require", *flags, env=env)
    assert done.returncode == 2
    lines = done.stderr.decode().splitlines()
    assert len([line for line in lines if line.startswith("toolserver: ")]) == 1, lines
    return lines[-1]


# ------------------------------------------------------------------------------------------------------ the token file


def test_a_token_in_the_root_itself(house: pathlib.Path) -> None:
    """It could not be kept covered when it is replaced, so there is no such server."""
    (house / "ws/token").write_text(TOKEN)
    line = refused(house / "ws/token", house / "ws")
    assert str(house / "ws/token") in line
    assert "cannot be kept covered" in line


def test_a_root_given_through_a_link(house: pathlib.Path, with_token: Callable[..., Server]) -> None:
    (house / "link").symlink_to("ws")
    (house / "ws/etc").mkdir()
    (house / "ws/etc/token").write_text(TOKEN)
    server = with_token(house / "link/etc/token", root=house / "link")
    assert not seen(server, house)
    refused(house / "ws/etc/token", house / "ws/etc")


def test_a_bound_place_that_is_a_link(house: pathlib.Path, with_token: Callable[..., Server]) -> None:
    (house / "given").symlink_to("shown")
    (house / "shown/deep").mkdir()
    (house / "shown/deep/token").write_text(TOKEN)
    (house / "shown/other").write_text("other")
    server = with_token(house / "shown/deep/token", "--bind-ro", str(house / "given"), root=house / "ws")
    assert server.ok("exec", cmd=["cat", str(house / "given/other")])["stdout"] == "other"
    assert not seen(server, house)


def test_a_bound_place_that_shows_it(house: pathlib.Path) -> None:
    assert "which commands see" in refused(house / "keys/token", house / "ws", "--bind-ro", str(house / "keys"))
    assert "is the token file" in refused(house / "keys/token", house / "ws", "--bind-ro", str(house / "keys/token"))
    os.link(house / "keys/token", house / "shown/name")
    assert "is the token file" in refused(house / "keys/token", house / "ws", "--bind-ro", str(house / "shown/name"))


def test_a_token_file_that_is_a_link(house: pathlib.Path, with_token: Callable[..., Server]) -> None:
    (house / "ws/etc").mkdir()
    (house / "ws/etc/real").write_text(TOKEN)
    (house / "keys/link").symlink_to(house / "ws/etc/real")
    assert not seen(with_token(house / "keys/link", root=house / "ws"), house)


def test_a_link_that_commands_could_replace(house: pathlib.Path) -> None:
    """A command that changes the link would choose the token."""
    (house / "ws/link").symlink_to(house / "keys")
    assert "a link on the way" in refused(house / "ws/link/token", house / "ws")


@pytest.mark.parametrize("token", ["/usr/token", "/usr/share/token", "/etc/ssl/none/token", "/bin/token"])
def test_a_place_of_the_system(house: pathlib.Path, token: str) -> None:
    assert "cannot be kept covered" in refused(pathlib.Path(token), house / "ws")


def test_a_file_that_is_replaced(house: pathlib.Path, with_token: Callable[..., Server]) -> None:
    """A running command does not see the new file either."""
    folder = house / "ws/etc"
    folder.mkdir()
    (folder / "token").write_text(TOKEN)
    server = with_token(folder / "token", root=house / "ws")
    waits = f"while read line; do cat {folder}/*; ls -A {folder}; echo looked; done 2>/dev/null"
    name = detach(server, waits)
    (folder / "new").write_text(f"{TOKEN}-2")
    (folder / "new").rename(folder / "token")
    server.http.headers["authorization"] = f"Bearer {TOKEN}-2"
    server.ok("process_write", id=name, data="look\n")
    server.ok("process_close_stdin", id=name)
    assert wait(server, name, timeout_ms=20000)["stdout"] == "looked\n"
    assert not seen(server, house)


def test_a_link_that_changes_while_the_server_runs(house: pathlib.Path, with_token: Callable[..., Server]) -> None:
    """What is opened is compared at each start of a command."""
    (house / "keys/link").symlink_to("token")
    server = with_token(house / "keys/link", root=house / "ws")
    assert not seen(server, house)
    (house / "ws/etc").mkdir()
    (house / "ws/etc/token").write_text(TOKEN)
    (house / "keys/new").symlink_to(house / "ws/etc/token")
    (house / "keys/new").rename(house / "keys/link")
    assert not seen(server, house)
    (house / "ws/token").write_text(TOKEN)
    (house / "keys/new").symlink_to(house / "ws/token")
    (house / "keys/new").rename(house / "keys/link")
    assert "cannot be kept covered" in server.fails(500, "exec", cmd="true")


def test_a_command_cannot_put_a_token_of_its_own_there(house: pathlib.Path, with_token: Callable[..., Server]) -> None:
    """Directories on the way to the token cannot be moved away from inside."""
    (house / "ws/a/b/c").mkdir(parents=True)
    (house / "ws/a/b/c/token").write_text(TOKEN)
    server = with_token(house / "ws/a/b/c/token", root=house / "ws")
    for attempt in ("mv a x", "mv a/b x", "mv a/b/c x", "echo mine > a/b/c/token", "rm -rf a", "umount a/b/c"):
        assert server.ok("exec", cmd=attempt)["exit_code"] != 0, attempt
    assert server.ok("exec", cmd="echo x > a/file && echo x > a/b/file && cat a/file")["stdout"] == "x\n"
    assert (house / "ws/a/b/c/token").read_text() == TOKEN


def test_another_tree(house: pathlib.Path, with_token: Callable[..., Server]) -> None:
    (house / "ws/.agents/alpha/etc").mkdir(parents=True)
    (house / "ws/.agents/alpha/etc/token").write_text(TOKEN)
    server = with_token(house / "ws/.agents/alpha/etc/token", root=house / "ws")
    assert not seen(server, house)
    assert not seen(server, house, tree="alpha")
    refused(house / "ws/.agents/alpha/token", house / "ws")


# -------------------------------------------------------------------------------------------------- the state directory


def test_a_root_that_holds_the_state_directory(house: pathlib.Path, with_token: Callable[..., Server]) -> None:
    """`toolserver serve $HOME` works; what the servers keep there is not seen, and cannot be forged."""
    home = house / "ws"
    env = {"HOME": str(home), "XDG_STATE_HOME": ""}
    server = with_token(house / "keys/token", root=home, env=env)
    state = home / ".local/state/toolserver"
    (state / "other").mkdir(parents=True)
    (state / "other/token").write_text(TOKEN)
    assert not seen(server, home)
    assert server.ok("exec", cmd=["ls", "-A", str(state)])["stdout"] == ""
    for attempt in ("mv .local x", "mv .local/state x", f"mkdir -p {state}/forged", f"rm -rf {state}"):
        assert server.ok("exec", cmd=attempt)["exit_code"] != 0, attempt
    assert server.ok("exec", cmd="echo x > .local/share")["exit_code"] == 0
    assert sorted(os.listdir(state)) != []


def test_its_own_token_file_is_there(house: pathlib.Path) -> None:
    """The default token file lies below the root then: the server starts all the same."""
    import signal
    import subprocess

    env = {**os.environ, "HOME": str(house / "ws"), "XDG_STATE_HOME": ""}
    argv = [*program(), "serve", str(house / "ws"), "--port", "0", "--capsule", "require"]
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"toolserver serves ")
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    assert process.returncode == 0


def test_a_root_that_is_the_state_directory(house: pathlib.Path) -> None:
    env = {"XDG_STATE_HOME": str(house / "ws")}
    (house / "ws/toolserver").mkdir()
    line = refused(house / "keys/token", house / "ws/toolserver", env=env)
    assert "the server's state directory" in line
