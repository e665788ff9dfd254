"""What a console asks of a tree's files and repository: one question at a time for each tree, in threads."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pygit2

from toolserver._fast.git_status import Index
from toolserver.errors import BadArgument, NotThere, OverLimit, ToolError
from toolserver.git import diff, log
from toolserver.git.changes import TREE, counted, lookup
from toolserver.git.contents import GITLINK
from toolserver.git.listing import Letters, Row, View
from toolserver.git.repository import Repository
from toolserver.git.rule_files import GitFiles
from toolserver.git.status import Memory, Status, status
from toolserver.workspace.names import MAIN
from toolserver.workspace.paths import Place, Tree, failure, shown

LARGEST = 10 * 1024 * 1024
"""Bytes of a file that is shown."""
TREES_KEPT = 32
"""Trees of which something is remembered."""
THREADS = 2
MAX_REVISION = 256

T = TypeVar("T")


@dataclass(slots=True)
class _Known:
    """What is remembered of a tree, and the lock of whoever uses it."""

    files: GitFiles = field(default_factory=GitFiles)
    memory: Memory = field(default_factory=Memory)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Views:
    """Answers questions about the trees of a workspace; threads start with the first one."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="toolserver-git")
        self._known: OrderedDict[bytes, _Known] = OrderedDict()

    def close(self) -> None:
        """Begin nothing more; what runs ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def ask(self, tree: Tree, question: Callable[[Question], T]) -> T:
        """Answer a question in a thread. Raises what it raises; OSError becomes a ToolError."""
        known = self._known.get(tree.root)
        if known is None:
            known = self._known[tree.root] = _Known()
            if len(self._known) > TREES_KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(tree.root)
        root = os.dup(tree.fd)

        def run() -> T:
            with known.lock:
                return question(Question(tree, root, known.files, known.memory))

        try:
            future = self._pool.submit(run)
        except BaseException:
            os.close(root)
            raise
        future.add_done_callback(lambda _: os.close(root))
        try:
            return await asyncio.wrap_future(future)
        except OSError as error:
            raise ToolError(f"the files cannot be read: {(error.strerror or 'input/output error').lower()}") from error


class Question:
    """One question: the tree, its repository and what is remembered of both. Belongs to one thread."""

    def __init__(self, tree: Tree, root: int, files: GitFiles, memory: Memory) -> None:
        self.tree = tree
        self.root = root
        self._files = files
        self._memory = memory
        self.repository = Repository.open(tree.root)

    @property
    def _main(self) -> bool:
        return self.tree.name == MAIN

    def status(self, repository: Repository) -> Status:
        try:
            return status(repository, self.root, self._files.now(self.root).base, self._memory, leave_agents=self._main)
        except ValueError as error:
            raise ToolError(f"the repository's index cannot be read: {error}") from error

    # ------------------------------------------------------------------------------------------------------ answers

    def git(self) -> dict[str, Any]:
        """Return the branch, how it stands to its upstream, and whether anything differs."""
        repository = self.repository
        if repository is None:
            return {"repo": False}
        branch, upstream, ahead, behind = _branch(repository)
        return {
            "repo": True,
            "branch": branch,
            "head": None if repository.head is None else str(repository.head.id),
            "upstream": upstream,
            "ahead": ahead,
            "behind": behind,
            "dirty": bool(self.status(repository).changes),
            "stashes": len(repository.git.listall_stashes()),
        }

    def changes(self) -> dict[str, Any]:
        """Return a row for each change, by path."""
        if self.repository is None:
            return {"repo": False, "changes": []}
        found = self.status(self.repository)
        rows = []
        for change, counts in counted(self.repository, self.root, found, self._memory):
            old = change.renamed_from
            rows.append(
                {
                    **shown(change.path),
                    "index": change.index,
                    "worktree": change.worktree,
                    "renamed_from": None if old is None else old.decode(errors="replace"),
                    "additions": counts.additions,
                    "deletions": counts.deletions,
                    "binary": counts.binary,
                }
            )
        return {"repo": True, "changes": rows}

    def diff(self, place: Place | None, against: diff.Against) -> dict[str, Any]:
        """Return the patch of a path, or of the whole tree."""
        path = b"" if place is None else self._path(place)
        if self.repository is None:
            found = diff.Patch("", False, False)
        else:
            status = self.status(self.repository)
            if place is not None and not self._exists(status, path):
                raise NotThere(f"{place.given}: nothing there in the work tree, the index or HEAD")
            found = diff.patch(self.repository, self.root, status, against, path)
        return {
            **({"path": None} if place is None else shown(path)),
            "against": against,
            "binary": found.binary and place is not None,
            "truncated": found.truncated,
            "patch": found.text,
        }

    def log(self, most: int) -> dict[str, Any]:
        """Return the newest commits."""
        if self.repository is None:
            return {"repo": False, "commits": []}
        return {"repo": True, "commits": log.commits(self.repository, most)}

    def listing(self, place: Place, depth: int) -> dict[str, Any]:
        """Return the rows of a directory and of those below it."""
        fd, path = self.tree.locate(place, os.O_PATH)
        os.close(fd)
        try:
            rows, truncated = self._view().tree(path, depth)
        except OSError as error:
            if error.errno == errno.ENOTDIR:
                raise BadArgument(f"path: {place.given} is a file, not a directory") from error
            raise failure(place.given, error) from error
        return {**shown(place.path), "truncated": truncated, "entries": rows}

    def row(self, place: Place) -> Row:
        """Return the row of one path, a link as itself."""
        path = self._path(place)
        try:
            row = self._view().row(path)
        except OSError as error:
            raise failure(place.given, error) from error
        if row is None:
            raise ToolError(f"{place.given} is a special file")
        return row

    def blob(self, place: Place, revision: str) -> tuple[bytes, str]:
        """Return what a path holds at a revision or in the index, and the object's name."""
        if self.repository is None:
            raise NotThere(f"{place.given}: there is no repository")
        found = _in_index(self.repository, place) if revision == "index" else _at(self.repository, place, revision)
        if found is None:
            raise NotThere(f"{place.given}: nothing there at {revision[:MAX_REVISION]}")
        oid, mode = found
        if mode in (TREE, GITLINK):
            raise BadArgument(f"path: {place.given} is a directory at {revision[:MAX_REVISION]}")
        header = self.repository.header(oid)
        if header is not None and header[1] > LARGEST:
            raise OverLimit(f"{place.given}: {header[1]} bytes, more than the {LARGEST} that are shown")
        data = self.repository.blob(oid, LARGEST)
        if data is None:
            raise NotThere(f"{place.given}: its content is not in the repository")
        return data, str(oid)

    # ------------------------------------------------------------------------------------------------------- insides

    def _view(self) -> View:
        rules = self._files.now(self.root)
        changes = [] if self.repository is None else self.status(self.repository).changes
        return View(self.root, rules, Letters(changes, rules.tracked), self._main)

    def _path(self, place: Place) -> bytes:
        """Return a place's path with all links resolved but for its own; raises OutsideTree where they lead out."""
        above, _, name = place.path.rpartition(b"/")
        if not above:
            return place.path
        real = self.tree.real(Place(place.given, above))
        return os.path.join(real, name)

    def _exists(self, status: Status, path: bytes) -> bool:
        if not path or os.path.lexists(os.path.join(self.tree.root, path)):
            return True
        prefix = path + b"/"
        at = status.index.find(path)
        if at < len(status.index):
            found = status.index.entry(at)[0]
            if found == path or found.startswith(prefix):
                return True
        assert self.repository is not None
        head = self.repository.head
        return head is not None and lookup(self.repository, head.tree, path) is not None


def _branch(repository: Repository) -> tuple[str | None, str | None, int, int]:
    """Return the branch's name, that of its upstream, and how many commits either has that the other has not."""
    git = repository.git
    if git.head_is_unborn:
        target = git.lookup_reference("HEAD").target
        return (target.removeprefix("refs/heads/") if isinstance(target, str) else None), None, 0, 0
    if git.head_is_detached:
        return None, None, 0, 0
    name = git.head.shorthand
    try:
        upstream = git.branches.local[name].upstream
        if upstream is None or repository.head is None:
            return name, None, 0, 0
        ahead, behind = git.ahead_behind(repository.head.id, upstream.peel(pygit2.Commit).id)
    except (KeyError, ValueError, pygit2.GitError):
        return name, None, 0, 0
    return name, upstream.branch_name, ahead, behind


def _in_index(repository: Repository, place: Place) -> tuple[pygit2.Oid, int] | None:
    data = repository.index_file.data
    if not data:
        return None
    try:
        index = Index(data)
    except ValueError as error:
        raise ToolError(f"the repository's index cannot be read: {error}") from error
    found: tuple[pygit2.Oid, int] | None = None
    for at in range(index.find(place.path), len(index)):
        path, mode, oid, _, stage = index.entry(at)
        if path != place.path:
            if found is None and path.startswith(place.path + b"/"):
                return pygit2.Oid(oid), TREE
            break
        if found is None or stage == 2:
            found = pygit2.Oid(oid), mode
    return found


def _at(repository: Repository, place: Place, revision: str) -> tuple[pygit2.Oid, int] | None:
    if len(revision) > MAX_REVISION or "\0" in revision or ":/" in revision or "^{/" in revision:
        raise BadArgument(f"at: expected a revision of at most {MAX_REVISION} characters that searches no messages")
    try:
        tree = repository.git.revparse_single(revision).peel(pygit2.Tree)
    except (KeyError, ValueError, pygit2.GitError) as error:
        raise NotThere(f"at: there is no revision {revision}") from error
    assert isinstance(tree, pygit2.Tree)
    return lookup(repository, tree, place.path)
