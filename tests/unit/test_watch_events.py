"""`watches.events`: how the changes of a burst are merged, and which events are kept."""

from __future__ import annotations

import pytest

from toolserver.watches.events import CREATE, KEPT, MODIFY, REMOVE, Coalescer, EventRing

F, D = False, True


@pytest.mark.parametrize(
    ("changes", "merged"),
    [
        ([(CREATE, F), (MODIFY, F)], [CREATE]),
        ([(CREATE, F), (REMOVE, F)], []),
        ([(CREATE, F), (REMOVE, F), (CREATE, F)], [CREATE]),
        ([(REMOVE, F), (CREATE, F)], [MODIFY]),
        ([(MODIFY, F), (REMOVE, F)], [REMOVE]),
        ([(MODIFY, F), (REMOVE, F), (CREATE, F), (REMOVE, F)], [REMOVE]),
        ([(CREATE, D), (REMOVE, D)], []),
        ([(REMOVE, D), (CREATE, D)], []),
        ([(REMOVE, F), (CREATE, D)], [REMOVE, CREATE]),
        ([(REMOVE, D), (CREATE, F), (MODIFY, F)], [REMOVE, CREATE]),
    ],
)
def test_merging(changes: list[tuple[str, bool]], merged: list[str]) -> None:
    """What has become of the path is left, and a directory is never modified."""
    coalescer = Coalescer()
    for kind, is_dir in changes:
        coalescer.add((b"p", kind, is_dir))
    assert coalescer.take() == [(b"p", kind) for kind in merged]
    assert coalescer.take() == []


def test_order() -> None:
    """Each path stands where its first change stood."""
    coalescer = Coalescer()
    for path, kind in [(b"a", CREATE), (b"b", MODIFY), (b"a", MODIFY), (b"c", REMOVE)]:
        coalescer.add((path, kind, False))
    assert coalescer.take() == [(b"a", CREATE), (b"b", MODIFY), (b"c", REMOVE)]


def test_ring_keeps_the_last_events() -> None:
    ring = EventRing()
    for number in range(KEPT + 5):
        ring.put({"line": str(number)})
    events, following, dropped = ring.since(2)
    assert (events[0]["line"], len(events), following, dropped) == ("5", KEPT, KEPT + 5, 3)
    assert ring.since(following + 7) == ([], following, 0)
