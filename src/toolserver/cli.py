"""The command `toolserver`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import NoReturn

from toolserver import settings
from toolserver.settings import StartError

USAGE = 2
"""Exit status of a command that cannot start."""


class Parser(argparse.ArgumentParser):
    """Reports an error of the command line in one line."""

    def error(self, message: str) -> NoReturn:
        raise StartError(message)


def main() -> None:
    """Run the command line."""
    try:
        status = run(sys.argv[1:])
    except StartError as error:
        complain(str(error))
        status = USAGE
    except BrokenPipeError:
        # the reader of the output has left; without this the interpreter would report it again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 1
    except KeyboardInterrupt:
        status = 130
    sys.exit(status)


def complain(text: str) -> None:
    """Print one line on stderr; characters that would break it are escaped."""
    line = "".join(char if char.isprintable() or "\udc80" <= char <= "\udcff" else ascii(char)[1:-1] for char in text)
    sys.stderr.buffer.write(os.fsencode(f"toolserver: {line}\n"))
    sys.stderr.buffer.flush()


def run(words: list[str]) -> int:
    """Run a command and return its exit status. Raises StartError."""
    given = parser().parse_args(words)
    if given.command == "serve":
        from toolserver.serving import serve

        serve(settings.serve_settings(given, os.environ))
        return 0
    return tools() if given.command == "tools" else call(given)


def parser() -> argparse.ArgumentParser:
    whole = Parser(prog="toolserver", description="The server a coding agent works through on a repository.")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve a directory", allow_abbrev=False)
    serve.add_argument("root", nargs="?", default=".", metavar="ROOT", help="the workspace; default: here")
    settings.add_flags(serve, settings.SERVE)
    commands.add_parser("tools", help="print the tools as JSON", allow_abbrev=False)
    call = commands.add_parser("call", help="call a tool on a running server", allow_abbrev=False)
    call.add_argument("name", metavar="NAME", help="the tool")
    call.add_argument("json", nargs="?", default="{}", metavar="JSON", help="its arguments; - reads standard input")
    settings.add_flags(call, settings.CALL)
    return whole


def tools() -> int:
    """Print the tools as GET /tools lists them."""
    from toolserver.http.tools import listing
    from toolserver.tools import TOOLS

    print(json.dumps({"tools": listing(TOOLS)}, indent=2), flush=True)
    return 0


def call(given: argparse.Namespace) -> int:
    """Call a tool and print its answer, or the error on stderr."""
    from toolserver.cli_call import CallError, Target
    from toolserver.cli_call import call as send

    values = settings.resolve(settings.CALL, given, os.environ)
    tree = values.pop("tree")
    body = sys.stdin.buffer.read() if given.json == "-" else os.fsencode(given.json)
    try:
        answer = send(Target(**values), given.name, body, tree)
    except CallError as error:
        complain(str(error))
        return 1
    sys.stdout.buffer.write(answer + b"\n")
    sys.stdout.buffer.flush()
    return 0
