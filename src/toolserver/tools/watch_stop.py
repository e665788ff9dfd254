"""The tool `watch_stop`: end a watch."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Tool


class WatchStopArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `watch_stop`."""

    id: Annotated[str, Meta(description="The watch's id, such as w1, as watch returned it.")]


async def run(call: Call, args: WatchStopArguments) -> Answer:
    """End a watch and its command; the same again for one that is stopped."""
    watch = call.services.watches.get(call.tree.name, args.id)
    await watch.stop()
    return {"state": watch.state}


TOOL = Tool(
    "watch_stop",
    "End a watch, and its command with everything the command started. Returns {state: stopped}, also when it had "
    "ended before; its events can be read with watch_poll for 10 more minutes.",
    WatchStopArguments,
    run,
)
