"""Threads that searches share: each search gets slices of time, those that had least first, so that none waits long."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from toolserver.errors import ToolError

SLICE_S = 0.05
"""Seconds that a worker of a search keeps a thread."""

R = TypeVar("R")


class Job(Protocol):
    """Work for a number of workers; `work` answers whether there is more to do for this one."""

    @property
    def width(self) -> int: ...
    def work(self, index: int, seconds: float) -> bool: ...
    def stop(self) -> None: ...


J = TypeVar("J", bound=Job)


class Stopped(ToolError):
    """The job was stopped before its end, since its caller left or the server stops."""

    def __init__(self) -> None:
        super().__init__("the search was stopped before its end")


class Run(Generic[J, R]):
    """A job under way. `prepare` makes it and `conclude` its result, both on a thread of the pool."""

    def __init__(self, prepare: Callable[[], J], conclude: Callable[[J], R]) -> None:
        self._prepare = prepare
        self._conclude = conclude
        self._lock = threading.Lock()
        self._job: J | None = None
        self._working = 1
        self._error: BaseException | None = None
        self._loop = asyncio.get_running_loop()
        self.stopped = False
        self.done: asyncio.Future[R] | None = self._loop.create_future()
        """Its result; None once nobody waits for it any more."""

    def stop(self) -> None:
        """Have it end soon, with `Stopped`; from any thread."""
        with self._lock:
            self.stopped = True
            if self._job is not None:
                self._job.stop()

    def leave(self) -> None:
        """Have it end, with nobody waiting: what it failed of knows the run, and would be kept as long as that."""
        self.stop()
        self.done = None

    def turn(self, index: int, again: Callable[[Run[J, R], int], None]) -> None:
        """Work for a slice of time, and queue up again where more is left to do."""
        try:
            if self._job is None:
                self._begin(again)
            assert self._job is not None
            if self._job.work(index, SLICE_S):
                again(self, index)
                return
        except BaseException as error:
            self._fail(error)
        self._leave()

    def _begin(self, again: Callable[[Run[J, R], int], None]) -> None:
        job = self._prepare()
        with self._lock:
            self._job = job
            self._working = job.width
            if self.stopped:
                job.stop()
        for index in range(1, job.width):
            again(self, index)

    def _fail(self, error: BaseException) -> None:
        with self._lock:
            self._error = self._error or error
            if self._job is not None:
                self._job.stop()

    def _leave(self) -> None:
        """The last worker tells the result."""
        with self._lock:
            self._working -= 1
            if self._working:
                return
        result: R | None = None
        try:
            if self._error is not None:
                raise self._error
            if self.stopped or self._job is None:
                raise Stopped()
            result = self._conclude(self._job)
        except BaseException as error:
            self._tell(self._set_exception, error)
        else:
            self._tell(self._set_result, result)
        self._job = self._error = None

    def _tell(self, tell: Callable[..., None], what: object) -> None:
        try:
            self._loop.call_soon_threadsafe(tell, what)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _set_result(self, result: R) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_result(result)

    def _set_exception(self, error: BaseException) -> None:
        if self.done is not None and not self.done.done():
            self.done.set_exception(error)


class Threads:
    """A thread for each core that this process may use, started with the first job if not before.

    Turns are fair queuing's: each is due when its worker has had its time, counted from when the job came, so a short
    job passes the long ones before it, and none is passed for ever. The jobs under way that are `large` in memory are
    bounded; one over the bound waits for the end of another, first come first served.
    """

    def __init__(self, count: int | None = None, large: int = 32) -> None:
        self.count = count or len(os.sched_getaffinity(0))
        self._turns: queue.PriorityQueue[tuple[float, int, tuple[Run[Any, Any], int] | None]] = queue.PriorityQueue()
        self._numbers = itertools.count()
        self._due = 0.0
        self._threads: list[threading.Thread] = []
        self._places = asyncio.Semaphore(large)
        self._runs: set[Run[Any, Any]] = set()
        self._ending = False

    async def run(
        self,
        prepare: Callable[[], J],
        conclude: Callable[[J], R],
        on_leave: Callable[[Callable[[], None]], None],
        *,
        large: bool = True,
    ) -> R:
        """Return what `conclude` makes of the job that `prepare` makes, once all its workers are done.

        `on_leave` is given what stops it. Raises what any of them raises, and `Stopped`.
        """
        async with self._places if large else contextlib.nullcontext():
            if self._ending:
                raise Stopped()
            run = Run(prepare, conclude)
            self._runs.add(run)
            on_leave(run.stop)
            self.start()
            self._put((run, 0), self._due)
            assert run.done is not None
            try:
                return await run.done
            finally:
                self._runs.discard(run)
                run.leave()

    def stop(self) -> None:
        """Stop what runs, and take no more."""
        self._ending = True
        for run in list(self._runs):
            run.stop()

    def close(self) -> None:
        """Stop what runs and end the threads."""
        self.stop()
        for _ in self._threads:
            self._put(None, math.inf)
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def start(self) -> None:
        """Start the threads, unless they run; without a job they sleep."""
        for number in range(len(self._threads), self.count):
            thread = threading.Thread(target=self._serve, name=f"search-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _put(self, turn: tuple[Run[Any, Any], int] | None, due: float) -> None:
        self._turns.put((due, next(self._numbers), turn))

    def _serve(self) -> None:
        while self._turn():
            pass

    def _turn(self) -> bool:
        """Give the turn that is due first; nothing of it lives on here until the next one."""
        due, _, turn = self._turns.get()
        if turn is None:
            return False
        self._due = due  # of threads that set it at once either is right: it only says where a new job comes in
        began = time.monotonic()
        run, index = turn
        run.turn(index, lambda run, index: self._put((run, index), due + time.monotonic() - began))
        return True
