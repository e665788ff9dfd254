"""Commands in the capsule over HTTP, where the kernel allows one: what is covered is named, not met by accident."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from folders import deep

if TYPE_CHECKING:
    from kit import Server


def test_a_cwd_that_is_covered(serve: Callable[..., Server]) -> None:
    """main's `.agents` is empty inside; a directory below it cannot be gone to, and the answer says what to do."""
    server = serve()
    server.put(".agents/alpha/here", "x")
    server.put(".agents-like/here", "x")
    assert server.ok("exec", cmd="ls", cwd=".agents-like")["stdout"] == "here\n"
    assert server.ok("exec", cmd="ls", tree="alpha")["stdout"] == "here\n"
    if server.http.get("/tools").json()["fence"]["capsule"] != "active":
        assert server.ok("exec", cmd="ls", cwd=".agents/alpha")["stdout"] == "here\n"
        return
    for cmd in ("ls", ["ls"]):
        assert "`tree`" in server.fails(400, "exec", cmd=cmd, cwd=".agents/alpha")
    assert server.ok("exec", cmd="ls -A", cwd=".agents")["stdout"] == ""


@pytest.mark.parametrize("more", ["", "\n#" + "x" * 5000])
@pytest.mark.parametrize(
    "text", ["nosuch", "if then", "ls /proc/self/fd | tr '\\n' ' '", "env | grep -e ^LD_ -e ^_tool"]
)
def test_a_text_runs_as_sh_c_would_run_it(module_server: Server, text: str, more: str) -> None:
    real = subprocess.run(["sh", "-c", text + more, "sh"], capture_output=True, text=True, check=False)
    answer = module_server.ok("exec", cmd=text + more)
    assert (answer["stdout"], answer["stderr"], answer["exit_code"]) == (real.stdout, real.stderr, real.returncode)
    pty = module_server.ok("exec", cmd=text + more, pty=True)
    assert pty["stdout"].replace("\r", "").rstrip("\n") == (real.stdout + real.stderr).rstrip("\n")


def test_bubblewrap_does_not_load_what_a_command_names(module_server: Server) -> None:
    """It runs outside the capsule: a library of the workspace that is loaded into it would have left the capsule."""
    if module_server.http.get("/tools").json()["fence"]["capsule"] != "active":
        pytest.skip("no capsule here")
    told = module_server.ok("exec", cmd="true", env={"LD_DEBUG": "files"})["stderr"]
    assert "needed by" in told
    assert "bwrap" not in told
    answer = module_server.ok("exec", cmd=["env"], env={"LD_PRELOAD": "", "GLIBC_TUNABLES": "x=y"})
    assert {"LD_PRELOAD=", "GLIBC_TUNABLES=x=y"} <= set(answer["stdout"].splitlines())


def test_a_cwd_as_long_as_a_path_may_be(serve: Callable[..., Server]) -> None:
    """Bubblewrap goes there by the absolute path, which is too long; unwrapped no path is needed."""
    bare, server = serve("--capsule", "off"), serve()
    assert bare.ok("exec", cmd="ls", cwd=deep(bare.root))["stdout"] == "file\n"
    cwd = deep(server.root)
    if server.http.get("/tools").json()["fence"]["capsule"] == "active":
        assert "too long" in server.fails(400, "exec", cmd="ls", cwd=cwd)
    assert "too long" in bare.fails(400, "exec", cmd="ls", cwd="link/" + cwd.partition("/")[2])
