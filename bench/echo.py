"""The anchor for requests per second: bare Starlette that answers a JSON POST with a fixed JSON body."""

from __future__ import annotations

import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

FIXED = {"path": "f.c", "content": "x" * 2200, "total_lines": 60, "truncated": False}


async def echo(request: Request) -> JSONResponse:
    await request.json()
    return JSONResponse(FIXED)


if __name__ == "__main__":
    app = Starlette(routes=[Route("/tools/read", echo, methods=["POST"])])
    uvicorn.run(app, port=int(sys.argv[1]), loop="uvloop", http="httptools", access_log=False, log_level="warning")
