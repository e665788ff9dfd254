"""What the journal tells of calls that several tools share the shape of: commands, and files by their paths."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from toolserver.calls.call import Answer, Call, Told
from toolserver.calls.path_arguments import HasPath, place_of
from toolserver.state.redaction import SHORTEST, is_secret_name


def command(cmd: str | Sequence[str], env: Mapping[str, str] | None, answer: Answer | None) -> Told:
    """Tell of a command: the command itself, and how it ended."""
    text = cmd if isinstance(cmd, str) else shlex.join(cmd)
    secrets = tuple(value for name, value in (env or {}).items() if is_secret_name(name) and len(value) >= SHORTEST)
    return Told(text, outcome=outcome(answer), secrets=secrets)


def outcome(answer: Answer | None) -> str:
    """Say how a command ended, from the answer of its call."""
    if answer is None:
        return "error"
    if answer.get("promoted"):
        return f"promoted {answer['id']}"
    code = answer.get("exit_code", 0)
    return f"exit {code}" if code else "ok"


def path_of(call: Call, given: HasPath) -> str:
    """Return a file's path as answers show it."""
    return place_of(call.tree, given).shown()["path"]
