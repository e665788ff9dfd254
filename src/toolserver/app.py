"""Composes a server: settings, services, routes, and the application that uvicorn runs."""

from __future__ import annotations

import contextlib
import logging
import os
from dataclasses import dataclass

from starlette.routing import Route

from toolserver import log
from toolserver.calls.call import Fence, Services
from toolserver.git.views import Views
from toolserver.http.fs import FsRoutes, hold_route
from toolserver.http.gate import Gate
from toolserver.http.routes import Routes, health
from toolserver.http.streams import process_streams, watch_streams
from toolserver.http.token import TokenFile
from toolserver.http.tools import ToolRoutes
from toolserver.processes.capsule.bubblewrap import Capsule, Unavailable
from toolserver.processes.capsule.secrets import Uncoverable
from toolserver.processes.capsule.trial import tried
from toolserver.processes.capsule.view import Settings as CapsuleSettings
from toolserver.processes.capsule.wrapper import CapsuleWrapper
from toolserver.processes.environment import Environment
from toolserver.processes.launch import Launcher
from toolserver.processes.restart import record
from toolserver.processes.restart.children import Children
from toolserver.processes.restart.record_lock import Ownership
from toolserver.processes.restart.recorder import Recorder
from toolserver.processes.restart.takeover import Takeover
from toolserver.processes.table import ProcessTable
from toolserver.search.engine import SearchEngine
from toolserver.settings import Settings, StartError
from toolserver.state import directory
from toolserver.state.activity import Activity
from toolserver.state.file import StateFile
from toolserver.state.identity import workspace_id
from toolserver.state.journal import Journal
from toolserver.state.tasks import Tasks
from toolserver.tools import TOOLS
from toolserver.watches.table import WatchTable
from toolserver.workspace.root import Workspace
from toolserver.writing.upload import Uploads
from toolserver.writing.writer import Writer

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Application:
    """A composed server: the application, its services, and what starts and stops with it."""

    gate: Gate
    services: Services
    activity: Activity
    token: TokenFile
    calls: log.CallLog
    takeover: Takeover

    async def begin(self) -> None:
        """Take over from the previous run. Called before connections are accepted."""
        await self.takeover.begin()
        self.services.search.start()

    async def end(self) -> None:
        """End streams and commands. Called at the stop, before the calls under way are waited for."""
        self.services.search.stop()
        self.takeover.stopping()
        await self.services.watches.stop()
        await self.services.processes.stop()
        await self.takeover.close()

    def close(self) -> None:
        """Release what the services hold. Called last."""
        self.takeover.release()
        self.services.search.close()
        self.services.readers.close()
        self.services.writer.close()
        self.services.views.close()
        self.services.freed_memory.close()
        self.services.journal.close()
        self.calls.flush()


def make_app(settings: Settings) -> Application:
    """Compose the application for one workspace. Raises StartError."""
    workspace = _workspace(settings.root)
    activity = Activity()
    token = TokenFile(_token_file(settings, workspace.root))
    calls = log.CallLog(settings.log_level)
    watches, writer = WatchTable(), Writer(workspace.root)
    file = StateFile(workspace.root, record.RECORD_FILE, writer.temps)
    ownership = Ownership(workspace.root)
    recorder = Recorder(file, workspace_id(workspace.root, settings.workspace_id), watches, ownership.owned)
    children = Children(directory.directory(workspace.root))
    launcher, fence = _launcher(settings, token, workspace.root, children)
    processes = ProcessTable(launcher, activity, recorder)
    takeover = Takeover(workspace, processes, recorder, ownership, children)
    services = Services(
        workspace,
        writer,
        processes,
        watches,
        SearchEngine(),
        Views(),
        Uploads(writer.umask),
        Tasks(writer.temps, lambda: directory.make_directory(workspace.root)),
        Journal(lambda: (token.last or token.read()).decode(errors="replace")),
        fence,
    )
    tools = ToolRoutes(TOOLS, services, calls)
    routes = Routes(
        [
            health(workspace),
            Route("/tools", tools.list),
            *process_streams(services),
            *watch_streams(services),
            *FsRoutes(services).routes(),
            hold_route(),
        ]
    )
    gate = Gate(
        token=token,
        host=settings.host,
        origins=settings.allow_origin,
        tools=tools,
        routes=routes,
        activity=activity,
    )
    return Application(gate, services, activity, token, calls, takeover)


def _workspace(root: str) -> Workspace:
    try:
        return Workspace(root)
    except (OSError, ValueError) as error:
        raise StartError(f"ROOT {root}: {getattr(error, 'strerror', None) or 'not a usable path'}") from error


def _launcher(settings: Settings, token: TokenFile, root: bytes, children: Children) -> tuple[Launcher, Fence]:
    """Return what starts commands, in the capsule where it works, and what GET /tools tells of it."""
    variables = Environment(lambda: [token.last or token.read()])
    fenced = settings.network == "fenced"
    if settings.capsule != "off":
        try:
            wrapper = CapsuleWrapper(_capsule(settings, token, root))
        except Unavailable as reason:
            if settings.capsule == "require":
                raise StartError(f"--capsule require: the capsule is unavailable: {reason}") from reason
            _logger.warning("the capsule is unavailable, commands run unwrapped: %s", reason)
        except Uncoverable as reason:
            raise StartError(str(reason)) from reason
        else:
            shown = Fence("active", "fenced" if fenced or settings.network_fenced else "open")
            return Launcher(variables, wrapper, children), shown
    if fenced and not settings.network_fenced:
        _logger.warning("--network fenced does nothing without the capsule: the network is open")
    return Launcher(variables, children=children), Fence("unavailable", "fenced" if settings.network_fenced else "open")


def _capsule(settings: Settings, token: TokenFile, root: bytes) -> Capsule:
    """Return a capsule that works and shows no secret. Raises Unavailable, Uncoverable."""
    capsule = tried(
        CapsuleSettings(
            bind_ro=tuple(os.path.abspath(os.fsencode(place)) for place in settings.bind_ro),
            token_file=os.fsencode(token.path),
            state=os.fsencode(directory.all_servers(root)),
            fenced=settings.network == "fenced",
        )
    )
    capsule.view.check(root)
    with contextlib.suppress(OSError):
        if os.stat(token.path).st_nlink > 1:
            _logger.warning("the token file has more than one name (hard links); commands may see another of them")
    return capsule


def _token_file(settings: Settings, root: bytes) -> str:
    """Return the absolute path of the token file, made where it is the root's own and missing."""
    given = settings.token_file or directory.platform_token_file()
    try:
        path = os.path.abspath(given) if given else directory.make_token_file(root)
    except OSError as error:
        raise StartError(f"cannot make a token file: {error.filename}: {error.strerror}") from error
    if not TokenFile(path).read():
        _logger.warning("the token file has no token now, so every call is refused", extra={"facts": {"file": path}})
    return path
