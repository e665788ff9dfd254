"""Stages the parts of a diff in a batch of the writer: names, contents, modes (specification, section 4)."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolserver._fast import udiff
from toolserver.errors import BadArgument, ToolError
from toolserver.patches.headers import Part
from toolserver.patches.messages import misplaced, notes, text
from toolserver.patches.names import GIT_PREFIXES, malformed, prefix_of, stripped
from toolserver.patches.parser import Parts
from toolserver.workspace.paths import Place, Tree
from toolserver.writing.batch import Batch, File

MAX_WORK = 4 * 1024**3
"""Bytes of the files in which the hunks of one diff are placed; a file counts once for each of its parts."""
NOTES = 1000
"""How many notes an answer holds; one more says how many were left out."""


@dataclass(slots=True)
class Outcome:
    """The result of a patch: the files touched, root-relative and in order, and the notes."""

    files: dict[bytes, None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def places(tree: Tree, cwd: bytes, diff: Parts) -> list[Place]:
    """Return every place that a name of the diff can mean, so that the writer can serialise calls.

    Raises BadArgument, OutsideTree or ToolError for a name that cannot be used.
    """
    found: dict[bytes, Place] = {}
    for part in diff.parts:
        for raw, line in _names(part):
            readings = [_place(tree, cwd, name, line) for name in _readings(raw)]
            found.update((place.path, place) for place in readings)
        for name in (part.source, part.target):
            if name is not None:
                place = _place(tree, cwd, name, part.line)
                found[place.path] = place
    return list(found.values())


def _names(part: Part) -> Iterator[tuple[bytes, int]]:
    if not part.move:
        for side in (part.old, part.new):
            if side is not None and side.raw is not None:
                yield side.raw, side.line


def _readings(raw: bytes) -> list[bytes]:
    """Return the names that a name in a header can mean, the one without a prefix first."""
    bare = stripped(raw)
    return [raw] if bare is None else [bare] if prefix_of(raw) in GIT_PREFIXES else [bare, raw]


def _place(tree: Tree, cwd: bytes, name: bytes, line: int) -> Place:
    """Return the place of a name. Raises BadArgument, OutsideTree, and ToolError for a directory's name."""
    place = tree.place(os.path.join(cwd, name), f"diff, line {line}")
    if name.endswith((b"/", b"/.")):
        raise ToolError(f"diff, line {line}: {text(name)} is a directory's name; a patch changes files")
    return place


def stage(batch: Batch, cwd: bytes, diff: Parts) -> Outcome:
    """Stage all of a diff in a batch. `cwd` is the link-free path that its names are relative to.

    Raises ToolError if a part does not apply, BadArgument if its binary data is damaged.
    """
    batch.keep.add(cwd)
    staging = _Staging(batch, cwd, diff)
    for number, part in enumerate(diff.parts):
        staging.take(number, part)
    notes = staging.out.notes
    if len(notes) + staging.left_out > NOTES:
        notes[NOTES:] = [f"and {len(notes) + staging.left_out - NOTES} more of this kind"]
    return staging.out


@dataclass(frozen=True, slots=True)
class _Before:
    """A file before a diff, or before a mail of a series; the content is None if there was none."""

    content: bytes | None
    mode: int | None


class _Staging:
    """The state of staging one diff."""

    def __init__(self, batch: Batch, cwd: bytes, diff: Parts) -> None:
        self.batch = batch
        self.cwd = cwd
        self.diff = diff
        self.out = Outcome(notes=list(diff.notes))
        self.mail = diff.parts[0].mail
        self.before: dict[bytes, _Before] = {}
        """Files changed by earlier mails, as these left them; all others are as on disk."""
        self.changed: dict[bytes, File] = {}
        """Files that this mail has changed so far, by link-free path."""
        self.left_out = 0
        """How many notes were not added to `out`."""
        self.work = 0
        """Bytes that count against MAX_WORK so far."""
        self.displaced: dict[bytes, _Before] = {}
        """Files that a rename replaced before they were renamed themselves."""
        self.leaving: dict[bytes, int] | None = None
        """By file, the last part of this mail that renames it; filled in when a rename's target exists."""

    def take(self, number: int, part: Part) -> None:
        if part.mail != self.mail:
            self.mail = part.mail
            self.displaced.clear()
            self.leaving = None
            for path, file in self.changed.items():
                self.before[path] = _Before(file.content() if file.exists else None, file.mode_given)
            self.changed.clear()
        if part.move:
            self._move(number, part)
        elif part.creates:
            self._create(part)
        else:
            self._change(part)

    def _place(self, name: bytes, line: int) -> Place:
        return _place(self.batch.tree, self.cwd, name, line)

    def _touch(self, place: Place, file: File) -> None:
        self.out.files[place.path] = None
        self.changed[file.path] = file

    # ------------------------------------------------------------------------------------------------ kinds of parts

    def _create(self, part: Part) -> None:
        assert part.new is not None
        place = self._created(part)
        file = self.batch.look(place)
        self._refuse_existing(place, file)
        file.put(self._changed(part, place, file, b""), part.mode)
        self._touch(place, file)

    def _refuse_existing(self, place: Place, file: File) -> None:
        if file.exists or (not file.to_remove and self.batch.is_link(place)):
            raise ToolError(f"{place.given} exists already, and the diff creates it")

    def _change(self, part: Part) -> None:
        """Stage a part that modifies a file or deletes it."""
        found = self._existing(part)
        if found is None:
            self._create(part)
            return
        place, file = found
        if part.deletes and self.batch.is_link(place):
            raise ToolError(f"{place.given} is a symlink; a symlink is not deleted")
        content = file.content()
        if part.hunks is None and part.binary is None and not part.deletes:
            _check_mode(part, place, file)
        changed = self._changed(part, place, file, content)
        self._touch(place, file)
        if part.deletes:
            if changed:
                raise ToolError(
                    f"{place.given} is not deleted: the diff does not hold all of it, {len(changed)} bytes are left"
                )
            file.remove(prune=True)
        elif not changed and part.git is None and part.new is not None and part.new.epoch:
            file.remove(prune=True)
        else:
            file.put(changed, part.mode)

    def _move(self, number: int, part: Part) -> None:
        assert part.source is not None
        assert part.target is not None
        source, target = self._place(part.source, part.line), self._place(part.target, part.line)
        old, new = self.batch.look(source), self.batch.look(target)
        if part.move == "rename":
            if self.batch.is_link(source):
                raise ToolError(f"{source.given} is a symlink; a symlink is not renamed")
            displaced = self.displaced.pop(old.path, None)
            before = displaced or _Before(old.content(), old.mode_given)
        else:
            displaced = None
            before = self.before.get(old.path) or _Before(old.original(), None)
            if before.content is None:
                raise ToolError(f"{source.given}: no such file or directory")
        content = before.content
        assert content is not None
        if new.exists and new is not old and self._leaves_later(number, new):
            self.displaced[new.path] = _Before(new.content(), new.mode_given)
        else:
            self._refuse_existing(target, new)
        changed = self._changed(part, target, old, content)
        if part.move == "rename":
            self._touch(source, old)
            if displaced is None:
                old.remove(prune=True)
        new.put(changed, part.mode or before.mode, like=old)
        self._touch(target, new)

    def _leaves_later(self, number: int, file: File) -> bool:
        """Return whether a later part of the mail renames the file at a rename's target: git does both at once."""
        if self.leaving is None:
            self.leaving = {}
            for later, part in enumerate(self.diff.parts[number + 1 :], number + 1):
                if part.mail != self.mail:
                    break
                if part.move == "rename" and part.source is not None:
                    self.leaving[self.batch.look(self._place(part.source, part.line)).path] = later
        return self.leaving.get(file.path, -1) > number

    # --------------------------------------------------------------------------------------------------------- names

    def _created(self, part: Part) -> Place:
        """Return the place of a new file. Raises ToolError if its name has two readings."""
        name = part.new if part.new is not None and part.new.raw is not None else part.old
        assert name is not None
        raw = name.raw
        assert raw is not None
        bare = stripped(raw)
        if bare is not None and (prefix_of(raw) in GIT_PREFIXES or _differing_prefix(part)):
            return self._place(bare, name.line)
        plain = self._place(raw, name.line)
        if bare is not None:
            other = self._place(bare, name.line)
            if other.path == plain.path:
                return plain
            if not part.alike:
                raise ToolError(
                    f"line {name.line} of the diff: the new file may be {plain.given} or {other.given}; "
                    f"put a prefix before its name: b/{text(raw)} or b/{text(bare)}"
                )
        self._note_plain(name.line, raw)
        return plain

    def _existing(self, part: Part) -> tuple[Place, File] | None:
        """Return the file to change: by its new name, else by its old one; None if a plain diff creates it.

        Raises ToolError if a name has two readings that exist, or none.
        """
        both = [side for side in (part.old, part.new) if side is not None and side.raw is not None]
        names = {side.raw: side.line for side in both if side.raw is not None}
        prefixes = GIT_PREFIXES | {prefix_of(raw) for raw in names if _differing_prefix(part)}
        missing: list[Place] = []
        for raw, line in reversed(names.items()):
            bare = stripped(raw)
            plain = self._place(raw, line)
            inner = plain if bare is None else self._place(bare, line)
            file = self.batch.look(inner)
            if file.exists and bare is not None and (prefix_of(raw) in prefixes or inner.path == plain.path):
                return inner, file
            other = file if inner is plain else self.batch.look(plain)
            if file is not other and file.exists and other.exists:
                raise ToolError(
                    f"line {line} of the diff: {text(raw)} may be {plain.given} or {inner.given}, and both exist; "
                    f"put a prefix before the name: a/{text(raw)} or a/{text(bare or raw)}"
                )
            if other.exists:
                self._note_plain(line, raw)
                return plain, other
            if file.exists:
                return inner, file
            missing.append(inner)
            if prefix_of(raw) not in prefixes:
                missing.append(plain)
        if part.git is None and part.hunks is not None and part.hunks.creates and not part.deletes:
            return None
        raise self._missing(missing)

    def _missing(self, places: list[Place]) -> ToolError:
        for place in places:
            file = self.batch.look(place)
            if file.status is not None and not file.exists and not file.to_remove:
                return file.not_a_file()
        names = list(dict.fromkeys(place.given for place in places))
        return ToolError(f"{' or '.join(names)}: no such file or directory")

    def _note_plain(self, line: int, raw: bytes) -> None:
        self.out.notes.append(
            f"line {line} of the diff: {text(raw)} has no prefix such as a/ or b/; taken as it stands"
        )

    # ------------------------------------------------------------------------------------------------------ contents

    def _changed(self, part: Part, place: Place, file: File, content: bytes) -> bytes:
        """Return the content after a part. Raises ToolError if the part does not apply or changes nothing."""
        if part.binary is not None:
            changed = _binary(part, place, content, self.batch.limit)
        elif part.hunks is not None:
            self.work += len(content)
            if self.work > MAX_WORK:
                raise ToolError(
                    f"{place.given}: the diff has too many parts for a file of {len(content)} bytes; join them"
                )
            try:
                changed, forgiven = part.hunks.apply(content, self.batch.limit)
            except udiff.Misplaced as error:
                raise ToolError(misplaced(place.given, error)) from error
            except udiff.TooLarge as error:
                file.check_size(error.size)
                raise AssertionError("a result over the limit is over the limit") from error
            for hunk in forgiven:
                if len(self.out.notes) < NOTES:
                    self.out.notes.extend(notes(place.given, part.hunks, *hunk))
                else:
                    self.left_out += hunk[-1].bit_count()
        else:
            return content
        if changed == content:
            raise ToolError(f"{place.given}: the diff leaves its content as it is")
        return changed


def _differing_prefix(part: Part) -> bool:
    """Return whether the two names of a plain diff differ in their first component only."""
    if part.git is not None or part.old is None or part.new is None or part.old.raw is None or part.new.raw is None:
        return False
    bare = stripped(part.old.raw)
    return bare is not None and bare == stripped(part.new.raw) and part.old.raw != part.new.raw


def _check_mode(part: Part, place: Place, file: File) -> None:
    """Refuse a change of the mode alone if the file does not have the old mode, or has the new one already."""
    mode = 0o755 if file.mode & stat.S_IXUSR else 0o644
    if part.old_mode not in (None, mode):
        raise ToolError(f"{place.given} has the mode 100{mode:o}, not the old mode 100{part.old_mode:o} of the diff")
    if part.mode == mode:
        raise ToolError(f"{place.given} has the mode 100{mode:o} already; the diff leaves it as it is")


def _binary(part: Part, place: Place, content: bytes, limit: int) -> bytes:
    binary, index = part.binary, part.index
    assert binary is not None
    assert index is not None
    if not part.creates and not _named(content, index[0]):
        raise ToolError(
            f"{place.given} is not the file that the binary patch is for: its content is not {index[0].decode()}"
        )
    if binary.size > limit:
        raise ToolError(f"{place.given}: {binary.size} bytes are more than the {limit} that one file may have")
    data = binary.inflated()
    if binary.delta:
        try:
            data = udiff.apply_delta(content, data, limit)
        except udiff.TooLarge as error:
            raise ToolError(
                f"{place.given}: {error.size} bytes are more than the {limit} that one file may have"
            ) from error
        except ValueError as error:
            raise malformed(binary.line, str(error)) from error
    if not part.deletes and not _named(data, index[1]):
        raise BadArgument(f"diff, line {binary.line}: the binary data does not give the content {index[1].decode()}")
    return data


def _named(content: bytes, name: bytes) -> bool:
    """Return whether a content has this git id, which may be abbreviated."""
    kind = hashlib.sha256 if len(name) > 40 else hashlib.sha1
    found = kind(b"blob %d\0" % len(content), usedforsecurity=False)
    found.update(content)
    return found.hexdigest().encode().startswith(name)
