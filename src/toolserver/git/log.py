"""The commits of `/fs/log`, newest first, with the files that each changes (specification, section 12)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import islice
from typing import Any

import pygit2
from pygit2.enums import DiffFind, SortMode

from toolserver.git.contents import LINK
from toolserver.git.repository import Repository
from toolserver.git.status import EXACT_ABOVE
from toolserver.workspace.paths import shown

SHORT = 8
"""Digits of a short name."""
TREE = 0o040000


def commits(repository: Repository, most: int) -> list[dict[str, Any]]:
    """Return the newest commits from HEAD on, at most so many; none on an unborn branch."""
    if repository.head is None:
        return []
    walk = repository.git.walk(repository.head.id, SortMode.TIME)
    return [_commit(repository.git, commit) for commit in islice(walk, most)]


def _commit(git: pygit2.Repository, commit: pygit2.Commit) -> dict[str, Any]:
    encoding = commit.message_encoding or "utf-8"
    zone = timezone(timedelta(minutes=commit.commit_time_offset))
    return {
        "hash": str(commit.id),
        "short": str(commit.id)[:SHORT],
        "subject": _subject(_decoded(commit.raw_message, encoding)),
        "author": _decoded(commit.author.raw_name, encoding),
        "at": datetime.fromtimestamp(commit.commit_time, zone).isoformat(),
        "files": _files(git, commit),
    }


def _decoded(raw: bytes, encoding: str) -> str:
    try:
        return raw.decode(encoding, errors="replace")
    except LookupError:
        return raw.decode(errors="replace")


def _subject(message: str) -> str:
    """Return the first paragraph on one line, as `%s` does."""
    lines = message.lstrip("\n").split("\n")
    first = []
    for line in lines:
        if not line.strip():
            break
        first.append(line.strip())
    return " ".join(first)


def _files(git: pygit2.Repository, commit: pygit2.Commit) -> list[dict[str, Any]]:
    """Return what a commit changes against its first parent."""
    before = commit.parents[0].tree if commit.parent_ids else None
    found = {path: (letter, b"") for path, letter in _compare(git, before, commit.tree, b"")}
    gone = [path for path, (letter, _) in found.items() if letter == "D"]
    new = [path for path, (letter, _) in found.items() if letter == "A"]
    if gone and new and before is not None:
        for old, path in _renames(before, commit.tree, len(gone) * len(new)):
            if found.get(old, ("",))[0] == "D" and found.get(path, ("",))[0] == "A":
                del found[old]
                found[path] = ("R", old)
    return [_row(path, *found[path]) for path in sorted(found)]


def _row(path: bytes, letter: str, old: bytes) -> dict[str, Any]:
    row = {**shown(path), "status": letter}
    if old:
        row["from"] = old.decode(errors="replace")
    return row


_Entry = tuple[pygit2.Oid, int]


def _compare(
    git: pygit2.Repository, old: pygit2.Tree | None, new: pygit2.Tree | None, prefix: bytes
) -> Iterator[tuple[bytes, str]]:
    """Compare two trees by the names of their objects, going only where those differ."""
    before = _entries(old)
    after = _entries(new)
    for name in before.keys() | after.keys():
        one, other = before.get(name), after.get(name)
        if one == other:
            continue
        path = prefix + name
        inner = [git.get(side[0]) if side is not None and side[1] == TREE else None for side in (one, other)]
        if inner[0] is not None or inner[1] is not None:
            trees = [tree if isinstance(tree, pygit2.Tree) else None for tree in inner]
            yield from _compare(git, trees[0], trees[1], path + b"/")
        files = [side if side is not None and side[1] != TREE else None for side in (one, other)]
        if files[0] is None and files[1] is None:
            continue
        if files[0] is None or files[1] is None:
            yield path, "A" if files[0] is None else "D"
        else:
            yield path, "T" if files[0][1] & 0o170000 != files[1][1] & 0o170000 else "M"


def _entries(tree: pygit2.Tree | None) -> dict[bytes, _Entry]:
    return {} if tree is None else {entry.raw_name or b"": (entry.id, int(entry.filemode)) for entry in tree}


def _renames(old: pygit2.Tree, new: pygit2.Tree, pairs: int) -> Iterator[tuple[bytes, bytes]]:
    """Find renamed files; where there are many pairs, only those whose content is the same."""
    diff = old.diff_to_tree(new)
    how = DiffFind.FIND_RENAMES
    diff.find_similar(how | DiffFind.FIND_EXACT_MATCH_ONLY if pairs > EXACT_ABOVE else how)
    links: dict[pygit2.Oid, bytes] = {}
    new_links: list[tuple[pygit2.Oid, bytes]] = []
    for delta in diff.deltas:
        if delta.status_char() == "R":
            yield delta.old_file.raw_path, delta.new_file.raw_path
        elif delta.status_char() == "D" and int(delta.old_file.mode) == LINK:
            links[delta.old_file.id] = delta.old_file.raw_path
        elif delta.status_char() == "A" and int(delta.new_file.mode) == LINK:
            new_links.append((delta.new_file.id, delta.new_file.raw_path))
    for oid, path in new_links:  # the library never pairs links
        if oid in links:
            yield links.pop(oid), path
