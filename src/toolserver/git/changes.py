"""The rows of `/fs/changes`: what differs, and the lines that each change adds and removes."""

from __future__ import annotations

from collections.abc import Iterator

import pygit2

from toolserver._fast.diff import compare
from toolserver.git.contents import Content, of_blob, of_work_tree
from toolserver.git.repository import Repository
from toolserver.git.status import Change, Counts, Memory, Status

COUNTS_KEPT = 100_000


def counted(repository: Repository, root: int, status: Status, memory: Memory) -> Iterator[tuple[Change, Counts]]:
    """Return each change with its counts, the work tree's file against HEAD's. Raises OSError as `of_work_tree`."""
    for change in status.changes:
        yield change, _counts(repository, root, status, memory, change)


def _counts(repository: Repository, root: int, status: Status, memory: Memory, change: Change) -> Counts:
    if change.path.endswith(b"/"):
        return Counts()
    old, new = before(repository, status, change), after(repository, root, status, change)
    key = (change.path, None if old is None else old.proof, None if new is None else new.proof)
    known = memory.counts.get(key)
    if known is None:
        known = memory.counts[key] = counts(old, new)
        while len(memory.counts) > COUNTS_KEPT:
            memory.counts.popitem(last=False)
    return known


def counts(old: Content | None, new: Content | None) -> Counts:
    """Count the lines by which two contents differ; None is a file that is not there."""
    if (old is not None and old.binary) or (new is not None and new.binary):
        return Counts(binary=True)
    old_data = b"" if old is None or old.data is None else old.data
    new_data = b"" if new is None or new.data is None else new.data
    if old is not None and new is not None and old.mode & 0o170000 != new.mode & 0o170000:
        return Counts(compare(b"", new_data)[0], compare(old_data, b"")[1])
    added, removed, _ = compare(old_data, new_data)
    return Counts(added, removed)


def before(repository: Repository, status: Status, change: Change) -> Content | None:
    """Return what HEAD has for a change: under the old name, where it is a rename."""
    if change.untracked:
        return None
    if change.staged is not None:
        staged = change.staged
        return None if staged.old is None else of_blob(repository, staged.old_path, staged.old, staged.old_mode)
    if change.entry < 0:  # unmerged
        return of_head(repository, change.path)
    if change.worktree == "A":  # intent to add
        return None
    return in_index(repository, status, change)


def after(repository: Repository, root: int, status: Status, change: Change) -> Content | None:
    """Return what the work tree has for a change."""
    if change.worktree == "D" or (change.index == "D" and change.worktree == "."):
        return None
    if change.worktree == "." and change.staged is not None and change.staged.new is not None:
        staged = change.staged
        assert staged.new is not None
        return of_blob(repository, change.path, staged.new, staged.new_mode)
    return of_work_tree(repository, root, change.path, _blob_in_index(status, change))


def in_index(repository: Repository, status: Status, change: Change) -> Content | None:
    """Return what the index has for a change; None: nothing, or a file that is only intended."""
    if change.entry < 0 or change.worktree == "A":
        return None
    _, mode, oid, _, _ = status.index.entry(change.entry)
    return of_blob(repository, change.path, pygit2.Oid(oid), mode)


def _blob_in_index(status: Status, change: Change) -> pygit2.Oid | None:
    return None if change.entry < 0 or change.worktree == "A" else pygit2.Oid(status.index.entry(change.entry)[2])


def of_head(repository: Repository, path: bytes) -> Content | None:
    """Return what HEAD has at a path; None: nothing, or a directory."""
    found = None if repository.head is None else lookup(repository, repository.head.tree, path)
    if found is None or found[1] == TREE:
        return None
    return of_blob(repository, path, *found)


TREE = 0o040000


def lookup(repository: Repository, tree: pygit2.Tree, path: bytes) -> tuple[pygit2.Oid, int] | None:
    """Return the object at a path of a tree and its mode, by the bytes of its names."""
    found: tuple[pygit2.Oid, int] | None = (tree.id, TREE)
    for name in path.split(b"/") if path else ():
        assert found is not None
        inner = repository.tree(found[0]) if found[1] == TREE else None
        if inner is None:
            return None
        found = next(((one.id, int(one.filemode)) for one in inner if one.raw_name == name), None)
        if found is None:
            return None
    return found
