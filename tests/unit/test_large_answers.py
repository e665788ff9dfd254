"""The memory of large answers: first come first served, given back whatever becomes of the call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolserver.calls.client import Client
from toolserver.calls.large_answers import AnswerMemory, ClientLeft, Share


class Leaving(Client):
    """A client that leaves when the test says so."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

        async def leave() -> None:
            await self.left.wait()

        super().__init__(leave)


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_in_their_order() -> None:
    """A small call does not overtake a large one that waits, though there would be room for it."""

    async def scenario() -> None:
        memory = AnswerMemory(100)
        first = await memory.take(60, Client())
        order: list[int] = []

        async def later(size: int) -> Share:
            share = await memory.take(size, Client())
            order.append(size)
            return share

        large, small = asyncio.ensure_future(later(70)), asyncio.ensure_future(later(10))
        await settle()
        assert order == []
        first.shrink(40)
        await settle()
        assert order == []
        first.shrink(20)
        await settle()
        assert order == [70, 10]
        for share in (first, await large, await small):
            share.release()
            share.release()
        assert memory.free == 100

    asyncio.run(scenario())


def test_more_than_there_is() -> None:
    """A call that wants more than the whole gets the whole, alone."""

    async def scenario() -> None:
        memory = AnswerMemory(100)
        share = await memory.take(1000, Client())
        assert (share.size, memory.free) == (100, 0)

    asyncio.run(scenario())


def test_the_end_of_a_call_gives_back() -> None:
    async def scenario() -> None:
        memory = AnswerMemory(100)
        client = Client()
        await memory.take(30, client)
        await memory.take(30, client)
        client.close()
        assert memory.free == 40
        client.end()
        client.end()
        assert memory.free == 100

    asyncio.run(scenario())


@pytest.mark.parametrize("how", ["leaves", "is cancelled"])
def test_one_that_waits_no_longer(how: str) -> None:
    """It takes nothing, and those after it go on."""

    async def scenario() -> None:
        memory = AnswerMemory(100)
        held = await memory.take(50, Client())
        client = Leaving()
        waiting = asyncio.ensure_future(memory.take(80, client))
        after = asyncio.ensure_future(memory.take(40, Client()))
        await settle()
        assert not after.done()
        if how == "leaves":
            client.left.set()
            with pytest.raises(ClientLeft):
                await waiting
        else:
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        await after
        held.release()
        client.end()
        assert memory.free == 60

    asyncio.run(scenario())


def test_one_that_is_cancelled_as_it_is_granted() -> None:
    async def scenario() -> None:
        memory = AnswerMemory(100)
        held = await memory.take(100, Client())
        waiting = asyncio.ensure_future(memory.take(80, Client()))
        await settle()
        held.release()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert memory.free == 100

    asyncio.run(scenario())


STEPS = st.lists(st.tuples(st.sampled_from(["take", "leave", "end", "shrink"]), st.integers(0, 120)), max_size=40)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_nothing_is_lost(steps: list[tuple[str, int]]) -> None:
    """Whatever calls come, leave and end: what is free and what is held make up the budget, nobody waits in vain."""

    async def scenario() -> None:
        memory = AnswerMemory(100)
        clients: list[Leaving] = []
        tasks: list[asyncio.Task[Share]] = []
        ended: list[Callable[[], None]] = []
        for what, number in steps:
            if what == "take":
                client = Leaving()
                clients.append(client)
                tasks.append(asyncio.ensure_future(memory.take(number, client)))
                ended.append(client.end)
            elif clients:
                at = number % len(clients)
                if what == "leave":
                    clients[at].left.set()
                elif what == "end" and tasks[at].done():
                    ended[at]()
                elif what == "shrink" and tasks[at].done() and tasks[at].exception() is None:
                    tasks[at].result().shrink(number // 2)
            await settle()
            shares = [task.result() for task in tasks if task.done() and task.exception() is None]
            assert memory.free + sum(share.size for share in shares) == 100
            assert memory.free >= 0
        for at, task in enumerate(tasks):  # all that hold something end: everybody gets their turn
            await asyncio.wait([task], timeout=10)
            assert task.done()
            ended[at]()
            clients[at].close()
            task.exception()
        assert memory.free == 100

    asyncio.run(scenario())
