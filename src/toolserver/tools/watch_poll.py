"""The tool `watch_poll`: read a watch's events."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Tool


class WatchPollArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `watch_poll`."""

    id: Annotated[str, Meta(description="The watch's id, such as w1, as watch returned it.")]
    since: Annotated[
        int, Meta(ge=0, description="Number of the first event to return, such as the `next` of the last answer.")
    ] = 0


async def run(call: Call, args: WatchPollArguments) -> Answer:
    """Return the events from a number on."""
    watch = call.services.watches.get(call.tree.name, args.id)
    events, following, dropped = watch.events.since(args.since)
    return {"events": events, "next": following, "dropped": dropped, "state": watch.state}


TOOL = Tool(
    "watch_poll",
    "Read the events of a watch at once: {events, next, dropped, state}. Give `next` back as `since` to read only what "
    "is new; dropped counts events that were no longer kept (the last 1000 are). state is running or stopped; a "
    "stopped watch can be read for 10 minutes.",
    WatchPollArguments,
    run,
)
