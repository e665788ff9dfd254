"""A handler learns that its client left; a fault of the server tells nothing; a stop waits for nobody."""

from __future__ import annotations

import asyncio
import pathlib
import re

import pytest
from inside import Nothing, connect, serving

from toolserver.calls.call import Answer, Call
from toolserver.calls.client import Client

LIMIT_S = 10.0


def within(what: object) -> object:
    """Run a coroutine, at most so long."""
    return asyncio.run(asyncio.wait_for(what, LIMIT_S))


def test_a_handler_learns_that_its_client_left(tmp_path: pathlib.Path) -> None:
    async def scenario() -> None:
        waiting, left = asyncio.Event(), asyncio.Event()

        async def tool(call: Call, args: Nothing) -> Answer:
            assert not call.client.gone
            call.client.on_leave(left.set)
            waiting.set()
            await left.wait()
            assert call.client.gone
            late: list[str] = []
            call.client.on_leave(lambda: late.append("at once"))
            assert late == ["at once"]
            return {}

        async with serving(tmp_path, wait=tool) as (port, _):
            _, writer = await connect(port, "wait")
            await waiting.wait()
            writer.close()
            await left.wait()

    within(scenario())


def test_an_answer_is_not_a_leaving(tmp_path: pathlib.Path) -> None:
    """Neither the answer nor the end of the connection after it calls what waits for a client to leave."""

    async def scenario() -> None:
        called: list[int] = []

        async def tool(call: Call, args: Nothing) -> Answer:
            call.client.on_leave(lambda: called.append(1))
            await asyncio.sleep(0)
            return {"said": "yes"}

        async with serving(tmp_path, quick=tool) as (port, _):
            reader, writer = await connect(port, "quick")
            assert b"200 OK" in await reader.readline()
            writer.close()
            await writer.wait_closed()
            other, others_writer = await connect(port, "quick")
            assert b"200 OK" in await other.readline()
            others_writer.close()
        assert called == []

    within(scenario())


def test_nobody_watches_unless_asked() -> None:
    async def scenario() -> None:
        async def never() -> None:
            raise AssertionError("watched")

        before = asyncio.all_tasks()
        client = Client(never)
        assert not client.gone
        client.close()
        assert asyncio.all_tasks() == before

    within(scenario())


def test_a_fault_of_the_server(tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture) -> None:
    """500 `internal error` with an id; the log has the id and the places, and no text of the exception."""

    async def scenario() -> bytes:
        async def tool(call: Call, args: Nothing) -> Answer:
            try:
                raise ValueError("hippopotamus")
            except ValueError as error:
                raise OSError(28, "walrus", "/secret") from error

        async with serving(tmp_path, broken=tool) as (port, _):
            reader, writer = await connect(port, "broken")
            answer = await reader.readuntil(b"}")
            writer.close()
            return answer

    answer = within(scenario())
    assert isinstance(answer, bytes)
    assert answer.startswith(b"HTTP/1.1 500 ")
    found = re.search(rb'\{"error":"internal error ([0-9a-f]+)"\}', answer)
    assert found is not None
    assert b"Traceback" not in answer
    [record] = [one for one in caplog.records if one.message == "internal error"]
    from toolserver.log import JsonFormatter

    line = JsonFormatter().format(record)
    assert found[1].decode() in line
    assert "test_clients_that_leave.py" in line
    assert "builtins.ValueError" in line
    assert "builtins.OSError ENOSPC" in line
    assert "\n" not in line
    for text in ("hippopotamus", "walrus", "/secret"):
        assert text not in line.replace('raise ValueError(\\"hippopotamus\\")', "").replace(
            'raise OSError(28, \\"walrus\\", \\"/secret\\")', ""
        )


def test_a_stop_waits_for_an_answer_under_way(tmp_path: pathlib.Path) -> None:
    async def scenario() -> bytes:
        running, go = asyncio.Event(), asyncio.Event()

        async def tool(call: Call, args: Nothing) -> Answer:
            running.set()
            await go.wait()
            return {"last": True}

        async with serving(tmp_path, slow=tool) as (port, server):
            reader, writer = await connect(port, "slow")
            await running.wait()
            server.stop()
            go.set()
            answer = await reader.read()
            writer.close()
            return answer

    answer = within(scenario())
    assert isinstance(answer, bytes)
    assert b"connection: close" in answer
    assert answer.endswith(b'{"last":true}')


def test_a_stop_gives_up_a_call_that_does_not_end(tmp_path: pathlib.Path) -> None:
    async def scenario() -> str:
        running = asyncio.Event()
        ended = "no"

        async def tool(call: Call, args: Nothing) -> Answer:
            nonlocal ended
            running.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended = "cancelled"
                raise
            return {}

        async with serving(tmp_path, endless=tool) as (port, server):
            _, writer = await connect(port, "endless")
            await running.wait()
            server.stop()
            server.stop()  # the second one waits for nothing
            writer.close()
        return ended

    assert within(scenario()) == "cancelled"
