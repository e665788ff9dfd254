"""The rules for placing hunks, once more in plain Python: slow, without an index, one rule after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

BLANKS = b" \t"


@dataclass
class Hunk:
    """A hunk as the specification sees it: signed lines, a stated line or none."""

    stated: int | None
    body: list[tuple[str, bytes]]
    old_unended: bool = False
    new_unended: bool = False

    @property
    def old(self) -> list[bytes]:
        return [text for sign, text in self.body if sign in " -"]

    def text(self) -> bytes:
        """Write it as a diff does."""
        new = sum(sign in " +" for sign, _ in self.body)
        numbers = b"" if self.stated is None else b"-%d,%d +1,%d " % (self.stated, len(self.old), new)
        out = b"@@ " + numbers + b"@@\n"
        for at, (sign, text) in enumerate(self.body):
            out += sign.encode() + text + b"\n"
            last_old = all(other == "+" for other, _ in self.body[at + 1 :])
            last_new = all(other == "-" for other, _ in self.body[at + 1 :])
            if (sign == "-" and self.old_unended and last_old) or (sign == "+" and self.new_unended and last_new):
                out += b"\\ No newline at end of file\n"
            elif sign == " " and self.old_unended and last_old and last_new:
                out += b"\\ No newline at end of file\n"
        return out


class Refused(Exception):
    def __init__(self, kind: str, hunk: int, places: list[int] | None = None) -> None:
        super().__init__(kind, hunk, places)
        self.kind = kind
        self.hunk = hunk
        self.places = places


@dataclass
class Model:
    """Places hunks in a file of lines, `placed[i]` from 0."""

    content: bytes
    hunks: list[Hunk]
    placed: list[int | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        parts = self.content.split(b"\n")
        self.ended = parts[-1] == b""
        self.lines = parts[:-1] if self.ended else parts
        ends = self.content.count(b"\n")
        crlf = ends > 0 and self.content.count(b"\r\n") == ends
        any_cr = any(text.endswith(b"\r") for hunk in self.hunks for _, text in hunk.body)
        self.lf_for_crlf = crlf and not any_cr
        self.crlf = crlf
        self.shown = [
            line[:-1] if self.lf_for_crlf and (self.ended or at + 1 < len(self.lines)) else line
            for at, line in enumerate(self.lines)
        ]
        self.placed = [None] * len(self.hunks)

    # --------------------------------------------------------------------------------------------------- where it fits

    def fits(self, hunk: Hunk, place: int, aside: bool) -> bool:
        old = hunk.old
        if place < 0 or place + len(old) > len(self.lines):
            return False
        at_end = place + len(old) == len(self.lines)
        if (hunk.old_unended and not (at_end and not self.ended)) or (hunk.new_unended and not at_end):
            return False
        there = self.shown[place : place + len(old)]
        return [bare(line) for line in there] == [bare(line) for line in old] if aside else there == old

    def places(self, hunk: Hunk) -> tuple[list[int], bool]:
        for aside in (False, True):
            found = [place for place in range(len(self.lines) + 1) if self.fits(hunk, place, aside)]
            if found:
                return found, aside
        return [], False

    # ------------------------------------------------------------------------------------------------------- choosing

    def rooms(self, at: int) -> list[int]:
        """The places of a hunk that leave every other one, settled or not, a place in order."""
        found = []
        for place in self.all[at]:
            trial = [*self.placed]
            trial[at] = place
            if self.possible(trial):
                found.append(place)
        return found

    def possible(self, trial: list[int | None]) -> bool:
        low = 0
        for hunk, places, place in zip(self.hunks, self.all, trial, strict=True):
            options = [one for one in places if one >= low] if place is None else [place] if place >= low else []
            if not options:
                return False
            low = min(options) + len(hunk.old)
        return True

    def moved(self, at: int) -> int | None:
        """How far a settled hunk was moved; None without a stated line."""
        hunk, place = self.hunks[at], self.placed[at]
        assert place is not None
        return None if hunk.stated is None else place + bool(hunk.old) - hunk.stated

    def refusal(self) -> Refused | None:
        """Place all hunks; answer why that is refused, if it is."""
        try:
            self.run()
        except Refused as refused:
            return refused
        return None

    def run(self) -> None:
        for number, hunk in enumerate(self.hunks):
            if not hunk.old and hunk.stated is None and self.lines:
                raise Refused("no line", number)
        found = [self.places(hunk) for hunk in self.hunks]
        self.all = [places for places, _ in found]
        self.aside = [aside for _, aside in found]
        for number, hunk in enumerate(self.hunks):
            if hunk.old and not self.all[number]:
                raise Refused("nowhere", number)
        if not self.possible(self.placed):
            raise Refused("out of order", -1)
        while None in self.placed:
            if not self.settle_some() and not self.settle_one_like_others():
                at = next(n for n in range(len(self.hunks)) if self.placed[n] is None and self.before_is_settled(n))
                if not self.hunks[at].old:
                    raise Refused("no line", at)
                stated = self.hunks[at].stated
                if stated is not None and self.blanks_differ(at, stated - 1):
                    raise Refused("blanks", at, sorted([*self.rooms(at), stated - 1]))
                raise Refused("several", at, self.rooms(at))
        self.check_shifts()
        self.check_blanks()

    def before_is_settled(self, at: int) -> bool:
        return at == 0 or self.placed[at - 1] is not None

    def shift_before(self, at: int) -> int:
        for before in range(at - 1, -1, -1):
            shift = self.moved(before)
            if shift is not None:
                return shift
        return 0

    def settle_some(self) -> bool:
        """Settle, from the first on, what the room or the stated line decides; whether anything was."""
        progress = False
        for at, hunk in enumerate(self.hunks):
            if self.placed[at] is not None:
                continue
            rooms = self.rooms(at)
            if len(rooms) == 1 and (hunk.old or not self.lines):
                self.settle(at, rooms[0])
                progress = True
            elif hunk.stated is not None and self.before_is_settled(at) and self.all_before_settled(at):
                for shift in (self.shift_before(at), 0):
                    place = hunk.stated - bool(hunk.old) + shift
                    if place in rooms:
                        self.settle(at, place)
                        progress = True
                        break
        return progress

    def all_before_settled(self, at: int) -> bool:
        """Whether the hunks back to the next with a stated line are settled."""
        for before in range(at - 1, -1, -1):
            if self.placed[before] is None:
                return False
            if self.hunks[before].stated is not None:
                return True
        return True

    def settle_one_like_others(self) -> bool:
        shifts = {self.moved(at) for at, place in enumerate(self.placed) if place is not None} - {None}
        for at, hunk in enumerate(self.hunks):
            if self.placed[at] is not None or not self.before_is_settled(at) or hunk.stated is None or not hunk.old:
                continue
            like = [place for place in self.rooms(at) if place + 1 - hunk.stated in shifts]
            if len(like) == 1:
                self.settle(at, like[0])
                return True
        return False

    def settle(self, at: int, place: int) -> None:
        hunk = self.hunks[at]
        if hunk.stated is not None and hunk.old and hunk.stated - 1 not in (place, -1):
            stated = hunk.stated - 1
            exact = not self.aside[at]
            fits = stated in self.all[at]
            if self.blanks_differ(at, stated):
                raise Refused("blanks", at, sorted((stated, place)))
            if exact and fits and stated not in self.rooms(at) and self.contradicts(at):
                raise Refused("out of order", at, [stated])
        self.placed[at] = place

    def blanks_differ(self, at: int, stated: int) -> bool:
        """Whether a hunk that fits exactly elsewhere fits at its stated line but for blanks."""
        if self.aside[at] or stated in self.all[at] or stated < self.low(at):
            return False
        return self.fits(self.hunks[at], stated, True)

    def low(self, at: int) -> int:
        """Where the hunks before end at the earliest."""
        low = 0
        for number in range(at):
            place = self.placed[number]
            if place is None:
                place = min(one for one in self.all[number] if one >= low)
            low = place + len(self.hunks[number].old)
        return low

    def contradicts(self, at: int) -> bool:
        """Whether the stated lines themselves are out of order around a hunk."""
        stated = self.hunks[at].stated
        assert stated is not None
        before = [hunk.stated for hunk in self.hunks[:at] if hunk.stated is not None]
        behind = [hunk.stated for hunk in self.hunks[at + 1 :] if hunk.stated is not None]
        return any(one > stated for one in before) or any(one < stated for one in behind)

    def check_shifts(self) -> None:
        """Refuse a hunk of several places that the nearest hunks of one place would put elsewhere."""
        sure = [
            hunk.stated is not None and bool(hunk.old) and len(places) == 1
            for hunk, places in zip(self.hunks, self.all, strict=True)
        ]
        for at, hunk in enumerate(self.hunks):
            if sure[at] or hunk.stated is None or not hunk.old:
                continue
            before = [self.moved(n) for n in range(at) if sure[n]]
            behind = [self.moved(n) for n in range(at + 1, len(self.hunks)) if sure[n]]
            for shift in before[-1:] + behind[:1]:
                assert shift is not None
                place, now = hunk.stated - 1 + shift, self.placed[at]
                trial = [*self.placed]
                trial[at] = place
                if place != now and place in self.all[at] and self.possible(trial):
                    raise Refused("several", at, sorted((place, now or 0)))

    def check_blanks(self) -> None:
        """Refuse a hunk that fits exactly where blanks alone may have made it fit."""
        for at, hunk in enumerate(self.hunks):
            now = self.placed[at]
            if not hunk.old or self.aside[at] or now is None:
                continue
            shift = self.shift_before(at)
            if hunk.stated is not None and self.moved(at) in (0, shift):
                continue
            low = 0 if at == 0 else (self.placed[at - 1] or 0) + len(self.hunks[at - 1].old)
            high = len(self.lines) if at + 1 == len(self.hunks) else self.placed[at + 1]
            assert high is not None
            loose = [
                place for place in range(low, high - len(hunk.old) + 1) if self.fits(hunk, place, True)
            ]  # fmt: skip
            place = None if hunk.stated is None else hunk.stated - 1 + shift
            if place in loose and place not in self.all[at]:
                raise Refused("blanks", at, sorted((place or 0, now)))
            if any(self.aside) and len(loose) > 1:
                raise Refused("blanks", at, loose)

    # ---------------------------------------------------------------------------------------------------------- result

    def result(self) -> bytes:
        out: list[bytes] = []
        at = 0
        pieces = self.content.split(b"\n")
        whole = [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if not self.ended else [])
        end = b"\r\n" if self.lf_for_crlf else b"\n"
        for hunk, place in zip(self.hunks, self.placed, strict=True):
            assert place is not None
            out += whole[at:place]
            at = place
            to_end = place + len(hunk.old) == len(whole) and not self.ended
            no_end = hunk.new_unended or (to_end and not hunk.old_unended)
            last_new = max((n for n, (sign, _) in enumerate(hunk.body) if sign in " +"), default=-1)
            for number, (sign, text) in enumerate(hunk.body):
                if sign == "+":
                    if out and not out[-1].endswith(b"\n"):
                        out[-1] += b"\r\n" if self.crlf else b"\n"
                    out.append(text + (b"" if no_end and number == last_new else end))
                else:
                    if sign == " ":
                        out.append(whole[at])
                    at += 1
        return b"".join(out + whole[at:])


def bare(line: bytes) -> bytes:
    if line.endswith(b"\r"):
        return line[:-1].rstrip(BLANKS) + b"\r"
    return line.rstrip(BLANKS)
