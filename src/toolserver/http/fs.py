"""The routes below `/fs`: files and git as a console shows them, and files moved in ranges."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from xxhash import xxh3_128_hexdigest

from toolserver.calls.call import Services
from toolserver.errors import BadArgument, NotThere, OverLimit, ToolError
from toolserver.git.diff import Against
from toolserver.git.views import LARGEST, Question
from toolserver.http.answers import answer
from toolserver.http.body import BodyTooLarge, Left, read_body
from toolserver.images.kinds import HEAD, mime_of_file
from toolserver.workspace.names import MAIN
from toolserver.workspace.paths import Place, Tree, decode_base64, kind
from toolserver.writing.upload import Range

MOST_DEPTH = 3
MOST_COMMITS = 200
RANGE = 4 * 1024 * 1024
"""Bytes of one range, in and out."""
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)
_UPLOAD = re.compile(r"[A-Za-z0-9-]{8,64}", re.ASCII)
_ETAG = re.compile(r'(?:W/)?("[\x21\x23-\x7e\x80-\xff]*")')
AGAINST: dict[str, Against] = {"HEAD": "HEAD", "index": "index", "staged": "staged"}
INERT = {"content-security-policy": "sandbox", "x-content-type-options": "nosniff"}
"""Headers by which a browser runs nothing of a page as the server's origin."""


class FsRoutes:
    """The handlers, over the services of a server."""

    def __init__(self, services: Services) -> None:
        self._services = services

    def routes(self) -> list[Route]:
        """Make the routes."""
        return [
            self._route("/fs/tree", self._tree),
            self._route("/fs/stat", self._stat),
            self._route("/fs/file", self._file),
            self._route("/fs/git", lambda request, tree: self._ask(request, tree, Question.git)),
            self._route("/fs/changes", lambda request, tree: self._ask(request, tree, Question.changes)),
            self._route("/fs/diff", self._diff),
            self._route("/fs/log", self._log),
            self._route("/fs/raw", self._raw),
            self._route("/fs/upload", self._upload, "POST"),
        ]

    def _route(self, path: str, handler: Callable[[Request, Tree], Awaitable[Response]], method: str = "GET") -> Route:
        async def handle(request: Request) -> Response:
            try:
                with self._services.workspace.tree(request.query_params.get("tree", MAIN)) as tree:
                    return await handler(request, tree)
            except NotThere as error:
                return answer(404, {"error": str(error)})

        return Route(path, handle, methods=[method])

    async def _ask(self, request: Request, tree: Tree, question: Callable[[Question], Any]) -> Response:
        """Answer a question as JSON, or with 304 where the client has the answer already."""

        def work(about: Question) -> tuple[bytes, str]:
            body = orjson.dumps(question(about))
            return body, f'"{xxh3_128_hexdigest(body)}"'

        body, etag = await self._services.views.ask(tree, work)
        return _unless_known(request, etag, lambda: Response(body, media_type="application/json"))

    async def _tree(self, request: Request, tree: Tree) -> Response:
        place = _place(request, tree, default=".")
        depth = _number(request, "depth", 1, 1, MOST_DEPTH)
        return await self._ask(request, tree, lambda about: about.listing(place, depth))

    async def _stat(self, request: Request, tree: Tree) -> Response:
        place = _place(request, tree)

        def row(about: Question) -> dict[str, Any]:
            found = about.row(place)
            return found | ({"mime": _mime(tree, place)} if found["kind"] == "file" else {})

        return await self._ask(request, tree, row)

    async def _diff(self, request: Request, tree: Tree) -> Response:
        against = request.query_params.get("against", "HEAD")
        if against not in AGAINST:
            raise BadArgument(f"against: expected one of {', '.join(AGAINST)}")
        named = {"path", "path_b64"} & request.query_params.keys()
        place = _place(request, tree) if named else None
        return await self._ask(request, tree, lambda about: about.diff(place, AGAINST[against]))

    async def _log(self, request: Request, tree: Tree) -> Response:
        most = _number(request, "n", 20, 1, MOST_COMMITS)
        return await self._ask(request, tree, lambda about: about.log(most))

    async def _file(self, request: Request, tree: Tree) -> Response:
        place = _place(request, tree)
        revision = request.query_params.get("at")
        if revision:
            data, oid = await self._services.views.ask(tree, lambda about: about.blob(place, revision))
            return _unless_known(request, f'"{oid}"', lambda: _page(data, place))
        fd, status = await asyncio.to_thread(_open_file, tree, place)
        if status.st_size > LARGEST:
            os.close(fd)
            raise OverLimit(f"{place.given}: {status.st_size} bytes, more than the {LARGEST} that are shown")
        data = await self._services.readers.with_descriptor(fd, lambda: _read(fd, LARGEST))
        return _unless_known(request, f'"{status.st_size:x}-{status.st_mtime_ns:x}"', lambda: _page(data, place))

    async def _raw(self, request: Request, tree: Tree) -> Response:
        place = _place(request, tree)
        offset = _number(request, "offset", 0, 0, 2**63 - 1)
        size = _number(request, "len", RANGE, 0, RANGE)
        fd, status = await asyncio.to_thread(_open_file, tree, place)
        wanted = max(min(size, status.st_size - offset), 0)
        data = await self._services.readers.with_descriptor(fd, lambda: _read(fd, wanted, offset) if wanted else b"")
        headers = {"x-kl-size": str(status.st_size), "x-content-type-options": "nosniff"}
        return Response(data, headers=headers, media_type="application/octet-stream")

    async def _upload(self, request: Request, tree: Tree) -> Response:
        place = _place(request, tree)
        upload = request.query_params.get("id", "")
        if not _UPLOAD.fullmatch(upload):
            raise BadArgument("id: expected 8 to 64 of A-Z, a-z, 0-9 and -")
        offset = _number(request, "offset", 0, 0, 2**63 - 1)
        try:
            length = request.headers.get("content-length")
            data = await read_body(request.receive, None if length is None else length.encode(), RANGE)
        except BodyTooLarge as error:
            raise OverLimit(f"a range has at most {RANGE} bytes") from error
        except Left:
            return Response(status_code=400)
        flags = {name: request.query_params.get(name) == "1" for name in ("commit", "overwrite", "abort")}
        return answer(200, await self._services.uploads.take(tree, place, Range(upload, offset, data, **flags)))


def hold_route() -> Route:
    """Make the route `POST /hold`, which does nothing: that it was called is activity."""

    async def hold(request: Request) -> Response:
        return Response(status_code=204)

    return Route("/hold", hold, methods=["POST"])


# --------------------------------------------------------------------------------------------------------- parameters


def _place(request: Request, tree: Tree, default: str | None = None) -> Place:
    given = request.query_params.get("path")
    if given is None and (encoded := request.query_params.get("path_b64")) is not None:
        return tree.place(decode_base64(encoded, "path_b64"), "path_b64")
    if given is None and default is None:
        raise BadArgument("path is required: expected a path in the query")
    return tree.place(default if given is None else given, "path")  # type: ignore[arg-type]  # not both None


def _number(request: Request, name: str, default: int, least: int, most: int) -> int:
    text = request.query_params.get(name)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
        raise BadArgument(f"{name}: expected an integer from {least} to {most}, not {text[:40]!r}")
    return int(text)


# ------------------------------------------------------------------------------------------------------------ answers


def _unless_known(request: Request, etag: str, make: Callable[[], Response]) -> Response:
    """Return the answer with its ETag, or a 304 where the client has it already."""
    wanted = request.headers.get("if-none-match")
    if wanted is not None and (wanted.strip() == "*" or etag in _ETAG.findall(wanted)):
        return Response(status_code=304, headers={"etag": etag})
    response = make()
    response.headers["etag"] = etag
    return response


def _page(data: bytes, place: Place) -> Response:
    mime = mime_of_file(data[:HEAD], place.path.decode(errors="replace"))
    return Response(data, headers={**INERT, "content-type": mime})


def _open_file(tree: Tree, place: Place) -> tuple[int, os.stat_result]:
    """Open a regular file; a directory is the caller's error."""
    try:
        return tree.open_regular(place)
    except ToolError as error:
        if type(error) is ToolError and _is_directory(tree, place):
            raise BadArgument(f"path: {place.given} is {kind(0o040000)}, not a file") from error
        raise


def _is_directory(tree: Tree, place: Place) -> bool:
    try:
        os.close(tree.open(place, os.O_PATH | os.O_DIRECTORY))
    except ToolError:
        return False
    return True


def _mime(tree: Tree, place: Place) -> str:
    """Return the mime type of a file by its first bytes and its name. Raises ToolError for a special file."""
    fd, _ = _open_file(tree, place)
    try:
        return mime_of_file(_read(fd, HEAD), place.path.decode(errors="replace"))
    finally:
        os.close(fd)


def _read(fd: int, size: int, offset: int = 0) -> bytes:
    """Read so many bytes from an offset on, fewer at the end of the file."""
    parts = []
    while size > 0 and (part := os.pread(fd, min(size, 1 << 20), offset)):
        parts.append(part)
        offset += len(part)
        size -= len(part)
    return b"".join(parts)
