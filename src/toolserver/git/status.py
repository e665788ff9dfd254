"""What differs between HEAD, the index and the work tree, as `git status` tells it (specification, section 12)."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import OrderedDict
from dataclasses import dataclass, field

import pygit2
from pygit2.enums import DeltaStatus, DiffFind, DiffOption

from toolserver._fast import git_status
from toolserver._fast.ignore import BaseRules
from toolserver._fast.paths import NO_SYMLINKS, open_beneath
from toolserver.git.repository import Repository

EXACT_ABOVE = 2500
"""Pairs of a deleted and an added file; where there are more, only renames without a change are found.

Comparing contents takes time with the square of such files, and holds up every other call meanwhile.
"""
VERIFIED = 100_000
"""Files whose content was compared and whose stat the index does not have; they are not read again."""
STAGED_KEPT = 16
"""Answers of what is staged that are remembered."""
CHUNK = 1 << 20
LINK = 0o120000
GITLINK = 0o160000
_CONFLICTS = {
    (1, 2, 3): "UU",
    (2, 3): "AA",
    (1, 2): "UD",
    (1, 3): "DU",
    (1,): "DD",
    (2,): "AU",
    (3,): "UA",
}


@dataclass(frozen=True, slots=True)
class Staged:
    """A difference between HEAD and the index."""

    letter: str
    path: bytes
    old_path: bytes
    old: pygit2.Oid | None
    """The blob in HEAD."""
    new: pygit2.Oid | None
    """The blob in the index."""
    old_mode: int
    new_mode: int
    similarity: int = 0
    """Of a rename, in percent."""


@dataclass(slots=True)
class Change:
    """One row: a path with its two columns, `.` where that column has nothing to tell."""

    path: bytes
    index: str = "."
    worktree: str = "."
    staged: Staged | None = None
    entry: int = -1
    """The place of its entry in the index; -1: it has none, or several."""

    @property
    def untracked(self) -> bool:
        return self.index == "?"

    @property
    def renamed_from(self) -> bytes | None:
        return self.staged.old_path if self.staged is not None and self.index == "R" else None


@dataclass(frozen=True, slots=True)
class Status:
    """All changes, by path; and the index that they were told by."""

    changes: list[Change]
    index: git_status.Index


@dataclass(slots=True)
class Memory:
    """What is remembered of a repository between questions; each part is proven before it is used."""

    staged: OrderedDict[tuple[object, ...], list[Staged]] = field(default_factory=OrderedDict)
    verified: OrderedDict[tuple[object, ...], bool] = field(default_factory=OrderedDict)
    counts: OrderedDict[tuple[object, ...], Counts] = field(default_factory=OrderedDict)


@dataclass(frozen=True, slots=True)
class Counts:
    """Lines that a change adds and removes; a binary one has none."""

    additions: int = 0
    deletions: int = 0
    binary: bool = False


def status(
    repository: Repository, root: int, rules: BaseRules, memory: Memory, *, leave_agents: bool, threads: int = 2
) -> Status:
    """Return what differs. `root` is a descriptor of the tree's root; `leave_agents` leaves out `.agents` at its top.

    Raises OSError where descriptors or memory run out or the index cannot be read, ValueError for a broken index.
    """
    file = repository.index_file
    index = git_status.Index(file.data or _EMPTY_INDEX)
    found = index.compare(
        root,
        rules,
        racy=file.mtime_ns,
        leave_agents=leave_agents,
        trust_mode=repository.flag("core.filemode", True),
        threads=threads,
    )
    rows: dict[bytes, Change] = {}
    extra: list[Change] = []
    stages: dict[bytes, list[int]] = {}
    for verdict, place, path in found:
        if path is not None:
            extra.append(Change(path, "?", "?"))
            continue
        name, mode, oid, size, stage = index.entry(place)
        if verdict == git_status.UNMERGED:
            stages.setdefault(name, []).append(stage)
            continue
        letter = _worktree_letter(repository, root, memory, verdict, (name, mode, oid, size))
        if letter != ".":
            rows[name] = Change(name, ".", letter, None, place)
    for staged in _staged(repository, index, memory):
        if staged.path not in stages:
            row = rows.setdefault(staged.path, Change(staged.path, entry=_place(index, staged.path)))
            row.index, row.staged = staged.letter, staged
    for name, of in stages.items():
        letters = _CONFLICTS.get(tuple(sorted(of)), "UU")
        rows[name] = Change(name, letters[0], letters[1])
    changes = sorted([*rows.values(), *extra], key=lambda row: (row.path, row.index == "?"))
    if leave_agents:
        changes = [row for row in changes if row.path != b".agents" and not row.path.startswith(b".agents/")]
    return Status(changes, index)


_EMPTY_INDEX = b"DIRC\0\0\0\2\0\0\0\0" + b"\0" * 20


def _place(index: git_status.Index, path: bytes) -> int:
    place = index.find(path)
    return place if place < len(index) and index.entry(place)[0] == path else -1


# ---------------------------------------------------------------------------------------------------------- work tree


def _worktree_letter(
    repository: Repository, root: int, memory: Memory, verdict: int, entry: tuple[bytes, int, bytes, int]
) -> str:
    name, mode, oid, size = entry
    if verdict == git_status.CHANGED:
        return "." if _same_content(repository, root, memory, name, mode, oid, size) else "M"
    if verdict == git_status.SUBMODULE:
        return "M" if _submodule_changed(repository, name, oid) else "."
    return {git_status.MODE: "M", git_status.TYPE: "T", git_status.DELETED: "D", git_status.INTENDED: "A"}[verdict]


def _same_content(
    repository: Repository, root: int, memory: Memory, name: bytes, mode: int, oid: bytes, size: int
) -> bool:
    """Whether a file still has the content that the index names, though its stat is another one."""
    above, _, base = name.rpartition(b"/")
    try:
        directory = open_beneath(root, above, os.O_PATH | os.O_DIRECTORY, resolve=NO_SYMLINKS)
    except OSError:
        return False
    try:
        if mode == LINK:
            return _blob_id(os.readlink(base, dir_fd=directory)) == oid
        fd = os.open(base, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return False
    finally:
        os.close(directory)
    with os.fdopen(fd, "rb", buffering=0) as file:
        now = os.fstat(fd)
        if not stat.S_ISREG(now.st_mode):
            return False
        if size and now.st_size & 0xFFFFFFFF != size:  # git looks no further then, whatever line ends would make of it
            return False
        key = (name, oid, now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
        known = memory.verified.get(key)
        if known is None:
            known = _compare(repository, file.fileno(), now.st_size, name, oid)
            memory.verified[key] = known
            while len(memory.verified) > VERIFIED:
                memory.verified.popitem(last=False)
        return known


def _compare(repository: Repository, fd: int, size: int, name: bytes, oid: bytes) -> bool:
    digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    whole = 0
    text = False
    while part := os.read(fd, CHUNK):
        digest.update(part)
        whole += len(part)
        text = text or b"\r\n" in part or b"$Id:" in part or part.startswith(b"\n")
    if whole == size and digest.digest() == oid:
        return True
    if not text or whole > MAX_CONVERTED:
        return False
    content = os.pread(fd, whole, 0)
    stored = repository.stored(name, content, pygit2.Oid(oid))
    return stored != content and _blob_id(stored) == oid


MAX_CONVERTED = 64 << 20
"""Bytes of a file whose line ends are converted to be compared."""


def _blob_id(content: bytes) -> bytes:
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).digest()


def _submodule_changed(repository: Repository, name: bytes, oid: bytes) -> bool:
    """Whether a submodule has another commit checked out, or holds changes of its own."""
    inner = Repository.open(os.path.join(repository.root, name))
    if inner is None:
        return False  # not initialised
    head = inner.head
    if head is None or head.id.raw != oid:
        return True
    try:
        root = os.open(inner.root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return bool(status(inner, root, BaseRules(), Memory(), leave_agents=False, threads=1).changes)
    finally:
        os.close(root)


# ------------------------------------------------------------------------------------------------------------- staged


def _staged(repository: Repository, index: git_status.Index, memory: Memory) -> list[Staged]:
    """Return what the index has that HEAD has not, and the other way round."""
    head = repository.head
    tree = None if head is None else head.tree.id
    if tree is not None and _cached_tree(index.extensions()) == tree.raw:
        return []
    key = (repository.root, tree, repository.index_file.signature)
    known = memory.staged.get(key)
    if known is None:
        found = _compare_with_head(repository, head)
        known = [one for one in found if one.letter != "A" or not _intended(index, one.path)]
        memory.staged[key] = known
        while len(memory.staged) > STAGED_KEPT:
            memory.staged.popitem(last=False)
    return known


def _cached_tree(extensions: bytes) -> bytes | None:
    """Return the tree that the index itself says it is equal to, from its TREE extension; None: it does not say."""
    at = 0
    while at + 8 <= len(extensions):
        size = int.from_bytes(extensions[at + 4 : at + 8])
        if extensions[at : at + 4] == b"TREE":
            name, _, rest = extensions[at + 8 : at + 8 + size].partition(b"\0")
            numbers, _, rest = rest.partition(b"\n")
            entries = numbers.partition(b" ")[0]
            return rest[:20] if not name and entries.isdigit() and len(rest) >= 20 else None
        at += 8 + size
    return None


def _intended(index: git_status.Index, path: bytes) -> bool:
    place = _place(index, path)
    return place >= 0 and index.intended(place)


def _compare_with_head(repository: Repository, head: pygit2.Commit | None) -> list[Staged]:
    git = repository.git
    git.index.read(True)
    if head is None:
        return [
            Staged("A", os.fsencode(entry.path), os.fsencode(entry.path), None, entry.id, 0, entry.mode)
            for entry in git.index
        ]
    diff = git.index.diff_to_tree(head.tree, DiffOption.INCLUDE_TYPECHANGE)
    kinds = [delta.status for delta in diff.deltas]
    pairs = kinds.count(DeltaStatus.ADDED) * kinds.count(DeltaStatus.DELETED)
    if pairs:
        how = DiffFind.FIND_RENAMES
        diff.find_similar(how | DiffFind.FIND_EXACT_MATCH_ONLY if pairs > EXACT_ABOVE else how)
    return _moved_links([made for delta in diff.deltas if (made := _of_delta(delta)) is not None])


_LETTERS = {
    DeltaStatus.ADDED: "A",
    DeltaStatus.DELETED: "D",
    DeltaStatus.MODIFIED: "M",
    DeltaStatus.RENAMED: "R",
    DeltaStatus.TYPECHANGE: "T",
}


def _of_delta(delta: pygit2.DiffDelta) -> Staged | None:
    letter = _LETTERS.get(delta.status)
    if letter is None:
        return None
    old, new = delta.old_file, delta.new_file
    return Staged(
        letter,
        old.raw_path if letter == "D" else new.raw_path,
        old.raw_path,
        None if letter == "A" else old.id,
        None if letter == "D" else new.id,
        0 if letter == "A" else int(old.mode),
        0 if letter == "D" else int(new.mode),
        delta.similarity,
    )


def _moved_links(found: list[Staged]) -> list[Staged]:
    """Pair links that were moved: the library never does, git does."""
    gone = {one.old: one for one in found if one.letter == "D" and one.old_mode == LINK}
    if not gone:
        return found
    result = [one for one in found if one not in gone.values()]
    for place, one in enumerate(result):
        if one.letter == "A" and one.new_mode == LINK and one.new in gone:
            before = gone.pop(one.new)
            result[place] = Staged(
                "R", one.path, before.old_path, before.old, one.new, before.old_mode, one.new_mode, 100
            )
    return [*result, *gone.values()]
