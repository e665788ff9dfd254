"""The threads that searches share: who gets a turn, what stops a job, what is told."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from toolserver.search.scheduler import Stopped, Threads


class Endless:
    """Work that ends only when it is stopped."""

    width = 2

    def __init__(self) -> None:
        self.stopped = threading.Event()

    def work(self, index: int, seconds: float) -> bool:
        return not self.stopped.wait(seconds)

    def stop(self) -> None:
        self.stopped.set()


class Short:
    """Work of a few turns that are over at once."""

    width = 2

    def __init__(self, turns: int = 5) -> None:
        self.left = [turns] * self.width

    def work(self, index: int, seconds: float) -> bool:
        self.left[index] -= 1
        return self.left[index] > 0

    def stop(self) -> None:
        self.left = [0] * self.width


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads(2, large=4)
    yield made
    made.close()


def stays(callback: Callable[[], None]) -> None:
    """The client of a call that nobody gives up."""


async def end(*tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_a_short_job_passes_long_ones(threads: Threads) -> None:
    async def main() -> None:
        long = [asyncio.create_task(threads.run(Endless, id, stays)) for _ in range(3)]
        await asyncio.sleep(0)
        for _ in range(3):
            async with asyncio.timeout(20):
                assert await threads.run(Short, lambda job: job.left, stays) == [0, 0]
        assert not any(task.done() for task in long)
        await end(*long)

    asyncio.run(main())


def test_a_small_job_needs_no_place(threads: Threads) -> None:
    async def main() -> None:
        long = [asyncio.create_task(threads.run(Endless, id, stays)) for _ in range(4)]
        await asyncio.sleep(0)
        late = asyncio.create_task(threads.run(Short, lambda job: job.left, stays))
        async with asyncio.timeout(20):
            assert await threads.run(Short, lambda job: job.left, stays, large=False) == [0, 0]
        assert not late.done()
        await end(long[0])
        async with asyncio.timeout(20):
            assert await late == [0, 0]
        await end(*long)

    asyncio.run(main())


def test_long_jobs_share(threads: Threads) -> None:
    class Counted(Endless):
        turns = 0

        def work(self, index: int, seconds: float) -> bool:
            self.turns += 1
            return super().work(index, seconds / 50) and min(job.turns for job in jobs) < 20

    jobs = [Counted() for _ in range(4)]

    async def main() -> None:
        async with asyncio.timeout(20):
            await asyncio.gather(*(threads.run(lambda job=job: job, id, stays) for job in jobs))

    asyncio.run(main())
    assert max(job.turns for job in jobs) < 3 * min(job.turns for job in jobs)


def test_a_client_that_leaves(threads: Threads) -> None:
    async def main() -> None:
        leave: list[Callable[[], None]] = []
        run = asyncio.create_task(threads.run(Endless, id, leave.append))
        await asyncio.sleep(0)
        leave[0]()
        async with asyncio.timeout(20):
            with pytest.raises(Stopped):
                await run

    asyncio.run(main())


def test_what_fails_is_told(threads: Threads) -> None:
    class Failing(Endless):
        def work(self, index: int, seconds: float) -> bool:
            if index:
                raise ValueError("index")
            return super().work(index, seconds)

    def refuse() -> Endless:
        raise ValueError("prepare")

    async def main() -> None:
        for prepare, said in ((refuse, "prepare"), (Failing, "index")):
            async with asyncio.timeout(20):
                with pytest.raises(ValueError, match=said):
                    await threads.run(prepare, id, stays)

    asyncio.run(main())
