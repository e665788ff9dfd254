"""The tool `exec`: run a command, wait for it, let it go on as a process, or detach it at once."""

from __future__ import annotations

import os
import time
from typing import Annotated, Literal

from msgspec import Meta

from toolserver._fast.ring import RING_SIZE
from toolserver.calls import told as tell
from toolserver.calls.arguments import Arguments
from toolserver.calls.call import Answer, Call, Told, Tool
from toolserver.calls.process_answers import chunks, texts, until_ended
from toolserver.processes.command import Terminal, checked
from toolserver.processes.process import Process
from toolserver.processes.windows import Window, Windows
from toolserver.processes.working_directory import WorkingDirectory

SOFT_MS = 25_000
LONGEST_MS = 600_000

Count = Annotated[int, Meta(ge=0)]


class ExecArguments(Arguments, kw_only=True, frozen=True):
    """Arguments of `exec`."""

    cmd: Annotated[
        str | list[str],
        Meta(description="A string runs as `sh -c` would run it; an array is a program and its arguments, no shell."),
    ]
    cwd: Annotated[
        str | None, Meta(description="Directory to run in, relative to the working directory. Default: its root.")
    ] = None
    env: Annotated[
        dict[str, str] | None, Meta(description="Variables to set beside the server's own, each value a string.")
    ] = None
    soft_ms: Annotated[
        Count | None,
        Meta(
            description="How long to wait, in milliseconds; a command that still runs then becomes a process.",
            extra={"lower_to": LONGEST_MS},
            extra_json_schema={"default": SOFT_MS},
        ),
    ] = None
    timeout_ms: Annotated[
        Count | None,
        Meta(
            description="Kill the command after so many milliseconds. Without soft_ms it is never promoted then.",
            extra={"lower_to": LONGEST_MS},
        ),
    ] = None
    head: Annotated[Count | None, Meta(description="Return only the first N lines of each stream.")] = None
    tail: Annotated[
        Count | None, Meta(description="Return only the last N lines of each stream; with head, both ends.")
    ] = None
    quiet: Annotated[
        bool, Meta(description="Return no output, but the last 20 lines of stderr when the command fails.")
    ] = False
    detach: Annotated[
        bool, Meta(description="Return the id at once and let the command run, such as a development server.")
    ] = False
    relaunch: Annotated[
        bool, Meta(description="With detach: start it again when the server was stopped meanwhile.")
    ] = True
    pty: Annotated[bool, Meta(description="Run on a pseudo-terminal: stdout and stderr are one stream, on stdout.")] = (
        False
    )
    cols: Annotated[int, Meta(ge=0, description="Columns of the terminal.", extra={"lower_to": 65_535})] = 80
    rows: Annotated[int, Meta(ge=0, description="Rows of the terminal.", extra={"lower_to": 65_535})] = 24


async def run(call: Call, args: ExecArguments) -> Answer:
    """Run a command and return what it printed, or the id under which it goes on."""
    began = time.monotonic()
    command = checked(args.cmd, args.env or {}, Terminal(args.cols, args.rows) if args.pty else None)
    processes = call.services.processes
    fd, cwd = call.tree.directory(args.cwd)
    try:
        directory = WorkingDirectory(call.tree.name, call.tree.root, cwd, fd)
        if args.detach:
            return {"id": (await processes.start_detached(command, directory, relaunch=args.relaunch)).id}
        job = processes.start_job(command, directory, None if args.quiet else args.head)
    finally:
        os.close(fd)
    outcome = await _wait(call, job, args)
    if outcome == "promote":
        processes.promote(job)
        await processes.recorded()
        return await _promoted(job, began)
    timed_out = outcome == "kill" and await job.cut_short()
    return await _answer(job, args, timed_out=timed_out, began=began)


async def _wait(call: Call, job: Process, args: ExecArguments) -> Literal["exited", "promote", "kill"]:
    """Wait for the exit as long as the call says, and return what is to be done with the job."""
    soft = SOFT_MS if args.soft_ms is None else args.soft_ms
    kill = args.timeout_ms is not None and (args.soft_ms is None or args.timeout_ms < soft)
    limit = args.timeout_ms if kill and args.timeout_ms is not None else soft
    left = await until_ended(call, job, limit)
    if job.ended.done():
        return "exited"
    return "kill" if kill and not left else "promote"


async def _answer(job: Process, args: ExecArguments, *, timed_out: bool, began: float) -> Answer:
    windows = Windows(Window(args.head, args.tail), args.quiet)
    exit_code = -1 if timed_out else job.exit_code
    out, err, trimmed = windows.cut(job.stdout, job.stderr, success=exit_code == 0)
    stdout, stderr = await texts(out, err)
    answer = {
        "exit_code": exit_code,
        "stdout": stdout,
        "stderr": stderr,
        "truncated": job.stdout.ring.start > 0 or job.stderr.ring.start > 0,
        "timed_out": timed_out,
        "ms": _ms(began),
    }
    return answer | {"trimmed": True} if trimmed else answer


async def _promoted(job: Process, began: float) -> Answer:
    out, err = chunks(job, 0, 0)
    stdout, stderr = await texts(out.data, err.data)
    return {
        "promoted": True,
        "id": job.id,
        "kind": "process",
        "stdout_so_far": stdout,
        "stderr_so_far": stderr,
        "next": out.next,
        "next_err": err.next,
        **({"dropped": out.dropped} if out.dropped else {}),
        **({"dropped_err": err.dropped} if err.dropped else {}),
        "ms": _ms(began),
        "hint": f"It still runs, as process {job.id}. Go on with process_wait, since={out.next}, "
        f"since_err={err.next}; end it with process_kill.",
    }


def _ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


def told(call: Call, args: ExecArguments, answer: Answer | None) -> Told:
    """Tell the journal the command, and how it ended."""
    return tell.command(args.cmd, args.env, answer)


TOOL = Tool(
    "exec",
    "Run a command in the working directory and return {exit_code, stdout, stderr, truncated, timed_out, ms}. A "
    "string is a shell command, an array a program with its arguments. Its stdin is empty. Each stream keeps its last "
    f"{RING_SIZE >> 20} MiB (truncated: more was printed); head, tail and quiet keep less (trimmed). A command that "
    "still runs after soft_ms (25 s, at most 600 s) is not killed: it becomes a process, returned as {promoted, id, "
    "stdout_so_far, stderr_so_far, next, next_err, hint}; go on with process_wait. detach: true returns {id} at once, "
    "for servers and watchers; such a process takes input through process_write. exit_code 128+N is death by signal N.",
    ExecArguments,
    run,
    told=told,
)
