"""Kills a child at each step between it and the kernel in turn: before and after every system call, by ptrace."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Callable, Iterator

TRACEME, SYSCALL = 0, 24

_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_libc.ptrace.restype = ctypes.c_long


def allowed() -> bool:
    """Whether a child may be traced here."""
    child = _stopped(lambda: None)
    if child is None:
        return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def _stopped(job: Callable[[], None]) -> int | None:
    """Fork a child that is stopped just before it does its job; None where tracing is refused."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if _libc.ptrace(TRACEME, 0, None, None) == 0:
                os.kill(os.getpid(), signal.SIGSTOP)
                job()
                status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return child if os.WIFSTOPPED(status) else None


def killed_at(job: Callable[[], None], step: int) -> bool:
    """Run a job in a child and kill it at its step; False where it ended before, which it must without a fault."""
    child = _stopped(job)
    assert child is not None
    for _ in range(step):
        assert _libc.ptrace(SYSCALL, child, None, None) == 0
        _, status = os.waitpid(child, 0)
        if not os.WIFSTOPPED(status):
            assert status == 0, f"the job failed: {status}"
            return False
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    return True


def every_step(prepare: Callable[[], None], job: Callable[[], None], stride: int = 1) -> Iterator[int]:
    """Prepare and kill at step 1, 1 + stride, … until the job ends; the caller looks at what each kill left."""
    step = 1
    while True:
        prepare()
        if not killed_at(job, step):
            return
        yield step
        step += stride
