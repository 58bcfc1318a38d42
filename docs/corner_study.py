"""Judge proposals on made-up scenes of two towns and write docs/corner_study.md.

    HOW="--preset corner-cases@1 --scenes 100 --seconds 1.5 --fps 2 --no-sound"
    roadaware simulate $HOW --domain city-a --seed 311 --out made-up/corner/city-a
    roadaware simulate $HOW --domain city-b --seed 312 --out made-up/corner/city-b
    python docs/corner_study.py made-up/corner runs/corner-study

What is done already is not done again. The numbers stand in runs/corner-study/study.json, too.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

PAGE = Path(__file__).with_suffix(".md")
IMAGES = PAGE.parent / "images"
BEGIN, END = "<!-- of the runs: begin -->", "<!-- of the runs: end -->"
TOWNS = ("city-a", "city-b")
BASES = ("reference", "default")
EPS_M = (0.5, 1.0)
DRAWS, PART, SHOWN = 1000, 50, 6
STEPS = ("geometry alone", "background removed", "common objects suppressed", "both")
BOUND = "both, without faults"
PAIRS = (
    ("default: both", "reference: both"),
    ("default: geometry alone", "reference: geometry alone"),
    ("default: geometry alone", "DBSCAN 0.5 m: geometry alone"),
    ("default: both", "DBSCAN 0.5 m: both"),
    ("default: both", "DBSCAN 1 m: both"),
    ("default: both", "random boxes"),
    ("default: both", "default: geometry alone"),
    (f"default: {BOUND}", "default: both"),
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
    """

    states: dict[str, Any]
    proposals: dict[str, int]
    pictures: int
    cells: Any
    knobs: list[Any]
    grid: Any
    lost: dict[str, pl.DataFrame] = field(default_factory=dict)


def town(root: Path, out: Path) -> Town:
    """Everything about one town; parts that are there already are taken as they are.

    Args:
        root: its scenes.
        out: where results of it go.
    """
    from roadaware.corner_cases.reuse import Variant
    from roadaware.corner_cases.running import Order, held_by
    from roadaware.protocols.copg_ablation import GridOrder, run_grid
    from roadaware.protocols.copg_grid import BASES as CONFIGS
    from roadaware.protocols.copg_grid import INPUTS, cells, variants_of
    from roadaware.protocols.copg_scores import states_of, trivial_states

    erring = Order("simulator", str(root.resolve()), semantics="erring", detections="erring", part=PART)
    rows, _ = cells(BASES)
    variants, places = variants_of(rows)
    grid = run_grid(GridOrder(erring, variants), out / "knobs")
    whole = tuple(Variant(CONFIGS[base]()) for base in BASES)
    bound = run_grid(GridOrder(replace(erring, semantics="truth", detections="truth"), whole), out / "truth")
    scenes = held_by(erring).scenes
    knobs = states_of(grid.proposals, scenes)
    states: dict[str, Any] = dict(trivial_states(scenes))
    counts = {"whole image": grid.pictures, "random boxes": 100 * grid.pictures}
    for name, claims in dbscan(erring, out / "dbscan").items():
        states[name], counts[name] = states_of([claims], scenes)[0], len(claims.boxes)
    for base, state, count in zip(BASES, states_of(bound.proposals, scenes), bound.counts, strict=True):
        for row, place in zip(rows, places, strict=True):
            if row.base == base and row.knob == INPUTS:
                states[f"{base}: {row.value}"] = knobs[place]
                counts[f"{base}: {row.value}"] = grid.counts[place]
        states[f"{base}: {BOUND}"], counts[f"{base}: {BOUND}"] = state, count
    lost = lost_objects(erring, out / "losses.parquet")
    return Town(states, counts, grid.pictures, (rows, places), knobs, grid, lost)


def dbscan(order: Any, folder: Path) -> dict[str, Any]:
    """Proposals of DBSCAN's clusters, with geometry alone and with both other steps.

    Args:
        order: set, masks and detections.
        folder: where they are kept.
    """
    from roadaware.corner_cases.claims import claimed, rows_of
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import propose
    from roadaware.corner_cases.dbscan import dbscan_geometry
    from roadaware.corner_cases.running import captures
    from roadaware.scenes.store import open_predictions, save

    names = {(eps, both): f"DBSCAN {eps:g} m: {STEPS[3 * both]}" for eps in EPS_M for both in (False, True)}
    if not folder.exists():
        found: dict[str, list[pl.DataFrame]] = {name: [] for name in names.values()}
        for moment, opened in captures(order):
            capture = opened()
            for eps in EPS_M:
                geometry = dbscan_geometry(capture, CopgConfig(), eps_m=eps)
                for both in (False, True):
                    seen = capture if both else replace(capture, semantics=None, common=None)
                    told = propose(seen, CopgConfig(), geometry)
                    found[names[eps, both]].append(rows_of(told, moment.video, moment.frame))
        for number, rows in enumerate(found.values()):
            save(claimed(rows), folder / str(number))
    return {name: open_predictions(folder / str(number)) for number, name in enumerate(names.values())}


def lost_objects(order: Any, path: Path) -> dict[str, pl.DataFrame]:
    """What became of every corner case, by configuration and kind of input.

    Args:
        order: set, masks and detections that err.
        path: where it is kept.
    """
    if not path.exists():
        rows = [row for given in ("erring", "truth") for row in _lost(order, given)]
        path.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame(rows, infer_schema_length=None).write_parquet(path)
    table = pl.read_parquet(path).sort("run", maintain_order=True)
    return {str(key[0]): part for key, part in table.group_by("run", maintain_order=True)}


def _lost(order: Any, given: str) -> Iterator[dict[str, Any]]:
    """Rows of every corner case under each configuration, with one kind of input."""
    from roadaware.analysis.corner_losses import losses
    from roadaware.corner_cases.reuse import Bench, Variant
    from roadaware.corner_cases.running import captures, held_by
    from roadaware.protocols.copg_grid import BASES as CONFIGS
    from roadaware.scenes.schema import CORNERS
    from roadaware.scenes.sensors import open_sweep

    asked = replace(order, semantics=given, detections=given)
    bench = Bench([Variant(CONFIGS[base]()) for base in BASES])
    scenes = held_by(asked).scenes
    every = scenes.boxes.join(scenes.tubes.select("tube", "name", "instance"), on="tube", how="left")
    for moment, opened in captures(asked):
        sweep = open_sweep(scenes, Path(order.root), moment.scene, moment.frame)
        held = every.filter((pl.col("video") == moment.video) & (pl.col("frame") == moment.frame))
        held = held.filter("corner_case")
        boxes = held.select(CORNERS).to_numpy().astype(float).reshape(-1, 4)
        for base, variant, found in zip(BASES, bench.variants, bench.propose(opened()), strict=True):
            told = losses(found, boxes, held["instance"].to_list(), sweep.instance, variant.config)
            for row, loss in zip(held.iter_rows(named=True), told, strict=True):
                kept = {key: row[key] for key in ("video", "frame", "distance_m", "visible_share", *CORNERS)}
                kept["kind"] = row["name"].rpartition("-")[0]
                kept["returns"] = int((sweep.instance == row["instance"]).sum())
                yield {"run": f"{base}, {given}", "loss": loss, **kept}


def together(towns: Mapping[str, Town]) -> Town:
    """Both towns as one set."""
    from roadaware.protocols.copg_scores import renamed

    (first, one), (second, other) = towns.items()

    def joined(a: Any, b: Any) -> Any:
        return renamed(a, f"{first}/").merge(renamed(b, f"{second}/"))

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
    )


def rows_table(held: Town) -> tuple[str, dict[str, Any]]:
    """Every answer with its numbers, as a table and as data."""
    from roadaware.protocols.copg_scores import score_of

    scores = {name: score_of(state, DRAWS) for name, state in held.states.items()}
    lines = [f"| proposals | {' | '.join(METRICS)} | a picture |", "|---|---|---|---|---|---|"]
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


def knobs_of(held: Town) -> pl.DataFrame:
    """The grid of both configurations, with intervals and printed values."""
    from roadaware.analysis.copg_tables import knob_table
    from roadaware.protocols.copg_scores import score_of

    return knob_table(*held.cells, held.grid, [score_of(state, DRAWS) for state in held.knobs])


def knob_lines(table: pl.DataFrame) -> str:
    """The grid as the paper prints it: default and reference beside the printed rows."""
    heads = ["knob", "value", "AP", "AR", "AR over *", "proposals", "pictures"]
    heads += ["reference: AP", "AR", "proposals", "pictures", "printed: AP", "AR", "proposals", "scenes"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    other = {(r["knob"], r["value"]): r for r in table.filter(config="reference").iter_rows(named=True)}
    for row in table.filter(config="default").filter(pl.col("knob") != "inputs").iter_rows(named=True):
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
    from roadaware.analysis.corner_losses import LOSSES

    lines = [f"| | {' | '.join(lost)} | what that means |", f"|{'---|' * (len(lost) + 2)}"]
    for loss, meaning in LOSSES.items():
        counts = [int((part["loss"] == loss).sum()) for part in lost.values()]
        if any(counts):
            shares = [f"{n:,} ({n / len(part):.1%})" for n, part in zip(counts, lost.values(), strict=True)]
            lines.append(f"| {loss} | {' | '.join(shares)} | {meaning} |")
    return "\n".join(lines)


def group_lines(part: pl.DataFrame, groups: Sequence[tuple[str, pl.Series]]) -> str:
    """What became of the objects of each group."""
    from roadaware.analysis.corner_losses import LOSSES

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


def examples(made: Path, towns: Mapping[str, Town]) -> None:
    """Draw lost objects of the first town, a line for each loss: the object, and the initial box nearest it.

    Args:
        made: folder of the towns.
        towns: what was found.
    """
    import io

    import numpy as np
    from PIL import Image

    from roadaware.analysis.corner_losses import LOSSES
    from roadaware.reports.drawing import contact_sheet
    from roadaware.scenes.disk import atomic_write

    name = TOWNS[0]
    lost = towns[name].lost["default, erring"].filter(pl.col("visible_share") > 0.5)
    crops = []
    for loss in LOSSES:
        rows = lost.filter(pl.col("loss") == loss).unique(["video"], maintain_order=True)
        if loss != "met" and len(rows) >= SHOWN:
            wide = rows.sort(pl.col("x2_px") - pl.col("x1_px"), descending=True, maintain_order=True)
            crops += [_crop(made / name, row, loss) for row in wide.head(SHOWN).iter_rows(named=True)]
    stream = io.BytesIO()
    Image.fromarray(np.asarray(contact_sheet(crops, SHOWN))).save(stream, "PNG", optimize=True)
    atomic_write(IMAGES / "corner_losses.png", stream.getvalue())


def _crop(root: Path, row: Mapping[str, Any], loss: str) -> Any:
    """(150, 150, 3) what is around an object."""
    import numpy as np
    from PIL import Image, ImageDraw

    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import propose
    from roadaware.corner_cases.running import Order, captures, held_by
    from roadaware.geometry.boxes import iou
    from roadaware.reports.drawing import font_of
    from roadaware.scenes.schema import CORNERS
    from roadaware.scenes.sensors import open_frame

    order = Order("simulator", str(root.resolve()), videos=(row["video"],))
    opened = next(held for moment, held in captures(order) if moment.frame == row["frame"])
    boxes = propose(opened(), CopgConfig()).boxes.edges
    own = np.array([row[side] for side in CORNERS])
    middle, half = (own[:2] + own[2:]) / 2, max(1.1 * float((own[2:] - own[:2]).max()), 30.0)
    picture = Image.fromarray(open_frame(held_by(order).scenes, root, row["video"], row["frame"]))
    corner = middle - half
    scale = 150 / (2 * half)
    crop = picture.crop((*corner, *(middle + half))).resize((150, 150), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(crop)
    overlaps = iou([own], boxes)[0] if len(boxes) else np.zeros(0)
    if overlaps.max(initial=0.0) > 0:
        near = (boxes[overlaps.argmax()].reshape(2, 2) - corner) * scale
        pen.rectangle([*near.ravel().tolist()], outline=(255, 170, 0), width=2)
    pen.rectangle([*((own.reshape(2, 2) - corner) * scale).ravel().tolist()], outline=(60, 230, 90), width=1)
    pen.text((4, 2), loss, fill=(255, 255, 255), font=font_of(14), stroke_width=2, stroke_fill=(0, 0, 0))
    return np.asarray(crop)


def _told(value: Any, sign: str = "") -> str:
    if value.value is None:
        return "–"
    return f"{value.value:{sign}.3f} [{value.low:{sign}.3f}, {value.high:{sign}.3f}]"


def _ends(row: Mapping[str, Any], name: str, sign: str = "") -> str:
    return f"{row[name]:{sign}.3f} [{row[f'{name}_low']:{sign}.3f}, {row[f'{name}_high']:{sign}.3f}]"


def write(towns: Mapping[str, Town], out: Path) -> None:
    """Put all tables into the page, the picture beside it, and the numbers into the folder."""
    from roadaware.reports.ablation import knobs_picture
    from roadaware.scenes.disk import atomic_write

    whole = together(towns)
    table, data = rows_table(whole)
    parts = [f"### Both towns, {whole.pictures} pictures", table, "### Differences", data.pop("gains_table")]
    for name, held in towns.items():
        own, own_data = rows_table(held)
        own_data.pop("gains_table")
        data[name] = own_data
        parts += [f"### {name}, {held.pictures} pictures", own]
    knobs = knobs_of(whole)
    usual = whole.lost["default, erring"]
    parts += ["### Knobs", "![](images/corner_knobs.png)", knob_lines(knobs)]
    parts += ["### Which step lost which object", loss_lines(whole.lost)]
    parts += ["![](images/corner_losses.png)"]
    parts += ["Of the default with erring inputs:", group_lines(usual, groups_of(usual))]
    atomic_write(IMAGES / "corner_knobs.png", knobs_picture(knobs).png())
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    page = f"{before}{BEGIN}\n\n{chr(10).join(part + chr(10) for part in parts)}\n{END}{rest.split(END)[1]}"
    atomic_write(PAGE, page.encode())
    knobs.write_csv(out / "knobs.csv")
    (out / "study.json").write_text(json.dumps(data, indent=1))


def main(words: Sequence[str]) -> None:
    """Do what is not done, then write the page."""
    made, out = Path(words[0]), Path(words[1])
    out.mkdir(parents=True, exist_ok=True)
    towns = {name: town(made / name, out / name) for name in TOWNS}
    examples(made, towns)
    write(towns, out)


if __name__ == "__main__":
    main(sys.argv[1:])
