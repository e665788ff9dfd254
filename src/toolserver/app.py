"""Composes a server: settings → services → routes → Starlette application."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from toolserver.http.tools import ToolRoutes, answer
from toolserver.settings import Settings
from toolserver.tools._list import TOOLS
from toolserver.tools._tool import Services
from toolserver.workspace.root import Workspace


def make_app(settings: Settings) -> Starlette:
    """Answer the ASGI application for one workspace."""
    workspace = Workspace(settings.root)
    tools = ToolRoutes(TOOLS, Services(workspace))

    async def health(request: Request) -> Response:
        root = workspace.root.decode(errors="replace")
        return answer(200, {"ok": True, "root": root, "trees": workspace.trees})

    return Starlette(
        routes=[
            Route("/healthz", health),
            Route("/tools", tools.list),
            Route("/tools/{name}", tools.call, methods=["POST"]),
        ]
    )
