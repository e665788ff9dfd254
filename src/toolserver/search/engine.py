"""The search engine: questions of glob and grep, answered by the kernels on shared threads."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from toolserver._fast.globs import Glob
from toolserver._fast.grep import Grep
from toolserver._fast.listing import Listing
from toolserver._fast.scan import MOST as MOST_NEEDLES
from toolserver._fast.scan import Needles
from toolserver._fast.walk import Moved
from toolserver.errors import ToolError
from toolserver.git.rule_files import GitFiles
from toolserver.search.judge import judge
from toolserver.search.pattern import Plan, analyse
from toolserver.search.scheduler import Threads
from toolserver.workspace.names import MAIN
from toolserver.workspace.paths import Tree

MAX_PATHS = 5000
"""Paths of a glob."""
MIN_BITS = 8.0
"""Literals more common than this (see `Plan.bits`) stand in nearly every line: the regex is asked about all of them."""
TREES_KEPT = 32
"""Trees whose git files are remembered."""

Walk = Callable[[], dict[str, Any]]
"""Answers the first arguments of a walk, as they are at that moment."""
OnLeave = Callable[[Callable[[], None]], None]
"""Is given what to call when nobody waits for the answer any more."""


class _Root:
    """A descriptor of a tree's root that lives until the last that needs it is gone."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = -1
        self.fd = os.dup(fd)

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)


@dataclass(frozen=True, slots=True)
class Place:
    """What is searched in a tree: the directory `cwd` (its link-free path from the root), or only `file` in it."""

    cwd: bytes
    file: bytes | None = None

    @property
    def path(self) -> bytes:
        return self.cwd if self.file is None else os.path.join(self.cwd, self.file)


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is searched for, and how it is answered; `most_bytes` bounds the list of results in JSON."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    glob: Glob | None = None
    mode: Literal["content", "files", "count"] = "content"
    context: int = 0
    most: int = 2000
    most_bytes: int = 10 << 20


@dataclass(frozen=True, slots=True)
class Results:
    """A list in JSON, and whether there are more results than it holds."""

    json: bytes
    truncated: bool


class SearchEngine:
    """Answers searches. Made without cost; its threads end with `close`."""

    def __init__(self) -> None:
        self._threads = Threads()
        self._git: OrderedDict[tuple[str, bytes], GitFiles] = OrderedDict()

    def start(self) -> None:
        """Start the threads, so that the first question need not."""
        self._threads.start()

    def stop(self) -> None:
        """Stop all searches and take no more."""
        self._threads.stop()

    def close(self) -> None:
        """Stop all searches and end the threads."""
        self._threads.close()

    async def glob(self, tree: Tree, place: Place, glob: Glob, on_leave: OnLeave) -> Results:
        """Return the newest files that `glob` fits, at most MAX_PATHS."""

        def prepare(walk: Walk) -> Listing:
            return Listing(**walk(), glob=glob, width=self._threads.count, most=MAX_PATHS)

        return await self._answer(tree, place, prepare, on_leave, large=False)

    async def grep(self, tree: Tree, place: Place, question: Question, on_leave: OnLeave) -> Results:
        """Return the lines, files or counts that match. Raises BadArgument for a pattern that is none."""

        def prepare(walk: Walk) -> Grep | _Nothing:
            plan = analyse(question.pattern, literal=question.literal, ignore_case=question.ignore_case)
            if plan.never:
                return _Nothing()
            return Grep(
                **walk(),
                glob=question.glob,
                file=place.file,
                width=1 if place.file else self._threads.count,
                mode=question.mode,
                lines=question.context,
                most=question.most,
                most_bytes=question.most_bytes,
                **_matching(plan),
            )

        return await self._answer(tree, place, prepare, on_leave, large=True)

    async def _answer(
        self,
        tree: Tree,
        place: Place,
        prepare: Callable[[Walk], Listing | Grep | _Nothing],
        on_leave: OnLeave,
        *,
        large: bool,
    ) -> Results:
        async def attempt(*, from_root: bool) -> Results:
            walk = self._walk(tree, place, from_root=from_root)
            return await self._threads.run(
                lambda: prepare(walk), lambda job: Results(*job.answer()), on_leave, large=large
            )

        try:
            try:
                return await attempt(from_root=False)
            except Moved:  # what was found may lie outside of the tree
                return await attempt(from_root=True)
        except OSError as error:  # a name that cannot be read is left out; this is one that the server cannot open now
            reason = (error.strerror or "input/output error").lower()
            raise ToolError(f"the search was ended, since it would miss something: {reason}") from error

    def _walk(self, tree: Tree, place: Place, *, from_root: bool) -> Walk:
        """Return what makes the first arguments of a walk, at the moment that it starts."""
        git = self._git_files(tree)
        root = _Root(tree.fd)

        def arguments() -> dict[str, Any]:
            rules = git.now(root.fd)
            return {
                "root": root.fd,
                "cwd": place.cwd,
                "rules": rules.base,
                "tracked": rules.tracked,
                "leave_agents": tree.name == MAIN,
                "from_root": from_root,
            }

        return arguments

    def _git_files(self, tree: Tree) -> GitFiles:
        key = (tree.name, tree.root)
        found = self._git.get(key)
        if found is None:
            found = self._git[key] = GitFiles()
            if len(self._git) > TREES_KEPT:
                self._git.popitem(last=False)
        self._git.move_to_end(key)
        return found


class _Nothing:
    """A search that can find nothing, so no file is looked at."""

    width = 1

    def work(self, index: int, seconds: float) -> bool:
        return False

    def stop(self) -> None:
        return

    def answer(self) -> tuple[bytes, bool]:
        return b"[]", False


def _matching(plan: Plan, *, regex: bool = False) -> dict[str, Any]:
    """Return how the kernel is told what matches; `regex`: by the regex alone, whatever else is known."""
    needles = None
    if plan.literals is not None and len(plan.literals) <= MOST_NEEDLES and not regex:
        needles = Needles(plan.literals, fold=plan.fold)
        if plan.exact:
            return {"needles": needles}
        if plan.bits < MIN_BITS:
            needles = None
    asked = judge(plan)
    return {"needles": needles, "probe": asked.probe, "mark": asked.mark}
