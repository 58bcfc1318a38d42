"""Tables of the study of proposals: answers with intervals, differences, parameters, faults and losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

RESAMPLES = 1000
STEPS = ("geometry alone", "background removed", "common objects suppressed", "both")
BOUND = "both, without faults"
PAIRS = (
    ("angle: both", "reference: both"),
    ("angle: geometry alone", "reference: geometry alone"),
    ("angle: geometry alone", "DBSCAN 0.5 m: geometry alone"),
    ("angle: geometry alone", "DBSCAN 1 m: geometry alone"),
    ("angle: both", "DBSCAN 0.5 m: both"),
    ("angle: both", "DBSCAN 1 m: both"),
    ("angle: both", "random boxes"),
    ("angle: both", "angle: geometry alone"),
    (f"angle: {BOUND}", "angle: both"),
)
"""Rows that are compared on the same draws of scenes."""
METRICS = {"AP": "ap", "AR": "ar", "AR50": "ar50", "AR30": "ar30"}


@dataclass
class Town:
    """What was found in one town, or in both.

    Args:
        states: row to what it meets of the corner cases.
        proposals: row to how many it has.
        pictures: how many there are.
        cells: of the grid, with the place of each among `knobs`.
        knobs: what each variant of the grid meets.
        grid: proposals of the variants.
        lost: run to what became of each object.
        faults: single faults to what is met with them.
        kinds: what final proposals are, to how many.
    """

    states: dict[str, Any]
    proposals: dict[str, int]
    pictures: int
    cells: Any
    knobs: list[Any]
    grid: Any
    lost: dict[str, pl.DataFrame] = field(default_factory=dict)
    faults: dict[str, Any] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)


def together(towns: Mapping[str, Town]) -> Town:
    """Both towns as one set."""
    from roadaware.protocols.copg_ablation import rename_videos

    (first, one), (second, other) = towns.items()

    def joined(a: Any, b: Any) -> Any:
        return rename_videos(a, f"{first}/").merge(rename_videos(b, f"{second}/"))

    grid = replace(
        one.grid,
        counts=tuple(a + b for a, b in zip(one.grid.counts, other.grid.counts, strict=True)),
        with_one=tuple(a + b for a, b in zip(one.grid.with_one, other.grid.with_one, strict=True)),
        pictures=one.pictures + other.pictures,
    )
    return Town(
        {name: joined(one.states[name], other.states[name]) for name in one.states},
        {name: count + other.proposals[name] for name, count in one.proposals.items()},
        grid.pictures,
        one.cells,
        [joined(a, b) for a, b in zip(one.knobs, other.knobs, strict=True)],
        grid,
        {name: pl.concat([part, other.lost[name]]) for name, part in one.lost.items()},
        {name: joined(state, other.faults[name]) for name, state in one.faults.items()},
        one.kinds + other.kinds,
    )


def rows_table(held: Town) -> tuple[str, dict[str, Any]]:
    """Every answer with its numbers, as a table and as data."""
    from roadaware.protocols.copg_ablation import compute_score

    scores = {name: compute_score(state, RESAMPLES) for name, state in held.states.items()}
    lines = [f"| proposals | {' | '.join(METRICS)} | an image |", "|---|---|---|---|---|---|"]
    for name, score in scores.items():
        cells = [_told(score.values[metric]) for metric in METRICS.values()]
        lines.append(f"| {name} | {' | '.join(cells)} | {held.proposals[name] / held.pictures:.1f} |")
    data = {name: {m: vars(value) for m, value in score.values.items()} for name, score in scores.items()}
    pairs = {f"{a} over {b}": scores[a].over(scores[b]) for a, b in PAIRS}
    told = [f"| | {' | '.join(METRICS)} |", "|---|---|---|---|---|"]
    for name, gains in pairs.items():
        told.append(f"| {name} | {' | '.join(_told(gains[m], '+') for m in METRICS.values())} |")
    gains_data = {name: {m: vars(v) for m, v in gains.items()} for name, gains in pairs.items()}
    return "\n".join(lines), {"rows": data, "gains": gains_data, "gains_table": "\n".join(told)}


def fault_lines(faults: Mapping[str, Any]) -> str:
    """What single faults cost, against none."""
    from roadaware.protocols.copg_ablation import compute_score

    scores = {name: compute_score(state, RESAMPLES) for name, state in faults.items()}
    lines = ["| faults | AP | AR | AR over none | AR50 |", "|---|---|---|---|---|"]
    for name, score in scores.items():
        gain = "" if name == "none" else _told(score.over(scores["none"])["ar"], "+")
        cells = [_told(score.values["ap"]), _told(score.values["ar"]), gain, _told(score.values["ar50"])]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def kind_lines(kinds: Counter[str]) -> str:
    """What final proposals are, the most frequent first."""
    total = sum(kinds.values())
    lines = ["| most returns of it are of | proposals | share |", "|---|---|---|"]
    lines += [f"| {name} | {count:,} | {count / total:.1%} |" for name, count in kinds.most_common()]
    return "\n".join(lines)


def knobs_of(held: Town) -> pl.DataFrame:
    """The grid of both configurations, with intervals and printed values."""
    from roadaware.analysis.corner_tables import build_ablation_table
    from roadaware.protocols.copg_ablation import compute_score

    return build_ablation_table(
        *held.cells, held.grid, [compute_score(state, RESAMPLES) for state in held.knobs]
    )


def knob_lines(table: pl.DataFrame) -> str:
    """The grid as the paper prints it: default and reference beside the printed rows."""
    heads = ["parameter", "value", "AP", "AR", "AR over *", "proposals", "images"]
    heads += ["reference: AP", "AR", "proposals", "images", "printed: AP", "AR", "proposals", "scenes"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    other = {(r["knob"], r["value"]): r for r in table.filter(config="reference").iter_rows(named=True)}
    for row in table.filter(config="angle").filter(pl.col("knob") != "inputs").iter_rows(named=True):
        ref = other[row["knob"], row["value"]]
        star = " *" if row["unchanged"] else ""
        gain = "" if row["unchanged"] else _ends(row, "ar_gain", "+")
        cells = [f"`{row['knob']}`", f"{row['value']}{star}", _ends(row, "ap"), _ends(row, "ar"), gain]
        cells += [f"{row['proposals']:,}", f"{row['pictures']:,}", f"{ref['ap']:.3f}", f"{ref['ar']:.3f}"]
        cells += [f"{ref['proposals']:,}", f"{ref['pictures']:,}"]
        doubt = "?" if row["doubt"] else ""
        cells += [f"{row['printed_ap']:.3f}", f"{row['printed_ar']:.3f}"]
        cells += [f"{row['printed_proposals']:,}{doubt}", f"{row['printed_scenes']:,}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def loss_lines(lost: Mapping[str, pl.DataFrame]) -> str:
    """How many objects each step lost, by run."""
    from roadaware.analysis.corner_tables import LOSSES

    lines = [f"| | {' | '.join(lost)} | what that means |", f"|{'---|' * (len(lost) + 2)}"]
    for loss, meaning in LOSSES.items():
        counts = [int((part["loss"] == loss).sum()) for part in lost.values()]
        if any(counts):
            shares = [f"{n:,} ({n / len(part):.1%})" for n, part in zip(counts, lost.values(), strict=True)]
            lines.append(f"| {loss} | {' | '.join(shares)} | {meaning} |")
    return "\n".join(lines)


def group_lines(part: pl.DataFrame, groups: Sequence[tuple[str, pl.Series]]) -> str:
    """What became of the objects of each group."""
    from roadaware.analysis.corner_tables import LOSSES

    known = [loss for loss in LOSSES if (part["loss"] == loss).any()]
    lines = [f"| | objects | {' | '.join(known)} |", f"|{'---|' * (len(known) + 2)}"]
    for name, mask in groups:
        held = part.filter(mask)
        counts = Counter(held["loss"].to_list())
        shares = [f"{counts[loss] / max(len(held), 1):.0%}" for loss in known]
        lines.append(f"| {name} | {len(held):,} | {' | '.join(shares)} |")
    return "\n".join(lines)


def groups_of(part: pl.DataFrame) -> list[tuple[str, pl.Series]]:
    """By how far, how hidden, how many returns, and what."""
    far, seen, returns = part["distance_m"], part["visible_share"], part["returns"]
    found = [
        ("up to 15 m", far <= 15),
        ("15 to 30 m", (far > 15) & (far <= 30)),
        ("30 to 50 m", (far > 30) & (far <= 50)),
        ("beyond 50 m", far > 50),
        ("less than half visible", seen < 0.5),
        ("at least half visible", seen >= 0.5),
        ("20 returns and more", returns >= 20),
    ]
    kinds = part["kind"].value_counts(sort=True)["kind"].to_list()
    return [*found, *((f"{kind}", part["kind"] == kind) for kind in kinds)]


def _told(value: Any, sign: str = "") -> str:
    return "–" if value.value is None else _with_ends(value.value, value.low, value.high, sign)


def _ends(row: Mapping[str, Any], name: str, sign: str = "") -> str:
    return _with_ends(row[name], row[f"{name}_low"], row[f"{name}_high"], sign)


def _with_ends(value: float, low: float | None, high: float | None, sign: str) -> str:
    """A number and its interval, where one can be given: by the jackknife some numbers have none."""
    return f"{value:{sign}.3f}" + ("" if low is None else f" [{low:{sign}.3f}, {high:{sign}.3f}]")
