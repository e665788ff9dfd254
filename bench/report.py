"""Turns the raw figures of one run into `bench/report/`: report.json, report.md and SVG plots; `--check` judges bounds.

python bench/report.py bench/report/raw.json [--check]
"""

from __future__ import annotations

import json
import pathlib
import platform
import statistics
import subprocess
import sys
from typing import Any

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

OUT = pathlib.Path(__file__).parent / "report"
AXES = ("files", "bytes", "hunks placed")
"""Facts that a group which has them in every row is drawn over."""


def machine() -> dict[str, str]:
    """Processor, usable cores, kernel and file system, as the figures' reader needs them."""
    cpu = next(
        (
            line.split(":", 1)[1].strip()
            for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    cores = subprocess.run(["nproc"], capture_output=True, text=True, check=True).stdout.strip()
    cache = pathlib.Path.home()
    file_system = subprocess.run(["stat", "-f", "-c", "%T", str(cache)], capture_output=True, text=True).stdout.strip()
    return {
        "processor": cpu,
        "cores": cores,
        "kernel": platform.release(),
        "file system": file_system,
        "python": platform.python_version(),
    }


def rows(raw: dict[str, Any]) -> list[dict[str, Any]]:
    """One row a benchmark: its name, median seconds, the ratio and its bound, every anchor's median.

    One that stands beside nothing has no anchors.
    """
    found = []
    for one in raw["benchmarks"]:
        extra = one["extra_info"]
        if "anchors" not in extra:
            alone = {"ratio": None, "ratio_spread": None, "against": None, "bound": None, "anchors": {}, "ratios": {}}
            extra = {**alone, "facts": extra["facts"], "seconds": [one["stats"]["median"]]}
        found.append(
            {
                "group": one["group"],
                "name": one["name"].removeprefix("test_"),
                "seconds": statistics.median(extra["seconds"]),
                "ratio": extra["ratio"],
                "spread": extra["ratio_spread"],
                "against": extra["against"],
                "bound": extra["bound"],
                "holds": extra["bound"] is None or extra["ratio"] <= extra["bound"],
                "anchors": {name: statistics.median(values) for name, values in extra["anchors"].items()},
                "ratios": extra["ratios"],
                "facts": extra["facts"],
            }
        )
    return found


def duration(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def markdown(about: dict[str, str], found: list[dict[str, Any]]) -> str:
    """Lay the rows out as tables, one a group."""
    out = ["# Benchmarks", "", ", ".join(f"{name}: {value}" for name, value in about.items()) + ".", ""]
    out += ["Every figure is a median. A ratio is ours / theirs, measured in turn in one run, in brackets its least"]
    out += ["and greatest round. A bound is the most that the ratio to the named anchor may be.", ""]
    for group in dict.fromkeys(row["group"] for row in found):
        out += [f"## {group}", "", "| what | ours | against | theirs | ratio | bound |", "|---|---|---|---|---|---|"]
        for row in (row for row in found if row["group"] == group):
            for name, seconds in row["anchors"].items():
                judged = name == row["against"]
                spread = f" ({row['spread'][0]:.2f} to {row['spread'][1]:.2f})" if judged else ""
                verdict = "" if row["holds"] else " **missed**"
                bound = f"{row['bound']:.2f}{verdict}" if judged and row["bound"] else ""
                out.append(
                    f"| {row['name']} | {duration(row['seconds'])} | {name} | {duration(seconds)} "
                    f"| {row['ratios'][name]:.3g}{spread} | {bound} |"
                )
            if not row["anchors"]:
                out.append(f"| {row['name']} | {duration(row['seconds'])} | | | | |")
            if row["facts"]:
                facts = ", ".join(f"{name} {value}" for name, value in row["facts"].items())
                out.append(f"| | | {facts} | | | |")
        out.append("")
    return "\n".join(out)


def bars(group: str, found: list[dict[str, Any]]) -> None:
    """Draw ours and every anchor of one group as horizontal bars."""
    labels, values, colours = [], [], []
    for row in found:
        for name, seconds in {**row["anchors"], "toolserver": row["seconds"]}.items():
            labels.append(f"{row['name']}: {name}" if len(found) > 1 else name)
            values.append(seconds * 1e3)
            colours.append("#2a6f97" if name == "toolserver" else "#c9ccd1")
    figure, axes = plt.subplots(figsize=(8, 0.6 + 0.32 * len(labels)))
    axes.barh(labels, values, color=colours)
    axes.bar_label(axes.containers[0], fmt="%.3g", padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds, median")
    axes.set_title(group, fontsize=10)
    axes.tick_params(labelsize=8)
    save(figure, group)


def growth(group: str, found: list[dict[str, Any]], axis: str) -> None:
    """Draw how ours and the anchors grow."""
    figure, axes = plt.subplots(figsize=(6, 4))
    found = sorted(found, key=lambda row: row["facts"][axis])
    sizes = [row["facts"][axis] for row in found]
    axes.loglog(sizes, [row["seconds"] for row in found], "o-", color="#2a6f97", label="toolserver")
    for name in found[0]["anchors"]:
        axes.loglog(sizes, [row["anchors"][name] for row in found], "s--", color="#8a8f98", label=name)
    axes.set_xlabel(axis)
    axes.set_ylabel("seconds, median")
    axes.set_title(group, fontsize=10)
    axes.legend()
    save(figure, group)


def save(figure: Any, group: str) -> None:
    figure.tight_layout()
    name = "".join(letter if letter.isalnum() else "-" for letter in group.lower()).strip("-")
    figure.savefig(OUT / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def word(holds: bool) -> str:
    return "holds " if holds else "MISSED"


def check(found: list[dict[str, Any]]) -> int:
    """Print each bound with its figure; answer how many are missed."""
    missed = 0
    for row in found:
        if row["bound"] is not None:
            print(
                word(row["holds"]), f"{row['ratio']:.3f} of {row['bound']:.2f}", row["name"], "against", row["against"]
            )
            missed += not row["holds"]
        for name, holds in row["facts"].items():
            if name.endswith(" holds"):
                print(word(holds), name.removesuffix(" holds"), row["name"], row["facts"])
                missed += not holds
    return missed


def main() -> int:
    raw = json.loads(pathlib.Path(sys.argv[1]).read_text())
    found, about = rows(raw), machine()
    if "--check" in sys.argv:
        return min(check(found), 100)
    OUT.mkdir(exist_ok=True)
    (OUT / "report.json").write_text(json.dumps({"machine": about, "rows": found}, indent=1, ensure_ascii=False) + "\n")
    (OUT / "report.md").write_text(markdown(about, found))
    plt.rcParams["svg.hashsalt"] = "toolserver"
    for old in OUT.glob("*.svg"):
        old.unlink()
    for group in dict.fromkeys(row["group"] for row in found):
        of_group = [row for row in found if row["group"] == group]
        axis = next((name for name in AXES if all(name in row["facts"] for row in of_group)), None)
        if axis:
            growth(group, of_group, axis)
        elif any(row["anchors"] for row in of_group):
            bars(group, of_group)
    print((OUT / "report.md").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
