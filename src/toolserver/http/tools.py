"""The routes `GET /tools` and `POST /tools/{name}`."""

from __future__ import annotations

import time
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolserver import log
from toolserver.calls.call import Services, Tool, Written
from toolserver.calls.client import Client
from toolserver.calls.coercion import prepare
from toolserver.calls.dispatch import dispatch, tree_of
from toolserver.calls.parsing import JsonParser, NotJson, off_loop
from toolserver.calls.schema import schema
from toolserver.errors import BadArgument, ToolError
from toolserver.http.answers import Header, answer, error_body, send_json, send_pieces
from toolserver.http.body import MAX_BODY, BodyTooLarge, Left, disconnected, read_body
from toolserver.workspace.names import MAIN

CLIENT_LEFT = 499
"""Status in the log of a call whose client left before its body was complete. Nothing is sent then."""
_ALLOW: Header = (b"allow", b"POST")


def listing(tools: tuple[Tool[Any], ...]) -> list[dict[str, Any]]:
    """Return the tools as GET /tools lists them."""
    return [{"name": tool.name, "description": tool.description, "schema": schema(tool.arguments)} for tool in tools]


class ToolRoutes:
    """Lists and calls the tools it is given."""

    def __init__(self, tools: tuple[Tool[Any], ...], services: Services, calls: log.CallLog) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._listing = orjson.Fragment(orjson.dumps(listing(tools)))
        self._services = services
        self._log = calls
        for tool in tools:
            prepare(tool.arguments)

    async def list(self, request: Request) -> Response:
        fence = self._services.fence
        told = {"capsule": fence.capsule, "sandbox": fence.capsule, "network": fence.network}
        return answer(200, {"tools": self._listing, "fence": told})

    async def call(self, name: str, length: bytes | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call and write its line in the log; a refused call has one too."""
        if scope["method"] != "POST":
            await send_json(scope, send, 405, error_body("a tool is called with POST"), [_ALLOW])
            return
        started = time.perf_counter()
        tool = self._tools.get(name)
        call = _OneCall(scope)
        if tool is None:
            body = error_body(f"unknown tool {name}")
            self._log.write(name, call.tree, 404, started, len(body))
            await send_json(scope, send, 404, body)
            return
        client = Client(partial(disconnected, receive))
        try:
            status, found = await call.run(self._services, tool, length, receive, client)
            self._log.write(name, call.tree, status, started, found.size if isinstance(found, Written) else len(found))
            if isinstance(found, Written):
                await send_pieces(scope, send, found.pieces)
            elif status != CLIENT_LEFT:
                await send_json(scope, send, status, found)
        finally:
            client.end()
            if tool.large:
                self._services.freed_memory.after_large_call()


class _OneCall:
    """A call while it runs. `tree` is the tree that it names, as far as it was read."""

    __slots__ = ("tree", "url_tree")

    def __init__(self, scope: Scope) -> None:
        query = scope["query_string"]
        self.url_tree = _tree_in(query) if query else None
        self.tree: object = MAIN if self.url_tree is None else self.url_tree

    async def run(
        self, services: Services, tool: Tool[Any], length: bytes | None, receive: Receive, client: Client
    ) -> tuple[int, bytes | Written]:
        """Run the tool; return the status and the body of the answer."""
        try:
            body = await read_body(receive, length)
            raw = await off_loop(len(body), _parsed, body)
            self.tree = tree_of(raw, self.url_tree)
            found = await dispatch(services, tool, raw, self.url_tree, client, size=len(body))
            return 200, found if isinstance(found, Written) else orjson.dumps(found)
        except ToolError as error:
            return error.status, error_body(str(error))
        except BodyTooLarge:
            return 413, error_body(f"the body is over {MAX_BODY} bytes")
        except Left:
            return CLIENT_LEFT, b""
        except Exception as error:
            return 500, error_body(f"internal error {log.fault(error)}")
        finally:
            client.close()


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        raw = JsonParser().parse(body, "the body") if body else {}
    except NotJson as error:
        raise BadArgument(f"the body is not JSON: {error}") from None
    if type(raw) is not dict:
        raise BadArgument("the body: expected a JSON object")
    return raw


def _tree_in(query: bytes) -> str | None:
    """Return the last `tree` of a query string."""
    found = None
    for name, value in parse_qsl(query.decode("ascii", errors="replace"), keep_blank_values=True):
        if name == "tree":
            found = value
    return found
