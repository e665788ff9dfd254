"""Streams' frames: the seam, whole characters, what a slow reader loses and is told, the bounds on what waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolserver._fast.ring import RING_SIZE
from toolserver.processes import subscribers as module
from toolserver.processes.output import Output
from toolserver.processes.subscribers import FRAME, MAX_FRAMES, Broadcast, QueuedBytes, Subscriber

Frames = list[dict[str, Any]]


class Printer:
    """Two outputs and their broadcast, as a process has them."""

    def __init__(self) -> None:
        self.outputs = {"stdout": Output(None), "stderr": Output(None)}
        self.queued_bytes = QueuedBytes()
        self.broadcast = Broadcast(self.outputs, self.queued_bytes)

    def say(self, data: bytes, stream: str = "stdout") -> None:
        self.outputs[stream].ring.append(data)
        if self.broadcast.listeners:
            self.broadcast.printed(self.outputs[stream])

    def open(self, since: int = 0, since_err: int = 0) -> Subscriber:
        return self.broadcast.subscribe({"stdout": since, "stderr": since_err})

    def exit(self) -> None:
        self.broadcast.finish(b'{"exit":0}')


async def rest(reader: Subscriber) -> Frames:
    """Return all frames that still come."""
    frames = []
    while (frame := await reader.next()) is not None:
        frames.append(json.loads(frame))
    return frames


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(main())


def text(frames: Frames, stream: str = "stdout") -> str:
    return "".join(frame["data"] for frame in frames if frame.get("stream") == stream)


def test_replay_then_live_then_the_exit() -> None:
    async def main() -> None:
        printer = Printer()
        printer.say(b"old")
        printer.say(b"err", "stderr")
        reader = printer.open()
        printer.say(b"new")
        printer.exit()
        assert await rest(reader) == [
            {"stream": "stdout", "data": "old"},
            {"stream": "stderr", "data": "err"},
            {"stream": "stdout", "data": "new"},
            {"exit": 0},
        ]

    run(main)


def test_an_open_reader_is_woken() -> None:
    async def main() -> None:
        printer = Printer()
        reader = printer.open()
        waiting = asyncio.create_task(reader.next())
        await asyncio.sleep(0)
        assert not waiting.done()
        printer.say(b"x")
        assert json.loads(await waiting or b"") == {"stream": "stdout", "data": "x"}

    run(main)


@pytest.mark.parametrize("since", range(8))
def test_joining_inside_a_character(since: int) -> None:
    """§12: a reader gets exactly the bytes from its offset on, also when that lies inside a character."""

    async def main() -> None:
        printer = Printer()
        whole = b"ab\xe2\x89\xa4cd"
        printer.say(whole[:4])
        reader = printer.open(since)
        other = printer.open(0)
        printer.say(whole[4:])
        printer.exit()
        begin = min(since, 4)  # past the end it starts live
        assert text(await rest(reader)) == whole[begin:].decode(errors="replace")
        assert text(await rest(other)) == whole.decode()

    run(main)


def test_an_unfinished_character_comes_with_the_exit() -> None:
    async def main() -> None:
        printer = Printer()
        reader = printer.open()
        printer.say(b"a\xe2\x89")
        printer.exit()
        assert await rest(reader) == [
            {"stream": "stdout", "data": "a"}, {"stream": "stdout", "data": "\ufffd"}, {"exit": 0},
        ]  # fmt: skip

    run(main)


@pytest.mark.parametrize("data", [b"x" * 300_000, "≤".encode() * 100_000, b"\xff" * 100_000, b"a\xff" * 90_000])
def test_frames_hold_at_most_64_kib_of_whole_characters(data: bytes) -> None:
    async def main() -> None:
        printer = Printer()
        printer.say(data[:70_001])
        reader = printer.open()
        for at in range(70_001, len(data), 65_536):
            printer.say(data[at : at + 65_536])
        printer.exit()
        frames = await rest(reader)
        assert text(frames) == data.decode(errors="replace")
        assert max(len(frame.get("data", "").encode()) for frame in frames) <= FRAME

    run(main)


def test_behind_the_ring() -> None:
    async def main() -> None:
        printer = Printer()
        printer.say(b"x" * 1000 + b"y" * RING_SIZE)
        reader = printer.open(10, 0)
        printer.exit()
        frames = await rest(reader)
        assert frames[0] == {"dropped": 990, "dropped_err": 0}
        assert text(frames) == "y" * RING_SIZE

    run(main)


def test_small_frames_that_wait_are_joined() -> None:
    """A reader that sleeps through a hundred thousand small lines has lost nothing."""

    async def main() -> None:
        printer = Printer()
        reader = printer.open()
        for number in range(100_000):
            printer.say(b"line %d\n" % number)
        printer.exit()
        frames = await rest(reader)
        assert text(frames) == "".join(f"line {number}\n" for number in range(100_000))
        assert len(frames) < 50

    run(main)


def test_the_newest_frames_are_lost_and_told() -> None:
    async def main() -> None:
        printer = Printer()
        reader, awake = printer.open(), printer.open()
        got: Frames = []
        for number in range(MAX_FRAMES + 100):
            printer.say(b"%d." % number, ("stdout", "stderr")[number % 2])
            got.append(json.loads(await awake.next() or b""))
        printer.exit()
        frames = await rest(reader)
        kept = text(frames) + text(frames, "stderr")
        assert kept == text(got[:MAX_FRAMES]) + text(got[:MAX_FRAMES], "stderr")
        assert frames[-2:] == [{"dropped_frames": 100}, {"exit": 0}]
        assert len(got) == MAX_FRAMES + 100

    run(main)


def test_after_a_loss_it_goes_on_where_it_is() -> None:
    async def main() -> None:
        printer = Printer()
        reader = printer.open()
        for number in range(MAX_FRAMES + 5):
            printer.say(b"%d." % number, ("stdout", "stderr")[number % 2])
        for _ in range(10):
            await reader.next()
        printer.say(b"again")
        printer.exit()
        frames = await rest(reader)
        assert frames[-3:] == [{"dropped_frames": 5}, {"stream": "stdout", "data": "again"}, {"exit": 0}]

    run(main)


def test_the_bytes_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred readers that stall on a flood keep no more than the server's share."""
    monkeypatch.setattr(module, "MAX_BYTES", 8 << 20)

    async def main() -> None:
        printer = Printer()
        readers = [printer.open() for _ in range(20)]
        for _ in range(100):
            printer.say(b"z" * FRAME)
        assert printer.queued_bytes.bytes <= (8 << 20) + 20 * 16 * FRAME
        printer.exit()
        for reader in readers:
            frames = await rest(reader)
            lost = sum(frame.get("dropped_frames", 0) for frame in frames)
            assert len(text(frames)) + lost * FRAME == 100 * FRAME
            assert lost
        assert printer.queued_bytes.bytes == 0

    run(main)


def test_a_reader_that_leaves_gives_back_its_share() -> None:
    async def main() -> None:
        printer = Printer()
        reader = printer.open()
        printer.say(b"z" * 1000)
        printer.broadcast.unsubscribe(reader)
        assert (printer.queued_bytes.bytes, printer.broadcast.subscribers, printer.broadcast.listeners) == (
            0,
            set(),
            set(),
        )
        assert await reader.next() is None

    run(main)


actions = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.sampled_from(["stdout", "stderr"]), st.integers(0, 90_000)),
        st.tuples(st.just("open"), st.integers(0, 400_000), st.integers(0, 400_000)),
        st.tuples(st.just("take"), st.integers(0, 30), st.integers(1, 6)),
    ),
    max_size=30,
)
PATTERN = ("zeile ≤ 😀 é\n" * 30_000).encode()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(actions)
def test_no_byte_is_lost_or_repeated(todo: list[tuple[Any, ...]]) -> None:
    async def main() -> None:
        printer = Printer()
        said = {"stdout": b"", "stderr": b""}
        readers: list[tuple[Subscriber, dict[str, int], Frames]] = []
        for action in todo:
            if action[0] == "say":
                _, stream, size = action
                data = PATTERN[len(said[stream]) : len(said[stream]) + size]
                printer.say(data, stream)
                said[stream] += data
            elif action[0] == "open":
                since = {"stdout": min(action[1], len(said["stdout"])), "stderr": min(action[2], len(said["stderr"]))}
                readers.append((printer.open(action[1], action[2]), since, []))
            elif readers:
                reader, _, frames = readers[action[1] % len(readers)]
                for _ in range(action[2]):
                    if reader._queue:
                        frames.append(json.loads(await reader.next() or b""))
        printer.exit()
        for reader, since, frames in readers:
            frames += await rest(reader)
            for stream, data in said.items():
                assert text(frames, stream) == data[since[stream] :].decode(errors="replace")
            assert frames[-1] == {"exit": 0}
        assert printer.queued_bytes.bytes == 0

    run(main)
