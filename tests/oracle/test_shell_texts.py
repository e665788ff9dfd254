"""A command's text against the real `sh -c`: output, messages and exit codes, for each shell that may be /bin/sh."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolserver.processes import shell as shells
from toolserver.processes.shell import LIBRARY_FD, SHORT, TEXT_FD, Shell, shell

LONG = "\n#" + "x" * SHORT
"""Makes any text too long for a variable."""
ENV = {b"PATH": b"/usr/bin:/bin", b"A": b"a", b"_toolserver_command": b"the caller's own"}
TEXTS = [
    "nosuch", "echo a; nosuch b", "\n\nnosuch", "nosuch | cat", "(nosuch)", "$(nosuch)", "./nosuch", "/tmp",
    "echo `nosuch`", "if", "if then", "echo 'a", 'echo "a', "echo $(", "echo ${", "a)", "fi", "for", "{ echo a",
    "case x in", ";;", "&&", "echo a &&", "! ", "f() {", "cat <<E\nbody", "cat <<E\nbody\nE\nnosuch",
    "echo a\\", "# only", "", "   ", "\n", "exit 3", "exit x", "return 4", "false", "set -e; false; echo b",
    "set -u; echo $nothing", "echo ${x?is missing}", "cd nowhere", "cd nowhere || echo b", "shift 9",
    "unset -x", "readonly A; A=2", ". nosuch", "exec nosuch", "exec echo c; echo d",
    "trap 'echo bye $?' EXIT; (exit 5)", "trap 'echo bye' EXIT; exit 6", "kill -TERM $$", "kill -KILL $$",
    "(kill -KILL $$)", "eval nosuch", "eval 'echo a", "alias x=nosuch\nx", "f() { nosuch; }\nf",
    "echo $0 $# $*", "echo $LINENO\necho $LINENO", "set", "env | sort", "export -p", "echo $LD_PRELOAD",
    "command -v nosuch", "cat /dev/stdin; echo end", "wait; echo $?", "sleep 0 & wait $!; echo $?", "umask -x",
    "getopts", "test 1 -eq x", "printf '%d' x", "ulimit -x", "read x; echo $?", "hash nosuch", "type nosuch",
    "times x >/dev/null", "echo \xe9 ≤ 😀",
]  # fmt: skip


def finished(one: Shell) -> tuple[int, str, str]:
    """Run a shell to its end, without input; return how it ended and what it printed on each stream."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull) as null:
        pairs = [(null.fileno(), 0), (out.fileno(), 1), (err.fileno(), 2), *one.passed]
        actions = [(os.POSIX_SPAWN_DUP2, *pair) for pair in pairs]
        pid = os.posix_spawn(one.argv[0], one.argv, one.env, file_actions=actions)
        if one.script >= 0:
            os.close(one.script)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        err.seek(0)
        mask = str(pid)  # $$ is in what a shell prints of its variables
        return status, out.read().decode().replace(mask, "PID"), err.read().decode().replace(mask, "PID")


def check(text: str) -> None:
    for one in (text, text + LONG):
        real = Shell((shells.SHELL, b"-c", one.encode(), b"sh"), ENV, (), -1)
        assert finished(shell(one.encode(), ENV)) == finished(real), one[:200]


@pytest.fixture(scope="module", params=["sh", "dash", "bash", "busybox"], autouse=True)
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let a shell be /bin/sh."""
    found = shutil.which(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed")
    link = tmp_path_factory.mktemp("bin") / "sh"
    link.symlink_to(found)
    patch = pytest.MonkeyPatch()
    patch.setattr(shells, "SHELL", os.fsencode(link))
    shells._library.cache_clear()
    yield
    patch.undo()
    shells._library.cache_clear()


@pytest.fixture(autouse=True)
def empty(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_against_the_real_shell(text: str) -> None:
    check(text)


WORDS = [
    "echo a", "nosuch", "exit 3", "false", "true", "if", "then", "else", "fi", "for x in 1 2", "do", "done",
    "while", "case x in", "esac", "(", ")", "{", "}", ";", ";;", "&", "&&", "||", "|", "\n", "'", '"', "`",
    "$(", "${", "$x", "\\", "<<E", "E", "!", "set -e", "set -u", "trap 'echo t' EXIT", "f()", "#", "return 2",
    "x=1", "A=b nosuch", "wait",
]  # fmt: skip


@given(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_against_the_real_shell(text: str) -> None:
    if "while" in text or "&" in text.replace("&&", ""):  # no endless loops; nothing that prints after the end
        return
    check(text)


@pytest.mark.parametrize("more", ["", LONG])
def test_nothing_reaches_the_commands(more: str) -> None:
    """Neither the variables nor the descriptors of the server are there, for the shell's own and for what it starts."""
    numbers = (LIBRARY_FD, TEXT_FD)
    look = f"import os; print(sorted(os.environ), [n for n in {numbers} if os.path.exists(f'/proc/self/fd/{{n}}')])"
    own = " && ".join(f"[ ! -e /proc/$$/fd/{number} ]" for number in numbers)
    text = f'{sys.executable} -I -S -c "{look}"; {own} && echo none{more}'
    code, out, err = finished(shell(text.encode(), ENV))
    real = finished(Shell((shells.SHELL, b"-c", text.encode(), b"sh"), ENV, (), -1))
    assert (code, out, err) == real
    assert out.endswith(" []\nnone\n")


@pytest.mark.parametrize("more", ["", LONG])
def test_the_text_stands_on_no_command_line(more: str) -> None:
    text = f"tr '\\0' ' ' </proc/$$/cmdline; : of-this-text{more}"
    code, out, err = finished(shell(text.encode(), ENV))
    assert (code, err) == (0, "")
    assert out
    assert "of-this-text" not in out


@pytest.mark.parametrize("given", [b"", b"/no/such/library.so", b"libm.so.6"])
def test_a_preload_of_the_callers_own_stays(given: bytes) -> None:
    env = ENV | {b"LD_PRELOAD": given}
    text = b'echo "<${LD_PRELOAD-none}>" 2>/dev/null'
    assert finished(shell(text, env))[:2] == finished(Shell((shells.SHELL, b"-c", text, b"sh"), env, (), -1))[:2]


@pytest.mark.parametrize(
    "text", ["echo a; exit 3", "false", "echo $0 $# $*", "cat /dev/stdin; echo end", "echo 'a", "env | sort"]
)
def test_the_placeholder_does_the_work_alone(text: str) -> None:
    """Where the library is not loaded, as in a static shell, the text runs all the same, but for its messages."""
    for one in (text, text + LONG):
        real = Shell((shells.SHELL, b"-c", one.encode(), b"sh"), ENV, (), -1)
        assert finished(shells._shell(one.encode(), ENV, -1))[:2] == finished(real)[:2]


def test_the_library_is_used_here() -> None:
    """Without it every test above would judge the placeholder, whose messages differ."""
    assert shells._library() >= 0
