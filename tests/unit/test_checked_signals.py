"""Signals to processes that were found in /proc: whoever has got the pid meanwhile is spared."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from toolserver.processes.capsule import child as module
from toolserver.processes.capsule.child import CapsuleChild
from toolserver.processes.procfs import open_checked, status
from toolserver.processes.restart import orphans


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that nothing here may end."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        assert process.poll() is None
        process.kill()


def capsule(first: int) -> CapsuleChild:
    """A stand-in for bubblewrap, which names this process as the first one inside."""
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    read, write = os.pipe2(os.O_NONBLOCK)
    os.write(write, b'{"child-pid": %d}\n' % first)
    os.close(write)
    process.returncode = 0  # the child is reaped by the object under test
    return CapsuleChild(process.pid, read)


def ended(child: CapsuleChild) -> None:
    child.kill()
    child.status()
    child.reap()


def test_a_process_that_is_not_inside_gets_no_signal(
    bystander: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pid was that of a process inside when /proc was read; it is not the first one inside either."""
    child = capsule(bystander.pid)
    monkeypatch.setattr(module, "descendants", lambda pid: [bystander.pid])
    child.terminate()
    ended(child)


def test_a_process_inside_gets_it() -> None:
    """The check follows the parents up to the first one; the first one itself is not signalled."""
    command = ["sh", "-c", "sh -c 'sleep 1000; :'; echo ended"]
    with subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) as first:
        while len(module.descendants(first.pid)) < 2:
            os.sched_yield()
        child = capsule(first.pid)
        child.terminate()
        assert first.communicate()[0] == b"ended\n"
        ended(child)


def test_an_orphan_whose_pid_is_anothers(bystander: subprocess.Popen[bytes]) -> None:
    now = status(bystander.pid)
    assert now is not None
    older = type(now)(now.pid, now.name, now.state, now.parent, now.group, now.session, now.start - 1)
    before = set(os.listdir("/proc/self/fd"))
    assert orphans._send(older) is None
    assert open_checked(bystander.pid, lambda found: False) is None
    assert set(os.listdir("/proc/self/fd")) == before
