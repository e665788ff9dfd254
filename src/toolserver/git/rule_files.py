"""Which rule files hold in a tree, and which paths its index holds: git's own files, read as they are now.

A file's contents are kept as long as its stamp proves them: device, inode, size, mtime and ctime, to the nanosecond,
and git's racy rule, by which a stamp that is not safely older than the reading proves nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from xxhash import xxh3_128_digest

from toolserver._fast.git_index import Tracked, shared_index
from toolserver._fast.ignore import BaseRules
from toolserver.git import config
from toolserver.workspace import bounded
from toolserver.workspace.names import GIT

RACY_NS = 2_000_000_000
"""How much older than the reading a stamp must be; the coarsest clock of a file system that is still in use."""
MAX_RULES = 100 * 1024 * 1024
"""Bytes of a rule file; git leaves out a larger one, too."""
MAX_CONFIG = 4 * 1024 * 1024
"""Bytes of a configuration file; a larger one counts as empty."""
MAX_INDEX = 1 << 30
"""Bytes of an index; a larger one counts as empty."""
SHORTAGE = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors that tell of the server and not of a file."""

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class GitRules:
    """What git's files say about a tree; the same object is returned as long as nothing of it changed."""

    base: BaseRules
    """The rules of the excludes file and of info/exclude."""
    tracked: Tracked


@dataclass(frozen=True, slots=True)
class _Kept:
    stamp: tuple[int, ...]
    sure: bool
    digest: bytes
    value: Any


class _Files:
    """Files read through a descriptor of the tree's root, which relative paths are counted from."""

    def __init__(self) -> None:
        self.root = -1
        self._kept: dict[tuple[bytes, str], _Kept] = {}
        self._used: dict[tuple[bytes, str], _Kept] = {}

    def begin(self, root: int) -> None:
        self.root = root
        self._kept, self._used = self._used, {}

    def stat(self, path: bytes) -> os.stat_result | None:
        try:
            return os.stat(path, dir_fd=self.root)
        except (OSError, ValueError):  # ValueError: a NUL in a path that a file names
            return None

    def read(
        self, path: bytes, limit: int, make: Callable[[bytes], Value], way: str = "", *, inside: bool = False
    ) -> Value | None:
        """Return what `make` makes of a regular file's contents; None where there is none or it may not be read.

        With `inside` only a file that lies below the root, links resolved, may be read. `way` tells apart what is made
        of one file in several ways. Raises OSError where the server lacks a descriptor or memory: without the file's
        rules too much would be shown.
        """
        status = self.stat(path)
        if status is None or not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            return None
        key = (path, f"{way} inside" if inside else way)
        kept = self._used.get(key) or self._kept.get(key)
        if kept is None or not kept.sure or kept.stamp != _stamp(status):
            kept = self.load(path, limit, make, kept, inside=inside)
        if kept is None:
            return None
        self._used[key] = kept
        value: Value = kept.value
        return value

    def load(
        self,
        path: bytes,
        limit: int,
        make: Callable[[bytes], Any],
        before: _Kept | None = None,
        *,
        inside: bool = False,
    ) -> _Kept | None:
        """Read a file anew; what was made of it before is taken again where the contents are the same."""
        now = time.time_ns()
        try:
            fd = bounded.open_inside(self.root, path) if inside else bounded.open_regular(path, self.root)
            try:
                stamp = _stamp(os.fstat(fd))
                content = bounded.read_open(fd, limit)
                unchanged = stamp == _stamp(os.fstat(fd))
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno in SHORTAGE:
                raise
            return None
        digest = xxh3_128_digest(content)
        same = before is not None and before.digest == digest
        value = before.value if before is not None and same else make(content)
        return _Kept(stamp, unchanged and max(stamp[3:]) < now - RACY_NS, digest, value)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@dataclass(frozen=True, slots=True)
class _Repository:
    """Paths relative to the tree's root, or absolute: of the git directory, and of what its worktrees share."""

    directory: bytes
    common: bytes


class GitFiles:
    """Reads git's files for one tree. `environ` is where git's own variables and HOME are looked up."""

    def __init__(self, environ: Mapping[bytes, bytes] = os.environb) -> None:
        self._environ = environ
        self._files = _Files()
        self._lock = threading.Lock()
        self._no_paths = Tracked()
        self._from: tuple[bytes | None, bytes | None] = (None, None)
        self._rules = GitRules(BaseRules(), self._no_paths)

    def now(self, root: int) -> GitRules:
        """Return what holds at this moment in the tree that the descriptor `root` stands for; from any thread.

        A dozen calls of the system where nothing changed; after a change as long as it takes to read the files.
        """
        with self._lock:
            self._files.begin(root)
            return self._now()

    def _now(self) -> GitRules:
        repository = self._repository()
        config = self._config(repository)
        excludes = self._excludes(config)
        info = self._rule_file(os.path.join(repository.common, b"info/exclude")) if repository else None
        tracked = self._tracked(repository) if repository else self._no_paths
        if self._from != (excludes, info):
            self._from = (excludes, info)
            self._rules = GitRules(BaseRules(excludes, info), tracked)
        elif self._rules.tracked is not tracked:
            self._rules = GitRules(self._rules.base, tracked)
        return self._rules

    def _rule_file(self, path: bytes | None, *, inside: bool = False) -> bytes | None:
        return self._files.read(path, MAX_RULES, bytes, inside=inside) if path else None

    # -------------------------------------------------------------------------------------------------- the repository

    def _repository(self) -> _Repository | None:
        """Find the repository at the tree's root: `.git` as a directory, or as a file that names one."""
        status = self._files.stat(GIT)
        if status is None:
            return None
        directory = GIT
        if stat.S_ISREG(status.st_mode):
            text = self._files.read(GIT, 1 << 20, bytes) or b""
            if not text.startswith(b"gitdir: "):
                return None
            directory = text.removeprefix(b"gitdir: ").rstrip(b"\r\n")
        common = directory
        named = self._files.read(os.path.join(directory, b"commondir"), 1 << 20, bytes)
        if named is not None:
            common = os.path.join(directory, named.rstrip(b"\r\n"))
        if not self._has_head(directory) or not all(
            self._is_directory(os.path.join(common, name)) for name in (b"objects", b"refs")
        ):
            return None
        return _Repository(directory, common)

    def _has_head(self, directory: bytes) -> bool:
        try:
            mode = os.lstat(os.path.join(directory, b"HEAD"), dir_fd=self._files.root).st_mode
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(mode) or stat.S_ISLNK(mode)

    def _is_directory(self, path: bytes) -> bool:
        status = self._files.stat(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    # ---------------------------------------------------------------------------------------------- its configuration

    def _config(self, repository: _Repository | None) -> list[config.Entry]:
        files = [config.File(path) for path in self._config_files()]
        if repository:
            own = os.path.join(repository.common, b"config")
            files.append(config.File(own, of_repository=True))
            worktrees = config.last(self._entries(own), b"extensions", b"worktreeconfig")
            if worktrees and config.is_true(worktrees.value):
                files.append(config.File(os.path.join(repository.directory, b"config.worktree"), of_repository=True))
        return config.collect(files, self._entries, lambda: self._facts(repository), self._home())

    def _entries(self, path: bytes, inside: bool = False) -> tuple[config.Entry, ...]:
        return self._files.read(path, MAX_CONFIG, config.parse, "config", inside=inside) or ()

    def _home(self) -> bytes | None:
        return self._environ.get(b"HOME")

    def _user_folder(self) -> bytes | None:
        """Where the user's own files of git lie, but for `~/.gitconfig`."""
        if folder := self._environ.get(b"XDG_CONFIG_HOME"):
            return os.path.join(folder, b"git")
        home = self._home()
        return None if home is None else os.path.join(home, b".config/git")

    def _config_files(self) -> list[bytes]:
        """Name the files of the system and of the user, weakest first."""
        files = []
        if not config.is_true(self._environ.get(b"GIT_CONFIG_NOSYSTEM", b"false")):
            files.append(self._environ.get(b"GIT_CONFIG_SYSTEM", b"/etc/gitconfig"))
        named = self._environ.get(b"GIT_CONFIG_GLOBAL")
        if named is not None:
            return [*files, named]
        if folder := self._user_folder():
            files.append(os.path.join(folder, b"config"))
        if home := self._home():
            files.append(os.path.join(home, b".gitconfig"))
        return files

    def _facts(self, repository: _Repository | None) -> config.Facts:
        root = os.readlink(b"/proc/self/fd/%d" % self._files.root)
        if repository is None:
            return config.Facts(root)
        head = self._files.read(os.path.join(repository.directory, b"HEAD"), 1 << 16, bytes) or b""
        branch = head.removeprefix(b"ref:").strip()
        directory = os.path.join(root, repository.directory)
        return config.Facts(
            root,
            (os.path.realpath(directory), os.path.normpath(directory)),
            branch.removeprefix(b"refs/heads/") if branch.startswith(b"refs/heads/") else b"",
        )

    def _excludes(self, entries: list[config.Entry]) -> bytes | None:
        """Return the contents of the excludes file.

        One that the repository's own configuration names is read only inside the root, links resolved: a command may
        write that configuration, and would learn from what is hidden what a file elsewhere holds.
        """
        named = config.last(entries, b"core", b"excludesfile")
        if named is not None:
            return self._rule_file(config.expand(named.value or b"", self._home()), inside=named.confined)
        folder = self._user_folder()
        return None if folder is None else self._rule_file(os.path.join(folder, b"ignore"))

    # ------------------------------------------------------------------------------------------------------- its index

    def _tracked(self, repository: _Repository) -> Tracked:
        own = self._entries(os.path.join(repository.common, b"config"))
        names = config.last(own, b"extensions", b"objectformat")
        size = 32 if names and (names.value or b"").lower() == b"sha256" else 20

        def make(index: bytes) -> Tracked:
            return self._index(index, size, repository.directory)

        path = os.path.join(repository.directory, b"index")
        return self._files.read(path, MAX_INDEX, make, f"index {size}") or self._no_paths

    def _index(self, index: bytes, size: int, directory: bytes) -> Tracked:
        """Read an index, and the shared one where it is split; a broken one counts as empty."""
        try:
            name = shared_index(index, size)
            if name is None or not name.strip(b"0"):
                return Tracked(index, None, size)
            shared = self._files.load(os.path.join(directory, b"sharedindex." + name), MAX_INDEX, bytes)
            return Tracked(index, shared.value, size) if shared else self._no_paths
        except ValueError:
            return self._no_paths
