"""The command `toolserver`."""

from __future__ import annotations

import argparse

import uvicorn

from toolserver.app import make_app
from toolserver.settings import Settings


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="toolserver")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve")
    serve.add_argument("root", nargs="?", default=".")
    serve.add_argument("--host", default="127.0.0.1")
    serve.add_argument("--port", type=int, default=7788)
    serve.add_argument("--token-file", default="")
    given = parser.parse_args()
    settings = Settings(given.root, given.token_file, given.host, given.port)
    uvicorn.run(make_app(settings), host=settings.host, port=settings.port, log_level="warning")
