"""The text of a file between edits: its bytes, and the parts that edits have replaced, without a copy for each edit.

A place is where a byte of the running text comes from: `(offset in the base, 0)`, or for a byte of a part
`(start of the part, offset in it)`. Places compare as the bytes stand in the text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection

from toolserver._fast.anchors import Anchors
from toolserver._fast.text import occurrences, replace_all

MOST_PLACES = 64
"""Occurrences that an edit replaces one by one; more are replaced in a new copy of the text."""
MOST_HITS = 256
"""Places of an anchor that are looked at; a text with more is looked for in a copy of the whole."""
MOST_PARTS = 20_000
"""Parts after which the text is joined into a new base."""
FEW_PARTS = 16
"""Parts up to which writing a text in pieces is faster than joining them."""
MOST_BASES = 16
"""Bases that are indexed; each index takes as long as some ten searches of the whole text."""
CONTEXT = 7
"""Bytes around a part that belong to anchors which touch it: the widest has 8."""

Place = tuple[int, int]


class _Part:
    """Bytes of the base, from `start` to before `end`, that stand as `text` now."""

    __slots__ = ("end", "gone", "start", "text")

    def __init__(self, start: int, end: int, text: bytes) -> None:
        self.start = start
        self.end = end
        self.text = text
        self.gone = False


class RunningText:
    """A text that edits change one after the other."""

    def __init__(self, content: bytes, sought: Collection[bytes] = ()) -> None:
        """`sought` are texts that will be looked for; an index finds them all in a few passes. Others take one each."""
        self.scanned = 0
        """Bytes of whole texts that were gone over."""
        self.changed = False
        self._sought = sought
        self._bases = 0
        self._set(content)

    def _set(self, content: bytes) -> None:
        self._base = content
        self.size = len(content)
        self._starts: list[int] = []
        self._parts: list[_Part] = []
        self._flat: bytes | None = content
        self._flat_starts: list[int] = []
        self._bases += 1
        indexed = self._sought and self._bases <= MOST_BASES
        self._anchors = Anchors(self._sought, content, MOST_HITS) if indexed else None
        self._hits: dict[int, list[tuple[_Part, int]]] = {}
        self.scanned += self._anchors.scanned if self._anchors else 0
        self._returns = b"\r" in content
        self._ends: tuple[int, int] | None = None

    # -------------------------------------------------------------------------------------------------------- whole

    def whole(self) -> bytes:
        """Return the text as it is now."""
        if self._flat is None:
            pieces: list[bytes] = []
            at = size = 0
            self._flat_starts = []
            for part in self._parts:
                pieces += (self._base[at : part.start], part.text)
                size += part.start - at
                self._flat_starts.append(size)
                size += len(part.text)
                at = part.end
            pieces.append(self._base[at:])
            self._flat = b"".join(pieces)
            self.scanned += size
        return self._flat

    def pieces(self) -> list[bytes | memoryview]:
        """Return the text as it is now in pieces, without a copy where they are few."""
        if self._flat is not None or len(self._parts) > FEW_PARTS:
            return [self.whole()]
        view = memoryview(self._base)
        pieces: list[bytes | memoryview] = []
        at = 0
        for part in self._parts:
            pieces += (view[at : part.start], part.text)
            at = part.end
        return [*pieces, view[at:]]

    def place(self, offset: int) -> Place:
        """Return the place of an offset in `whole`, which must have been asked for since the last change."""
        index = bisect_right(self._flat_starts, offset) - 1
        if index < 0:
            return offset, 0
        part, within = self._parts[index], offset - self._flat_starts[index]
        return (part.start, within) if within < len(part.text) else (part.end + within - len(part.text), 0)

    @property
    def all_crlf(self) -> bool:
        """Whether there is a line end and a CR stands before every LF."""
        feeds, pairs = self._line_ends()
        return feeds == pairs > 0

    @property
    def mixed(self) -> bool:
        """Whether a CR stands before some LFs and not before others."""
        feeds, pairs = self._line_ends()
        return feeds > pairs > 0

    def _line_ends(self) -> tuple[int, int]:
        """Return how many LFs and CRLFs there are; without a CR none are counted."""
        if not self._returns:
            return 0, 0
        if self._ends is None:
            whole = self.whole()
            self.scanned += 2 * len(whole)
            self._ends = (occurrences(whole, b"\n", 0)[0], occurrences(whole, b"\r\n", 0)[0])
        return self._ends

    # ------------------------------------------------------------------------------------------------------ finding

    def find(self, old: bytes) -> tuple[int, list[Place]]:
        """Return how often `old` occurs, without overlaps from the left, and the first MOST_PLACES places."""
        found = self._by_anchor(old)
        if found is not None:
            return len(found), found[:MOST_PLACES]
        whole = self.whole()
        self.scanned += len(whole)
        count, offsets = occurrences(whole, old, MOST_PLACES)
        return count, [self.place(offset) for offset in offsets]

    def _by_anchor(self, old: bytes) -> list[Place] | None:
        """Return all places by the index; None where it does not know `old`, or it would take too long."""
        anchor = None if self._anchors is None else self._anchors.anchor(old)
        if anchor is None:
            return None
        assert self._anchors is not None
        number, before = anchor
        hits = self._hits.get(number)
        if hits:
            hits = self._hits[number] = [hit for hit in hits if not hit[0].gone]
            if len(hits) > MOST_HITS:
                return None
        starts = {self._back((at, 0), before) for at in self._anchors.places(number) if not self._replaced(at)}
        for part, offset in hits or ():
            first = (part.start, offset) if offset >= 0 else self._back((part.start, 0), -offset)
            starts.add(None if first is None else self._back(first, before))
        found: list[Place] = []
        last: Place | None = None
        for start in sorted(start for start in starts if start is not None):
            if (last is None or start > last) and self._take(start, len(old)) == old:
                found.append(start)
                last = self._forward(start, len(old) - 1)
        return found

    def _index(self, at: int) -> int:
        """Return the part that begins last at or before an offset of the base; -1: none."""
        return bisect_right(self._starts, at) - 1

    def _replaced(self, at: int) -> bool:
        index = self._index(at)
        return index >= 0 and at < self._parts[index].end

    def _gap_end(self, index: int) -> int:
        """Return where the bytes of the base after a part end."""
        return self._starts[index + 1] if index + 1 < len(self._starts) else len(self._base)

    def _back(self, place: Place, count: int) -> Place | None:
        """Return the place so many bytes before another; None: the text begins after it."""
        at, within = place
        index = self._index(at)
        if index >= 0 and at < self._parts[index].end:
            if within >= count:
                return at, within - count
            count -= within
            index -= 1
        while True:
            gap = at - (self._parts[index].end if index >= 0 else 0)
            if gap >= count:
                return at - count, 0
            if index < 0:
                return None
            count -= gap
            part = self._parts[index]
            if len(part.text) >= count:
                return part.start, len(part.text) - count
            count -= len(part.text)
            at = part.start
            index -= 1

    def _forward(self, place: Place, count: int) -> Place:
        """Return the place so many bytes after another; the text must go on that far."""
        at, within = place
        index = self._index(at)
        if index >= 0 and at < self._parts[index].end:
            part = self._parts[index]
            if within + count < len(part.text):
                return at, within + count
            count -= len(part.text) - within
            at = part.end
        while True:
            gap = self._gap_end(index) - at
            if count < gap:
                return at + count, 0
            count -= gap
            index += 1
            part = self._parts[index]
            if count < len(part.text):
                return part.start, count
            count -= len(part.text)
            at = part.end

    def _take(self, place: Place, count: int) -> bytes:
        """Return so many bytes from a place on, fewer at the end of the text."""
        at, within = place
        index = self._index(at)
        pieces = []
        if index >= 0 and at < self._parts[index].end:
            part = self._parts[index]
            pieces.append(part.text[within : within + count])
            count -= len(pieces[0])
            at = part.end
        while count > 0:
            end = self._gap_end(index)
            piece = self._base[at : min(end, at + count)]
            pieces.append(piece)
            count -= len(piece)
            index += 1
            if count == 0 or index >= len(self._parts):
                break
            part = self._parts[index]
            pieces.append(part.text[:count])
            count -= len(pieces[-1])
            at = part.end
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    # ---------------------------------------------------------------------------------------------------- replacing

    def replace(self, old: bytes, new: bytes, count: int, places: list[Place]) -> None:
        """Replace the `count` occurrences of `old`, which `find` has told."""
        self.changed = True
        if count > len(places) or len(self._parts) > MOST_PARTS:
            whole = self.whole()
            self.scanned += 2 * len(whole)
            self._set(replace_all(whole, old, new, count))
            return
        for place in reversed(places):
            self.replace_at(place, old, new)

    def replace_at(self, place: Place, old: bytes, new: bytes) -> None:
        """Replace `old`, which is at a place."""
        self.changed = True
        self._returns = self._returns or b"\r" in new
        self._count_ends(place, old, new)
        last = self._forward(place, len(old) - 1)
        first_index, last_index = self._index(place[0]), self._index(last[0])
        start, before = place[0], b""
        if first_index >= 0 and start < self._parts[first_index].end:
            before = self._parts[first_index].text[: place[1]]
        else:
            first_index += 1
        end, after = last[0] + 1, b""
        if last_index >= 0 and last[0] < self._parts[last_index].end:
            end, after = self._parts[last_index].end, self._parts[last_index].text[last[1] + 1 :]
        for part in self._parts[first_index : last_index + 1]:
            part.gone = True
        part = _Part(start, end, before + new + after)
        self._parts[first_index : last_index + 1] = [part]
        self._starts[first_index : last_index + 1] = [start]
        self.size += len(new) - len(old)
        self._flat = None
        if self._anchors is not None:
            self._note_hits(first_index, part)

    def _note_hits(self, index: int, part: _Part) -> None:
        """Note the anchors that hold a byte of a part, or its two neighbours where it has none."""
        assert self._anchors is not None
        before = self._before(index)
        after = self._take((part.end, 0), CONTEXT) if part.end < len(self._base) else b""
        window = before + part.text + after
        self.scanned += len(window)
        for at, width, number in self._anchors.scan(window):
            offset = at - len(before)
            if offset < len(part.text) and offset + width > 0:
                self._hits.setdefault(number, []).append((part, offset))

    def _before(self, index: int) -> bytes:
        """Return the CONTEXT bytes before a part, fewer at the beginning of the text."""
        at = self._starts[index]
        left = CONTEXT
        pieces = []
        while True:
            index -= 1
            begin = self._parts[index].end if index >= 0 else 0
            pieces.append(self._base[max(begin, at - left) : at])
            left -= len(pieces[-1])
            if left == 0 or index < 0:
                break
            pieces.append(self._parts[index].text[-left:])
            left -= len(pieces[-1])
            if left == 0:
                break
            at = self._parts[index].start
        return b"".join(reversed(pieces))

    def _count_ends(self, place: Place, old: bytes, new: bytes) -> None:
        """Keep the numbers of line ends and of CRLFs, where they are known."""
        if self._ends is None:
            return
        previous = self._back(place, 1)
        left = b"" if previous is None else self._take(previous, 1)
        right = self._take(place, len(old) + 1)[len(old) :]
        feeds, pairs = self._ends
        for sign, text in ((-1, old), (1, new)):
            feeds += sign * text.count(b"\n")
            pairs += sign * (left + text + right).count(b"\r\n")
        self._ends = (feeds, pairs)
