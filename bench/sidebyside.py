"""Times a subject and its anchors in turn, so that a ratio holds when the machine's speed drifts."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

Action = Callable[[], object]


def clocked(action: Action) -> float:
    """Answer the seconds that one run takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


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
) -> None:
    """Run `subject` under pytest-benchmark, each anchor once before each of its rounds.

    `bound` is the most that subject / fastest of `against` (by median; default all anchors) may be; `make bench-check`
    judges it. `before` and `after` run around each round, untimed. `facts` go into the report as they are.
    """
    samples: dict[str, list[float]] = {name: [] for name in anchors}
    for action in anchors.values():  # warm-up
        action()

    def setup() -> None:
        for name, action in anchors.items():
            samples[name].append(clocked(action))
        if before:
            before()

    teardown = {"teardown": after} if after else {}
    benchmark.pedantic(subject, setup=setup, rounds=rounds, warmup_rounds=1, iterations=1, **teardown)
    for name in samples:
        samples[name] = samples[name][-rounds:]
    own = list(benchmark.stats.stats.data)
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
