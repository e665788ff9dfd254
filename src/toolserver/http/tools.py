"""The routes `GET /tools` and `POST /tools/{name}`."""

from __future__ import annotations

from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from toolserver.errors import BadArgument, ToolError
from toolserver.tools._arguments import schema
from toolserver.tools._client import Client
from toolserver.tools._dispatch import dispatch
from toolserver.tools._tool import Services, Tool


class ToolRoutes:
    """Lists and calls the tools it is given."""

    def __init__(self, tools: tuple[Tool[Any], ...], services: Services) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._services = services

    async def list(self, request: Request) -> Response:
        tools = [
            {"name": tool.name, "description": tool.description, "schema": schema(tool.arguments)}
            for tool in self._tools.values()
        ]
        fence = {"capsule": "unavailable", "sandbox": "unavailable", "network": "open"}
        return answer(200, {"tools": tools, "fence": fence})

    async def call(self, request: Request) -> Response:
        name = request.path_params["name"]
        tool = self._tools.get(name)
        if tool is None:
            return answer(404, {"error": f"unknown tool {name}"})
        try:
            raw = orjson.loads(await request.body() or b"{}")
            if type(raw) is not dict:
                raise BadArgument("the body: expected a JSON object")
            return answer(200, await dispatch(self._services, tool, raw, request.query_params.get("tree"), Client()))
        except orjson.JSONDecodeError as error:
            return answer(400, {"error": f"the body is not JSON: {error}"})
        except ToolError as error:
            return answer(error.status, {"error": str(error)})


def answer(status: int, body: Any) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json")
