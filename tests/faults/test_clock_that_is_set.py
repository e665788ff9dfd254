"""The clock is set while the server works: nothing ends early, hangs or is lost."""

from __future__ import annotations

import mmap
import pathlib
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

DAY_S = 86_400
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static const volatile long long *ahead; /* seconds */

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TEST_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = fd < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
    if (at != MAP_FAILED) ahead = at;
}

int clock_gettime(clockid_t clock, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int got = real(clock, out);
    if (got == 0 && ahead && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += *ahead;
    return got;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""
"""Sets the clock of one program, so that the machine's own stays as it is."""


class Clock:
    """The wall clock of a server that runs with `env`."""

    def __init__(self, folder: pathlib.Path) -> None:
        compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        assert compiler, "a C compiler built the kernels"
        (folder / "shim.c").write_text(SHIM)
        subprocess.run(
            [compiler, "-shared", "-fPIC", "-O1", "-o", folder / "shim.so", folder / "shim.c", "-ldl"], check=True
        )
        (folder / "ahead").write_bytes(bytes(mmap.PAGESIZE))
        with open(folder / "ahead", "r+b") as file:
            self._map = mmap.mmap(file.fileno(), mmap.PAGESIZE)
        self.env = {"LD_PRELOAD": str(folder / "shim.so"), "TEST_CLOCK": str(folder / "ahead")}

    def set(self, seconds: int) -> None:
        """Set the clock so many seconds ahead of the machine's."""
        self._map[:8] = struct.pack("q", seconds)


@pytest.fixture
def clock(tmp_path: pathlib.Path) -> Clock:
    return Clock(tmp_path)


@pytest.fixture(params=[DAY_S, -DAY_S], ids=["a day forward", "a day back"])
def jump(request: pytest.FixtureRequest, clock: Clock) -> Callable[[], None]:
    """Set the clock, by the parameter, from what it was."""
    return lambda: clock.set(request.param)


@pytest.fixture
def server(serve, clock):
    return serve(env=clock.env)


def date(server) -> str:
    return server.http.get("/healthz").headers["date"]


def test_the_server_sees_the_clock_that_is_set(server, clock):
    """The test itself: without this none of the others would show anything."""
    before = date(server)
    clock.set(400 * DAY_S)
    time.sleep(1.1)  # the header is made once a second
    assert date(server)[12:16] != before[12:16]


def test_limits_of_time_are_kept(server, jump):
    """§7 a time limit, a promotion and a wait last as long as they say, whatever the clock says meanwhile."""
    start = time.monotonic()
    with ThreadPoolExecutor(3) as pool:
        limited = pool.submit(server.ok, "exec", cmd="printf a; sleep 60", timeout_ms=1500)
        promoted = pool.submit(server.ok, "exec", cmd="printf b; sleep 60", soft_ms=1500)
        time.sleep(0.5)
        jump()
        job = promoted.result()
        assert (job["promoted"], job["stdout_so_far"]) == (True, "b")
        answer = limited.result()
        assert (answer["exit_code"], answer["timed_out"], answer["stdout"]) == (-1, True, "a")
    assert 1.4 < time.monotonic() - start < 8
    assert all(1400 < row["ms"] < 8000 for row in (job, answer))
    start = time.monotonic()
    waited = server.ok("process_wait", id=job["id"], timeout_ms=400)
    assert (waited["state"], waited["timed_out"]) == ("running", True)
    assert 0.3 < time.monotonic() - start < 5
    server.ok("process_kill", id=job["id"])


def test_nothing_of_the_output_is_lost(server, jump):
    """§7, §12 output printed before and after, by offset; the duration is the time that passed."""
    name = server.ok("exec", cmd="for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done", detach=True)["id"]
    end = time.monotonic() + 10
    while server.ok("process_output", id=name)["stdout"] == "":
        assert time.monotonic() < end
    jump()
    ended = server.ok("process_wait", id=name)
    assert ended["exit_code"] == 0
    assert server.ok("process_output", id=name)["stdout"] == "".join(f"{at}\n" for at in range(1, 9))
    quick = server.ok("exec", cmd="sleep 0.2; echo done")
    assert quick["stdout"] == "done\n"
    (row,) = [row for row in server.ok("process_list")["processes"] if row["id"] == name]
    assert row["state"] == "exited"


def test_watches_go_on(server, jump):
    """§8 what changes after the clock was set is told, at once and once."""
    server.put("d/f", "old")
    watch = server.ok("watch", paths=["d"])["id"]
    jump()
    server.put("d/f", "new")
    server.put("d/g", "new")
    told: set[tuple[str, str]] = set()
    end = time.monotonic() + 10
    while {("d/g", "create"), ("d/f", "modify")} - told:
        assert time.monotonic() < end, told
        answer = server.ok("watch_poll", id=watch, timeout_ms=500)
        told |= {(event["path"], event["kind"]) for event in answer["events"]}


def test_searches_see_ignore_files_that_change(server, jump):
    """§6 what is remembered of git's files does not outlive them when their times are of another day."""
    server.git("init", "-q")
    server.put(".git/info/exclude", "*.log\n")
    server.put("a.log", "word\n")
    server.put("b.log", "word\n")
    assert server.ok("grep", pattern="word", mode="files")["files"] == []
    jump()
    server.put(".git/info/exclude", "a.log\n")
    assert server.ok("grep", pattern="word", mode="files")["files"] == ["b.log"]


def test_a_server_that_starts_on_another_day(serve, clock, jump):
    """§9 what was detached is there again under its id, also when the record is of tomorrow."""
    server = serve(env=clock.env)
    name = server.ok("exec", cmd="echo up; sleep 600", detach=True)["id"]
    time.sleep(0.6)  # so old that the stop ends it with TERM
    jump()
    server.restart()
    rows = {row["id"]: row["state"] for row in server.ok("process_list")["processes"]}
    assert rows[name] == "running"
    assert "restarted at" in server.ok("process_output", id=name)["stdout"]
    server.ok("process_kill", id=name)
