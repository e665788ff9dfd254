"""The tools, one module each, in the order of `GET /tools`. A new tool is its module and one entry here."""

from typing import Any

from toolserver.calls.call import Tool
from toolserver.tools import (
    edit,
    glob,
    grep,
    patch,
    process_close_stdin,
    process_kill,
    process_list,
    process_output,
    process_wait,
    process_write,
    read,
    task,
    watch,
    watch_poll,
    watch_stop,
    write,
)
from toolserver.tools import exec as exec_tool

TOOLS: tuple[Tool[Any], ...] = (
    read.TOOL,
    write.TOOL,
    edit.TOOL,
    patch.TOOL,
    glob.TOOL,
    grep.TOOL,
    exec_tool.TOOL,
    process_list.TOOL,
    process_output.TOOL,
    process_write.TOOL,
    process_close_stdin.TOOL,
    process_wait.TOOL,
    process_kill.TOOL,
    watch.TOOL,
    watch_poll.TOOL,
    watch_stop.TOOL,
    task.TOOL,
)
