"""Commands over HTTP, unwrapped: the cases that systems of this kind get wrong (specification, section 7)."""

from __future__ import annotations

import concurrent.futures
import contextlib
import pathlib
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from commands import detach, eventually, memory, nothing_left, wait

if TYPE_CHECKING:
    from kit import Server

KEPT = 4 * 1024 * 1024


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    from kit import serving

    with serving("--capsule", "off") as server, nothing_left(server):
        yield server


@pytest.fixture
def ws(shared: Server) -> Server:
    shared.empty()
    return shared


def run(server: Server, cmd: str | list[str], **more: Any) -> Any:
    answer = server.ok("exec", cmd=cmd, **more)
    assert "promoted" not in answer, answer
    return answer


# --------------------------------------------------------------------------------------------------- as `sh -c` has it


@pytest.mark.parametrize(
    ("text", "stdout", "code"),
    [
        ("echo $0 $#", "sh 0\n", 0),
        ("echo a; if then", "", 2),
        ("exit 7; echo never", "", 7),
        ("return 3", "", 3),
        ("set -e; false; echo never", "", 1),
        ("trap 'echo bye' EXIT; echo hi", "hi\nbye\n", 0),
        ("\n\n# only\n\n", "", 0),
        ("   ", "", 0),
        ("exec echo replaced; echo never", "replaced\n", 0),
        ("cat /dev/stdin; echo end", "end\n", 0),
        ("x='≤ 😀'; echo \"$x\"", "≤ 😀\n", 0),
        ("ls /proc/self/fd | tr '\\n' ' '", "0 1 2 3 ", 0),
        ("set -- /proc/self/fd/*; for f; do [ -e $f ] && readlink $f; done | grep -c memfd", "1\n", 1),
    ],
)
def test_a_text_runs_as_the_shell_would_run_it(ws: Server, text: str, stdout: str, code: int) -> None:
    answer = run(ws, text)
    if "memfd" in text:  # the shell's own copy, which nobody else inherits
        assert int(answer["stdout"]) <= 1
        return
    assert (answer["stdout"].replace("10 ", ""), answer["exit_code"]) == (stdout, code)


@pytest.mark.parametrize("more", ["", "\n#" + "x" * 5000])
@pytest.mark.parametrize("text", ["nosuch", "true; nosuch x", "if then", "\nexit nowhere", "./nosuch"])
def test_messages_are_those_of_the_shell(ws: Server, text: str, more: str) -> None:
    real = subprocess.run(["sh", "-c", text + more, "sh"], cwd=ws.root, capture_output=True, text=True, check=False)
    answer = run(ws, text + more)
    assert (answer["stdout"], answer["stderr"], answer["exit_code"]) == (real.stdout, real.stderr, real.returncode)


def test_a_syntax_error_runs_nothing_after_it(ws: Server) -> None:
    answer = run(ws, "if then")
    assert (answer["exit_code"], answer["stdout"]) == (2, "")
    assert "yntax error" in answer["stderr"]


def test_children_inherit_neither_the_text_nor_anything_of_the_server(ws: Server) -> None:
    answer = run(ws, ["sh", "-c", "ls -l /proc/self/fd"])
    assert [line.split(" -> ")[0].rpartition(" ")[2] for line in answer["stdout"].splitlines()[1:]] == list("0123")
    answer = run(ws, "python3 -c 'import os; print(os.listdir(\"/proc/self/fd\"))'")
    assert answer["stdout"] == "['0', '1', '2', '3']\n"


def test_a_command_of_3_mb(ws: Server) -> None:
    answer = run(ws, f"x='{'a' * 3_000_000}'; echo ${{#x}}")
    assert (answer["stdout"], answer["exit_code"]) == ("3000000\n", 0)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"cmd": ["echo", "a" * 131_072]}, "cmd[1]"),
        ({"cmd": ["echo", *["x"] * 8000]}, "cmd"),
        ({"cmd": ["echo", "a\0b"]}, "cmd[1]"),
        ({"cmd": "echo \0"}, "cmd"),
        ({"cmd": ["", "x"]}, "cmd[0]"),
        ({"cmd": "true", "env": {"A": "a\0"}}, "env.A"),
        ({"cmd": "true", "env": {"A": "a" * 131_072}}, "env.A"),
        ({"cmd": "true", "env": {"A=B": "x"}}, "env.A=B"),
        ({"cmd": "true", "env": {"": "x"}}, "env."),
        ({"cmd": "true", "env": {"A": 5}}, "env.A"),
        ({"cmd": ["echo", *["x" * 100_000] * 100]}, "cmd"),
    ],
)
def test_what_no_kernel_takes_is_400(ws: Server, arguments: dict[str, Any], named: str) -> None:
    assert named in ws.fails(400, "exec", **arguments)


def test_the_longest_that_the_kernel_takes(ws: Server) -> None:
    assert run(ws, ["printf", "%s", "a" * 131_071])["stdout"] == "a" * 131_071


@pytest.mark.parametrize(
    ("make", "cmd"),
    [
        (lambda root: (root / "plain").write_text("#!/bin/sh\n"), ["./plain"]),
        (lambda root: (root / "folder").mkdir(), ["./folder"]),
        (lambda root: ((root / "lost").write_text("#!/no/such\n"), (root / "lost").chmod(0o755)), ["./lost"]),
        (lambda root: ((root / "junk").write_bytes(b"\1\2"), (root / "junk").chmod(0o755)), ["./junk"]),
    ],
)
@pytest.mark.parametrize("more", [{}, {"detach": True}])
def test_what_cannot_be_executed_is_500_and_uses_no_id(
    ws: Server, make: Callable[[pathlib.Path], object], cmd: list[str], more: dict[str, bool]
) -> None:
    make(ws.root)
    first = detach(ws, "true")
    assert cmd[0] in ws.fails(500, "exec", cmd=cmd, **more)
    assert int(detach(ws, "true")[1:]) == int(first[1:]) + 1


@pytest.mark.parametrize(
    ("mode", "text", "why"),
    [(0o755, "#!/no/such\n", "interpreter is missing"), (0o644, "#!/bin/sh\n", "permission denied")],
)
def test_why_a_file_cannot_be_executed(ws: Server, mode: int, text: str, why: str) -> None:
    ws.put("file", text, mode=mode)
    assert why in ws.fails(500, "exec", cmd=["./file"])
    (ws.root / "bin").mkdir()
    (ws.root / "file").rename(ws.root / "bin" / "file")
    error = ws.fails(500, "exec", cmd=["file"], env={"PATH": f"{ws.root}/bin"})
    assert "file" in error
    assert "permission denied" in error or mode == 0o755


def test_signals_have_their_default_meaning(ws: Server) -> None:
    answer = run(ws, "grep -E '^Sig(Blk|Ign)' /proc/self/status | cut -f2")
    # glibc's posix_spawn leaves its two internal signals, 32 and 33, ignored
    assert [int(mask, 16) & 0x7FFFFFFF for mask in answer["stdout"].split()] == [0, 0]
    assert run(ws, "yes | head -1")["stdout"] == "y\n"


def test_pwd_is_the_directory_of_the_command(ws: Server) -> None:
    (ws.root / "sub").mkdir()
    assert run(ws, ["printenv", "PWD"], cwd="sub")["stdout"] == f"{ws.root}/sub\n"


def test_the_server_keeps_its_own_variables() -> None:
    from kit import TOKEN, serving

    env = {"TOOLSERVER_LOG_LEVEL": "error", "MINE": "yes", "COPY": f"x {TOKEN} y"}
    with serving("--capsule", "off", env=env) as server:
        shown = run(server, "env")["stdout"]
    assert "MINE=yes" in shown
    assert "TOOLSERVER_" not in shown
    assert TOKEN not in shown


# ------------------------------------------------------------------------------------------------------------- output


def test_the_parts_of_a_character_stay_together(ws: Server) -> None:
    """Issue case: the first byte of `≤`, something on stderr, the other two bytes: whole in every poll."""
    name = detach(ws, r"printf 'a\342'; read x; echo err >&2; read x; printf '\211\244b'; read x")
    eventually(lambda: ws.ok("process_output", id=name)["stdout"])
    for step, (stdout, following) in enumerate([("a", 1), ("a", 1), ("a≤b", 5)]):
        eventually(lambda want=following: ws.ok("process_output", id=name)["next"] == want)
        if step == 1:
            eventually(lambda: ws.ok("process_output", id=name)["stderr"])
        assert ws.ok("process_output", id=name)["stdout"] == stdout
        ws.ok("process_write", id=name, data="go\n")
    assert wait(ws, name)["stdout"] == "a≤b"


def test_600_mb_without_a_line_end(ws: Server) -> None:
    """Issue case: memory flat, the tail readable, what is dropped exact."""
    size = 600_000_000
    run(ws, "head -c 20000000 /dev/zero | tr '\\0' a", quiet=True)
    before = memory(ws)
    name = detach(ws, f"head -c {size} /dev/zero | tr '\\0' a; printf end")
    answer = wait(ws, name, since=size)
    assert memory(ws) - before < 32 * 1024 * 1024
    assert (answer["stdout"], answer["next"]) == ("end", size + 3)
    answer = ws.ok("process_output", id=name, since=7)
    assert answer["dropped"] == size + 3 - KEPT - 7
    assert answer["stdout"] == "a" * (KEPT - 3) + "end"


def test_memory_comes_back_after_much_output(ws: Server) -> None:
    run(ws, "head -c 20000000 /dev/zero", quiet=True)
    before = memory(ws)
    for _ in range(12):
        run(ws, "head -c 20000000 /dev/zero; head -c 20000000 /dev/zero >&2", quiet=True)
    assert memory(ws) - before < 32 * 1024 * 1024


def test_first_lines_of_more_than_is_kept(ws: Server) -> None:
    answer = run(ws, "seq 1 1000000", head=2, tail=1)
    assert (answer["stdout"].split(), answer["truncated"], answer["trimmed"]) == (["1", "2", "1000000"], True, True)


def test_a_promotion_tells_what_is_gone(ws: Server) -> None:
    answer = ws.ok("exec", cmd="head -c 5000000 /dev/zero | tr '\\0' a; sleep 500", soft_ms=2500)
    assert answer["dropped"] == 5_000_000 - KEPT
    assert "dropped_err" not in answer
    assert (answer["next"], answer["stdout_so_far"]) == (5_000_000, "a" * KEPT)


def test_the_same_small_job_many_times(ws: Server) -> None:
    """Issue case: always `e`, always 3."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda _: run(ws, ["sh", "-c", "echo e >&2; exit 3"]), range(400))
        assert {(answer["stderr"], answer["exit_code"]) for answer in answers} == {("e\n", 3)}


# ------------------------------------------------------------------------------------------------------- who holds on


def test_a_held_pipe_is_read_and_forgotten(ws: Server) -> None:
    """A background child that goes on printing is held up by nobody, and what it prints is in no later answer."""
    answer = run(ws, "echo hi; (while [ ! -e go ]; do sleep 0.05; done; yes | head -c 3000000; touch done) &")
    assert answer["stdout"] == "hi\n"
    ws.put("go")
    eventually(lambda: (ws.root / "done").exists())


def test_background_children_live_on(ws: Server) -> None:
    run(ws, "(sleep 0.7; touch later) >/dev/null 2>&1 &")
    eventually(lambda: (ws.root / "later").exists())


def test_a_timeout_does_not_wait_for_others(ws: Server) -> None:
    """A grandchild in a session of its own keeps the pipe open; the answer comes all the same."""
    began = time.monotonic()
    outsider = "while [ ! -e go ]; do sleep 0.05; done; touch gone"
    answer = run(ws, f"setsid sh -c '{outsider}' & echo a; sleep 60", timeout_ms=500)
    assert (answer["stdout"], answer["exit_code"], answer["timed_out"]) == ("a\n", -1, True)
    assert time.monotonic() - began < 20
    ws.put("go")
    eventually(lambda: (ws.root / "gone").exists())  # before the next test takes `go` away


def test_term_gives_the_whole_group_its_time(ws: Server) -> None:
    """The shell dies of TERM at once; what it started may still clean up, and only then is the process gone."""
    ws.put("app", "trap 'sleep 0.5; touch clean; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    name = detach(ws, "sh app; echo never")
    eventually(lambda: ws.ok("process_output", id=name)["stdout"] == "ready\n")
    assert ws.ok("process_kill", id=name) == {"state": "exited"}
    assert (ws.root / "clean").exists()


def test_two_who_kill_at_once(ws: Server) -> None:
    name = detach(ws, "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    eventually(lambda: ws.ok("process_output", id=name)["stdout"])
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        killing = [pool.submit(ws.ok, "process_kill", id=name, signal=how) for how in ("TERM", "TERM", "KILL")]
        assert [one.result() for one in killing] == [{"state": "exited"}] * 3
    assert wait(ws, name)["exit_code"] == 137


def test_a_client_that_leaves_a_job_with_a_timeout(ws: Server) -> None:
    """The job becomes a process at that moment, and has no timeout any more."""
    text = "while [ ! -e go ]; do sleep 0.05; done; echo end"
    with contextlib.suppress(httpx.ReadTimeout):
        ws.http.post("/tools/exec", json={"cmd": text, "timeout_ms": 1500}, timeout=httpx.Timeout(9.0, read=0.4))
    rows = eventually(lambda: [row for row in ws.ok("process_list")["processes"] if row["cmd"] == text])
    assert ws.ok("process_wait", id=rows[0]["id"], timeout_ms=2000)["state"] == "running"
    ws.put("go")
    assert wait(ws, rows[0]["id"])["stdout"] == "end\n"


# -------------------------------------------------------------------------------------------------------------- input


def test_a_write_is_refused_when_the_process_ends_first(ws: Server) -> None:
    name = detach(ws, "while [ ! -e go ]; do sleep 0.05; done")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        writing = pool.submit(ws.fails, 500, "process_write", id=name, data="x" * 1_000_000)
        time.sleep(0.3)
        ws.put("go")
        error = writing.result(20)
    assert name in error
    assert "bytes were taken" in error


def test_a_process_that_has_closed_its_input(ws: Server) -> None:
    name = detach(ws, "exec <&-; echo ready; sleep 500")
    eventually(lambda: ws.ok("process_output", id=name)["stdout"])
    assert "closed its input" in ws.fails(500, "process_write", id=name, data="x")


def test_a_write_whose_client_leaves_is_not_cut(ws: Server) -> None:
    name = detach(ws, "while [ ! -e go ]; do sleep 0.05; done; wc -c")
    with contextlib.suppress(httpx.ReadTimeout):
        body = {"id": name, "data": "x" * 300_000}
        ws.http.post("/tools/process_write", json=body, timeout=httpx.Timeout(9.0, read=0.3))
    ws.put("go")
    ws.ok("process_close_stdin", id=name)
    assert wait(ws, name)["stdout"].strip() == "300000"


# ----------------------------------------------------------------------------------------------------------- terminals


def test_control_c_reaches_the_foreground(ws: Server) -> None:
    """§7 pty: the terminal is the controlling one."""
    name = detach(ws, "trap 'echo caught' INT; echo ready; sleep 500; echo after", pty=True)
    eventually(lambda: "ready" in ws.ok("process_output", id=name)["stdout"])
    ws.ok("process_write", id=name, data="\x03")
    answer = wait(ws, name)
    assert "caught" in answer["stdout"]
    assert "after" in answer["stdout"]


@pytest.mark.parametrize("typed", ["", "half a line", "a line\n"])
def test_closing_a_terminals_input(ws: Server, typed: str) -> None:
    name = detach(ws, "stty -echo; echo ready; cat; echo end", pty=True)
    eventually(lambda: "ready" in ws.ok("process_output", id=name)["stdout"])
    ws.ok("process_write", id=name, data=typed)
    ws.ok("process_close_stdin", id=name)
    assert wait(ws, name)["stdout"].replace("\r\n", "\n") == f"ready\n{typed}end\n"
    assert name in ws.fails(500, "process_write", id=name, data="x")


def test_a_job_on_a_terminal_has_no_input(ws: Server) -> None:
    answer = run(ws, "[ -t 0 ] || echo none; cat; echo $PAGER $GIT_PAGER; echo there >/dev/tty", pty=True)
    assert answer["stdout"].split() == ["none", "cat", "cat", "there"]


def test_a_pager_that_was_asked_for(ws: Server) -> None:
    assert run(ws, "echo $PAGER", pty=True, env={"PAGER": "less"})["stdout"].strip() == "less"


def test_the_last_words_on_a_terminal(ws: Server) -> None:
    for turn in range(20):
        assert run(ws, f"seq 1 300; echo last {turn}", pty=True)["stdout"].endswith(f"last {turn}\r\n")


# ------------------------------------------------------------------------------------------------------------ the end


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_ends_everything(serve: Callable[..., Server], how: int) -> None:
    """§9: TERM to everything, two seconds, KILL; exit status 0; calls under way are answered."""
    server = serve("--capsule", "off")
    detach(server, "trap 'touch cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    stubborn = detach(server, "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done")
    pid = int(eventually(lambda: (server.root / "pid").exists() and (server.root / "pid").read_text()))
    assert stubborn
    with concurrent.futures.ThreadPoolExecutor() as pool:
        job = pool.submit(server.ok, "exec", cmd="echo part; touch begun; sleep 500")
        eventually((server.root / "begun").exists)
        server.process.send_signal(how)
        assert job.result(20)["stdout"] == "part\n"
    assert server.process.wait(20) == 0
    assert (server.root / "cleaned").exists()
    assert not pathlib.Path(f"/proc/{pid}").exists()


def test_half_a_request_holds_no_process(ws: Server) -> None:
    """Whoever sends half a call and leaves starts nothing."""
    with socket.create_connection(("127.0.0.1", ws.port)) as one:
        one.sendall(
            f"POST /tools/exec HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ws.token}\r\nContent-Length: 100\r\n\r\n"
            '{"cmd": "touch made"'.encode()
        )
    assert ws.ok("exec", cmd="true")["exit_code"] == 0
    assert not (ws.root / "made").exists()
