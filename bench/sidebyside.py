"""Times a subject and its anchors in turn, so that a ratio holds when the machine's speed drifts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Action = Callable[[], object]


def clocked(action: Action, times: int = 1) -> float:
    """Return the seconds that one run takes, of so many in a row."""
    start = time.perf_counter()
    for _ in range(times):
        action()
    return (time.perf_counter() - start) / times


def side_by_side(
    benchmark: Any,
    subject: Action,
    anchors: dict[str, Action],
    *,
    rounds: int,
    bound: float | None = None,
    against: tuple[str, ...] = (),
    before: Action | None = None,
    after: Action | None = None,
    facts: dict[str, object] | None = None,
    in_a_row: int = 1,
) -> None:
    """Run `subject` under pytest-benchmark, each anchor once before each of its rounds.

    `bound` is the most that subject / fastest of `against` (by median; default all anchors) may be; `make bench-check`
    judges it. `before` and `after` run around each round, untimed. `facts` go into the report as they are. A round is
    `in_a_row` runs of each one: with 1 all of them find the caches as another program left them.
    """
    samples: dict[str, list[float]] = {name: [] for name in anchors}
    for action in anchors.values():  # warm-up
        action()

    def setup() -> None:
        for name, action in anchors.items():
            samples[name].append(clocked(action, in_a_row))
        if before:
            before()

    teardown = {"teardown": after} if after else {}

    def run() -> None:
        for _ in range(in_a_row):  # pedantic's own iterations go without a setup only
            subject()

    benchmark.pedantic(run, setup=setup, rounds=rounds, warmup_rounds=1, iterations=1, **teardown)
    for name in samples:
        samples[name] = samples[name][-rounds:]
    own = [seconds / in_a_row for seconds in benchmark.stats.stats.data]
    record(benchmark, own, samples, bound=bound, against=against, facts=facts)


def record(
    benchmark: Any,
    own: list[float],
    samples: dict[str, list[float]],
    *,
    bound: float | None,
    against: tuple[str, ...] = (),
    facts: dict[str, object] | None = None,
) -> None:
    """Put the anchors' seconds and the ratios, round by round, beside the subject's figures."""
    names = against or tuple(samples)
    fastest = min(names, key=lambda name: statistics.median(samples[name]))
    ratios = {
        name: sorted(ours / theirs for ours, theirs in zip(own, values, strict=True))
        for name, values in samples.items()
    }
    benchmark.extra_info.update(
        {
            "seconds": own,
            "anchors": samples,
            "ratio": statistics.median(own) / statistics.median(samples[fastest]),
            "ratio_spread": [ratios[fastest][0], ratios[fastest][-1]],
            "ratios": {name: statistics.median(own) / statistics.median(values) for name, values in samples.items()},
            "against": fastest,
            "bound": bound,
            "facts": facts or {},
        }
    )
