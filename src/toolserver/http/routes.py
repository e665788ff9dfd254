"""The routes other than tool calls, as a Starlette application: paths are exact, errors are JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from toolserver.errors import ToolError
from toolserver.http.answers import answer, error_body, send_json
from toolserver.workspace.root import Workspace


class Routes(Starlette):
    """Starlette without its handler of faults, which reach the gate."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        super().__init__(routes=routes)
        self.router.redirect_slashes = False
        self.router.default = _unknown
        self.add_exception_handler(HTTPException, _http_error)
        self.add_exception_handler(ToolError, _tool_error)

    def build_middleware_stack(self) -> ASGIApp:
        handlers: Any = self.exception_handlers
        return ExceptionMiddleware(_exact(self.router), handlers=handlers)


def _exact(router: ASGIApp) -> ASGIApp:
    """Refuse paths that end in a line break: the `$` of a route's pattern would accept one."""

    async def routed(scope: Scope, receive: Receive, send: Send) -> None:
        await (_unknown if scope["path"].endswith("\n") else router)(scope, receive, send)

    return routed


async def _unknown(scope: Scope, receive: Receive, send: Send) -> None:
    await send_json(scope, send, 404, error_body("unknown route"))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = "this route does not take the method" if error.status_code == 405 else error.detail
    return answer(error.status_code, {"error": text}, dict(error.headers or {}))


async def _tool_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ToolError)
    return answer(error.status, {"error": str(error)})


def health(workspace: Workspace) -> Route:
    """Make the route `GET /healthz`."""

    async def tell(request: Request) -> Response:
        root = workspace.root.decode(errors="replace")
        return answer(200, {"ok": True, "root": root, "trees": workspace.trees})

    return Route("/healthz", tell)
