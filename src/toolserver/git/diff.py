"""The patch of `/fs/diff`: one that `git apply` takes (specification, section 12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from toolserver._fast.diff import compare
from toolserver.git.changes import after, before, in_index, of_head
from toolserver.git.contents import NO_OID, Content, of_blob
from toolserver.git.repository import Repository
from toolserver.git.status import Change, Status

LONGEST = 200_000
"""Bytes of a patch; it is cut there, on the border of a character."""
CONTEXT = 3
Against = Literal["HEAD", "index", "staged"]


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch as text, whether it was cut, and whether something in it is binary."""

    text: str
    truncated: bool
    binary: bool


@dataclass(frozen=True, slots=True)
class _Pair:
    old_path: bytes
    path: bytes
    old: Content | None
    new: Content | None
    similarity: int = -1
    """Of a rename, in percent."""


def patch(repository: Repository, root: int, status: Status, against: Against, path: bytes) -> Patch:
    """Return the patch of a path, of all below it where it is a directory; empty: of the whole tree.

    Raises OSError where descriptors or memory run out.
    """
    out = bytearray()
    binary = False
    for change in _merged(status.changes):
        if not _concerns(change, path):
            continue
        pair = _pair(repository, root, status, change, against)
        if pair is None:
            continue
        binary = binary or any(side is not None and side.binary for side in (pair.old, pair.new))
        for part in _sections(pair, LONGEST + 1 - len(out)):
            out += part
        if len(out) > LONGEST:
            break
    text = out.decode(errors="replace")
    encoded = text.encode()
    if len(encoded) > LONGEST:
        return Patch(encoded[:LONGEST].decode(errors="ignore"), True, binary)
    return Patch(text, False, binary)


def _concerns(change: Change, path: bytes) -> bool:
    return not path or change.path == path or change.path.startswith(path + b"/") or change.renamed_from == path


def _merged(changes: list[Change]) -> Iterator[Change]:
    """Take the two rows of a file that was only taken out of the index for one."""
    before: Change | None = None
    for change in changes:
        if before is not None:
            if change.path == before.path:
                yield Change(change.path, "D", "?", before.staged)
                before = None
                continue
            yield before
        before = change
    if before is not None:
        yield before


def _pair(repository: Repository, root: int, status: Status, change: Change, against: Against) -> _Pair | None:
    """Return the two sides of a change; None where there is no difference."""
    if change.path.endswith(b"/"):
        return None
    staged = change.staged
    old_path = change.renamed_from or change.path
    similarity = staged.similarity if staged is not None and change.index == "R" else -1
    if against == "staged":
        if staged is None:
            return None
        old = before(repository, status, change)
        new = None if staged.new is None else of_blob(repository, change.path, staged.new, staged.new_mode)
    elif against == "index":
        if change.worktree == ".":
            return None
        old_path, similarity = change.path, -1
        if change.entry < 0 and not change.untracked and change.worktree != "?":
            old = of_head(repository, change.path)  # unmerged: ours
        else:
            old = in_index(repository, status, change)
        new = after(repository, root, status, change)
    else:
        old, new = before(repository, status, change), after(repository, root, status, change)
    if old is None and new is None:
        return None
    if old is not None and new is not None and old_path == change.path:
        same = old.mode == new.mode and (old.proof == new.proof if old.data is None else old.data == new.data)
        if same:
            return None
    return _Pair(old_path, change.path, old, new, similarity)


def _sections(pair: _Pair, most: int) -> Iterator[bytes]:
    """Write a pair: a change of the type is a file that goes and one that comes."""
    if pair.old is not None and pair.new is not None and pair.old.mode & 0o170000 != pair.new.mode & 0o170000:
        yield _section(_Pair(pair.old_path, pair.old_path, pair.old, None), most)
        yield _section(_Pair(pair.path, pair.path, None, pair.new), most)
    else:
        yield _section(pair, most)


def _section(pair: _Pair, most: int) -> bytes:
    old, new = pair.old, pair.new
    lines = [b"diff --git %b %b" % (_quoted(b"a/" + pair.old_path), _quoted(b"b/" + pair.path))]
    if old is None:
        assert new is not None
        lines.append(b"new file mode %o" % new.mode)
    elif new is None:
        lines.append(b"deleted file mode %o" % old.mode)
    elif old.mode != new.mode:
        lines += [b"old mode %o" % old.mode, b"new mode %o" % new.mode]
    if pair.similarity >= 0:
        names = (_quoted(pair.old_path), _quoted(pair.path))
        lines.append(b"similarity index %d%%" % pair.similarity)
        lines += [b"rename from %b" % names[0], b"rename to %b" % names[1]]
    source = b"/dev/null" if old is None else _quoted(b"a/" + pair.old_path)
    target = b"/dev/null" if new is None else _quoted(b"b/" + pair.path)
    if (old is not None and old.binary) or (new is not None and new.binary):
        lines += [_index_line(old, new), b"Binary files %b and %b differ" % (source, target)]
        return b"\n".join(lines) + b"\n"
    hunks = compare(_data(old), _data(new), context=CONTEXT, most=max(most, 1))[2]
    if hunks:
        lines += [b"--- %b" % _ended(source), b"+++ %b" % _ended(target)]
    return b"\n".join(lines) + b"\n" + hunks


def _index_line(old: Content | None, new: Content | None) -> bytes:
    sides = [NO_OID if side is None else side.oid for side in (old, new)]
    return b"index %b..%b" % (sides[0].encode(), sides[1].encode())


def _data(content: Content | None) -> bytes:
    return b"" if content is None or content.data is None else content.data


_ESCAPES = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 34: b'\\"', 92: b"\\\\"}


def _quoted(name: bytes) -> bytes:
    """Quote a name as git does, but for letters of UTF-8, which stay readable."""
    try:
        name.decode()
        odd = False
    except UnicodeDecodeError:
        odd = True
    if not odd and not any(byte < 32 or byte in (34, 92, 127) for byte in name):
        return name
    return b'"%b"' % b"".join(
        _ESCAPES.get(byte) or (b"\\%03o" % byte if byte < 32 or byte == 127 or (odd and byte > 127) else bytes([byte]))
        for byte in name
    )


def _ended(name: bytes) -> bytes:
    """End a name with blanks by a tab, so that what reads it knows where it ends."""
    return name + b"\t" if b" " in name and not name.startswith(b'"') else name
