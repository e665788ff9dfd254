"""The tool `watch`: events for changed files, a command's lines, or a command's outcome after each change."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Annotated

from msgspec import Meta

from toolserver.calls import told as tell
from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Services, Told, Tool
from toolserver.errors import BadArgument, ToolError
from toolserver.git.rule_files import GitFiles
from toolserver.processes.command import Command, checked
from toolserver.processes.process import Process
from toolserver.processes.working_directory import WorkingDirectory
from toolserver.search.pattern import analyse
from toolserver.watches.filter import WatchFilter
from toolserver.watches.paths import PathWatch
from toolserver.watches.watch import PrintSink, Start, Watch, WatchRequest, forward_output
from toolserver.workspace.names import AGENTS, MAIN
from toolserver.workspace.paths import failure


class WatchArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `watch`."""

    paths: Annotated[
        list[str] | None,
        Meta(description="Files and directories to watch, directories with all below; give paths, cmd or both."),
    ] = None
    cmd: Annotated[
        str | list[str] | None,
        Meta(description="A command: alone its output lines are the events; with paths it runs after each batch."),
    ] = None
    pattern: Annotated[
        str | None, Meta(description="A regular expression (RE2 syntax): of a command's lines only those that match.")
    ] = None
    once: Annotated[bool, Meta(description="End the watch, and its command, at the first event.")] = False


async def run(call: Call, args: WatchArguments) -> Answer:
    """Start a watch and return its id."""
    if args.paths is None and args.cmd is None:
        raise BadArgument("paths or cmd is required: expected an array of paths, a command, or both")
    if args.paths is not None and not args.paths:
        raise BadArgument("paths: expected an array of at least one path")
    keep = None if args.pattern is None else await asyncio.to_thread(_filter, args.pattern)
    start = None if args.cmd is None else _starter(call.services, call.tree.name, checked(args.cmd, {}, None))
    targets = None if args.paths is None else _targets(call, args.paths)
    watch = call.services.watches.add(call.tree.name, WatchRequest(start, keep, args.once))
    try:
        if targets is None:
            watch.start_command()
        else:
            await watch.start_paths(await _path_watch(call, targets, watch))
    except BaseException as error:
        await watch.stop()
        call.services.watches.discard(watch)
        if isinstance(error, OSError):
            raise failure(call.tree.name, error) from error
        raise
    await call.services.processes.record_numbers()  # its number counts
    return {"id": watch.id}


def _filter(pattern: str) -> Callable[[bytes], bool]:
    """Return what tells whether a line matches; BadArgument where the pattern is no RE2."""
    plan = analyse(pattern)
    return lambda line: plan.matches_line(line, 0, len(line))


def _starter(services: Services, tree: str, command: Command) -> Start:
    """Return what starts the command in the tree's root, which is looked up each time."""

    def start(printed: PrintSink) -> Process:
        with services.workspace.tree(tree) as opened:
            process = services.processes.start_watched(command, WorkingDirectory(tree, opened.root, b"", opened.fd))
        forward_output(process, printed)
        return process

    return start


def _targets(call: Call, paths: list[str]) -> list[bytes]:
    """Return the link-free paths that are asked for; ToolError for one that is missing or leads outside."""
    found = []
    for index, path in enumerate(paths):
        place = call.tree.place(path, f"paths[{index}]")
        os.close(call.tree.open(place, os.O_PATH))
        try:
            found.append(call.tree.real(place))
        except OSError as error:
            raise failure(path, error) from error
    return found


async def _path_watch(call: Call, targets: list[bytes], watch: Watch) -> PathWatch:
    git = GitFiles().now
    rules = await asyncio.to_thread(git, call.tree.fd)
    hidden = frozenset([AGENTS]) if call.tree.name == MAIN else frozenset[bytes]()
    watched = WatchFilter(targets, rules.base, rules.tracked, hidden, git)
    try:
        root = os.open(b"/proc/self/fd/%d" % call.tree.fd, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ToolError(f"tree {call.tree.name}: {error.strerror}") from error
    return PathWatch(root, watched, watch.batch)


def told(call: Call, args: WatchArguments, answer: Answer | None) -> Told | None:
    """Tell the journal the command; a watch of paths alone runs nothing."""
    return None if args.cmd is None else tell.command(args.cmd, None, answer)


TOOL = Tool(
    "watch",
    "Watch files or a command; returns {id}. Read the events with watch_poll, end it with watch_stop. With paths an "
    "event is {path, kind}: create, modify or remove, of anything below them (ignored directories, .git and editors' "
    "temporary files apart); a rename is a remove and a create. With cmd an event is {line}, filtered by pattern, and "
    "at the end {exit}. With both, cmd runs after each batch of changes, one run at a time, and the event is {paths, "
    "cmd_exit, output_tail}. once ends it at the first event. At most 32 run; the last 1000 events are kept.",
    WatchArguments,
    run,
    told=told,
)
