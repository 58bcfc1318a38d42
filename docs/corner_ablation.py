"""Judge proposals on synthetic scenes of two towns and write docs/corner_ablation.md.

    HOW="--preset corner-cases@1 --scenes 100 --seconds 1.5 --fps 2 --no-sound"
    roadaware simulate $HOW --domain city-a --seed 311 --output synthetic/corner/city-a
    roadaware simulate $HOW --domain city-b --seed 312 --output synthetic/corner/city-b
    python docs/corner_ablation.py synthetic/corner runs/corner-study

What is done already is not done again. The numbers stand in runs/corner-study/study.json, too.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from corner_ablation_tables import (
    BOUND,
    STEPS,
    Town,
    fault_lines,
    group_lines,
    groups_of,
    kind_lines,
    knob_lines,
    knobs_of,
    loss_lines,
    rows_table,
    together,
)

PAGE = Path(__file__).with_suffix(".md")
IMAGES = PAGE.parent / "images"
BEGIN, END = "<!-- of the runs: begin -->", "<!-- of the runs: end -->"
TOWNS = ("city-a", "city-b")
BASES = ("reference", "angle")
EPS_M = (0.5, 1.0)
PART, SHOWN, FAULTY = 50, 6, 30
FAULTS = {
    "none": (0.0, 0.0, 0.0),
    "edges move by 5 px": (5.0, 0.0, 0.0),
    "10 % are missed": (0.0, 0.1, 0.0),
    "10 % have a wrong class": (0.0, 0.0, 0.1),
    "all three": (5.0, 0.1, 0.1),
}
"""Fields of the model of errors, for the first `FAULTY` scenes of each town."""


def town(root: Path, out: Path) -> Town:
    """Everything about one town; parts that are there already are taken as they are.

    Args:
        root: its scenes.
        out: where results of it go.
    """
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.runner import Order, load_run_inputs
    from roadaware.protocols.copg_ablation import BASES as CONFIGS
    from roadaware.protocols.copg_ablation import (
        INPUTS,
        GridOrder,
        Variant,
        build_cells,
        collect_variants,
        compute_states,
        compute_trivial_states,
        run_grid,
    )

    erring = Order(
        "simulator",
        str(root.resolve()),
        CopgConfig.angle(),
        semantics="erring",
        detections="erring",
        part=PART,
    )
    rows, _ = build_cells(BASES)
    variants, places = collect_variants(rows)
    grid = run_grid(GridOrder(erring, variants), out / "knobs")
    whole = tuple(Variant(CONFIGS[base]()) for base in BASES)
    bound = run_grid(GridOrder(replace(erring, semantics="truth", detections="truth"), whole), out / "truth")
    scenes = load_run_inputs(erring).scenes
    knobs = compute_states(grid.proposals, scenes)
    states: dict[str, Any] = dict(compute_trivial_states(scenes))
    counts = {"whole image": grid.pictures, "random boxes": 100 * grid.pictures}
    for name, predictions in dbscan(erring, out / "dbscan").items():
        states[name], counts[name] = compute_states([predictions], scenes)[0], len(predictions.boxes)
    for base, state, count in zip(BASES, compute_states(bound.proposals, scenes), bound.counts, strict=True):
        for row, place in zip(rows, places, strict=True):
            if row.base == base and row.knob == INPUTS:
                states[f"{base}: {row.value}"] = knobs[place]
                counts[f"{base}: {row.value}"] = grid.counts[place]
        states[f"{base}: {BOUND}"], counts[f"{base}: {BOUND}"] = state, count
    lost = lost_objects(erring, out / "losses.parquet")
    faults = faulty(erring, out / "faults")
    kinds = spurious(erring, out / "spurious.json")
    return Town(states, counts, grid.pictures, (rows, places), knobs, grid, lost, faults, kinds)


def dbscan(order: Any, folder: Path) -> dict[str, Any]:
    """Proposals of DBSCAN's clusters, with geometry alone and with both other steps.

    Args:
        order: set, masks and detections.
        folder: where they are kept.
    """
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import extract_dbscan_geometry, propose
    from roadaware.corner_cases.proposal_tables import build_proposal_rows, merge_proposal_rows
    from roadaware.corner_cases.runner import iterate_captures
    from roadaware.scenes.store import open_predictions, save

    names = {(eps, both): f"DBSCAN {eps:g} m: {STEPS[3 * both]}" for eps in EPS_M for both in (False, True)}
    if not folder.exists():
        found: dict[str, list[pl.DataFrame]] = {name: [] for name in names.values()}
        for moment, opened in iterate_captures(order):
            capture = opened()
            for eps in EPS_M:
                geometry = extract_dbscan_geometry(capture, CopgConfig.angle(), eps_m=eps)
                for both in (False, True):
                    seen = capture if both else replace(capture, semantics=None, common=None)
                    told = propose(seen, CopgConfig.angle(), geometry)
                    found[names[eps, both]].append(build_proposal_rows(told, moment.video, moment.frame))
        for number, rows in enumerate(found.values()):
            save(merge_proposal_rows(rows), folder / str(number))
    return {name: open_predictions(folder / str(number)) for number, name in enumerate(names.values())}


def faulty(order: Any, folder: Path) -> dict[str, Any]:
    """What the default meets in some scenes when masks and detections have single faults.

    Args:
        order: set, masks and detections.
        folder: where the proposals are kept.
    """
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import extract_geometry, propose
    from roadaware.corner_cases.proposal_tables import build_proposal_rows, merge_proposal_rows
    from roadaware.corner_cases.runner import iterate_captures, load_run_inputs
    from roadaware.corner_cases.sources import ErrorModel, simulate_common_objects, simulate_semantics
    from roadaware.protocols.copg_ablation import compute_states
    from roadaware.scenes.store import open_predictions, save

    videos = tuple(sorted(load_run_inputs(order).scenes.videos["video"])[:FAULTY])
    some = replace(order, videos=videos, semantics=None, detections=None)
    root, scenes = Path(order.root), load_run_inputs(some).scenes
    if not folder.exists():
        found: dict[str, list[pl.DataFrame]] = {name: [] for name in FAULTS}
        for moment, opened in iterate_captures(some):
            capture, at = opened(), (moment.video, moment.frame)
            geometry = extract_geometry(capture, CopgConfig.angle())
            for name, (edge_px, missed, wrong) in FAULTS.items():
                model = ErrorModel(edge_px, missed, wrong)
                semantics = simulate_semantics(scenes, root, *at, model)
                common = simulate_common_objects(scenes, *at, model)
                seen = replace(capture, semantics=semantics, common=common)
                found[name].append(build_proposal_rows(propose(seen, CopgConfig.angle(), geometry), *at))
        for number, rows in enumerate(found.values()):
            save(merge_proposal_rows(rows), folder / str(number))
    predictions = [open_predictions(folder / str(number)) for number in range(len(FAULTS))]
    return dict(zip(FAULTS, compute_states(predictions, scenes), strict=True))


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
    table = pl.read_parquet(path, glob=False).sort("run", maintain_order=True)  # noqa: TID251
    return {str(key[0]): part for key, part in table.group_by("run", maintain_order=True)}


def _lost(order: Any, given: str) -> Iterator[dict[str, Any]]:
    """Rows of every corner case under each configuration with one kind of input, without faults DBSCAN too.

    The limits that losses ask for are those of both configurations.
    """
    from roadaware.analysis.corner_tables import assign_losses
    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import extract_dbscan_geometry, propose
    from roadaware.corner_cases.runner import iterate_captures, load_run_inputs
    from roadaware.protocols.copg_ablation import BASES as CONFIGS
    from roadaware.protocols.copg_ablation import Bench, Variant
    from roadaware.scenes.schema import CORNERS
    from roadaware.scenes.sensors import open_sweep

    asked = replace(order, semantics=given, detections=given)
    bench = Bench([Variant(CONFIGS[base]()) for base in BASES])
    scenes = load_run_inputs(asked).scenes
    every = scenes.boxes.join(scenes.tubes.select("tube", "name", "instance"), on="tube", how="left")
    for moment, opened in iterate_captures(asked):
        sweep = open_sweep(scenes, Path(order.root), moment.scene, moment.frame)
        held = every.filter((pl.col("video") == moment.video) & (pl.col("frame") == moment.frame))
        held = held.filter("corner_case")
        boxes = held.select(CORNERS).to_numpy().astype(float).reshape(-1, 4)
        capture = opened()
        runs = {f"{base}, {given}": each for base, each in zip(BASES, bench.propose(capture), strict=True)}
        if given == "truth":
            wide = extract_dbscan_geometry(capture, CopgConfig.angle(), eps_m=EPS_M[-1])
            runs[f"DBSCAN {EPS_M[-1]:g} m, {given}"] = propose(capture, CopgConfig.angle(), wide)
        for name, found in runs.items():
            told = assign_losses(found, boxes, held["instance"].to_list(), sweep.instance, CopgConfig.angle())
            for row, loss in zip(held.iter_rows(named=True), told, strict=True):
                kept = {key: row[key] for key in ("video", "frame", "distance_m", "visible_share", *CORNERS)}
                kept["kind"] = row["name"].rpartition("-")[0]
                kept["returns"] = int((sweep.instance == row["instance"]).sum())
                yield {"run": name, "loss": loss, **kept}


def spurious(order: Any, path: Path) -> Counter[str]:
    """What the final proposals of the default are, with inputs without faults, in some scenes.

    Args:
        order: set, masks and detections.
        path: where it is kept.
    """
    import numpy as np

    from roadaware.analysis.corner_tables import MET_FROM
    from roadaware.corner_cases.runner import iterate_proposals, load_run_inputs
    from roadaware.corner_cases.sources import NAMES
    from roadaware.geometry.boxes import iou
    from roadaware.scenes.schema import CORNERS
    from roadaware.scenes.sensors import open_sweep

    if path.exists():
        return Counter(json.loads(path.read_text()))
    videos = tuple(sorted(load_run_inputs(order).scenes.videos["video"])[:FAULTY])
    asked = replace(order, semantics="truth", detections="truth", videos=videos)
    told: Counter[str] = Counter()
    for moment, _, found, scenes in iterate_proposals(asked):
        sweep = open_sweep(scenes, Path(order.root), moment.scene, moment.frame)
        held = scenes.boxes.filter((pl.col("video") == moment.video) & (pl.col("frame") == moment.frame))
        held = held.join(scenes.tubes.select("tube", "instance"), on="tube", how="left")
        corner = held.filter("corner_case")
        fits = iou(corner.select(CORNERS).to_numpy().reshape(-1, 4), found.boxes.edges).max(0, initial=0.0)
        for place in np.flatnonzero(found.final):
            mine = found.geometry.clusters.of_return == found.boxes.cluster[place]
            instance = int(np.bincount(sweep.instance[mine]).argmax())
            if fits[place] >= MET_FROM:
                told["a corner case"] += 1
            elif instance in set(corner["instance"]):
                told["a corner case, in a box that does not fit"] += 1
            elif instance in set(held["instance"]):
                told["a part of a common object that is annotated"] += 1
            else:
                told[f"{NAMES[np.bincount(sweep.semantic[mine]).argmax()]}, not annotated"] += 1
    path.write_text(json.dumps(told))
    return told


def examples(made: Path, towns: Mapping[str, Town]) -> None:
    """Draw lost objects of the first town, a line for each loss: the object, and the initial box nearest it.

    Args:
        made: folder of the towns.
        towns: what was found.
    """
    import io

    import numpy as np
    from PIL import Image

    from roadaware.analysis.corner_tables import LOSSES
    from roadaware.io.files import write_atomically
    from roadaware.reports.drawing import build_contact_sheet

    name = TOWNS[0]
    lost = towns[name].lost["angle, erring"].filter(pl.col("visible_share") > 0.5)
    crops = []
    for loss in LOSSES:
        rows = lost.filter(pl.col("loss") == loss).unique(["video"], maintain_order=True)
        wide = rows.sort(pl.col("x2_px") - pl.col("x1_px"), descending=True, maintain_order=True)
        turns = wide.with_columns(turn=pl.int_range(pl.len()).over("kind")).sort("turn", maintain_order=True)
        if loss != "met" and len(turns) >= SHOWN:
            crops += [_crop(made / name, row, loss) for row in turns.head(SHOWN).iter_rows(named=True)]
    stream = io.BytesIO()
    Image.fromarray(np.asarray(build_contact_sheet(crops, SHOWN))).save(stream, "JPEG", quality=88)
    write_atomically(IMAGES / "corner_losses.jpg", stream.getvalue())


def _crop(root: Path, row: Mapping[str, Any], loss: str) -> Any:
    """(150, 150, 3) what is around an object."""
    import numpy as np
    from PIL import Image, ImageDraw, ImageFont

    from roadaware.corner_cases.config import CopgConfig
    from roadaware.corner_cases.copg import propose
    from roadaware.corner_cases.runner import Order, iterate_captures, load_run_inputs
    from roadaware.geometry.boxes import iou
    from roadaware.scenes.schema import CORNERS
    from roadaware.scenes.sensors import open_frame

    order = Order("simulator", str(root.resolve()), videos=(row["video"],))
    opened = next(held for moment, held in iterate_captures(order) if moment.frame == row["frame"])
    boxes = propose(opened(), CopgConfig.angle()).boxes.edges
    own = np.array([row[side] for side in CORNERS])
    middle, half = (own[:2] + own[2:]) / 2, max(1.1 * float((own[2:] - own[:2]).max()), 30.0)
    picture = Image.fromarray(open_frame(load_run_inputs(order).scenes, root, row["video"], row["frame"]))
    corner = middle - half
    scale = 150 / (2 * half)
    crop = picture.crop((*corner, *(middle + half))).resize((150, 150), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(crop)
    overlaps = iou([own], boxes)[0] if len(boxes) else np.zeros(0)
    if overlaps.max(initial=0.0) > 0:
        near = (boxes[overlaps.argmax()].reshape(2, 2) - corner) * scale
        pen.rectangle([*near.ravel().tolist()], outline=(255, 170, 0), width=2)
    pen.rectangle([*((own.reshape(2, 2) - corner) * scale).ravel().tolist()], outline=(60, 230, 90), width=1)
    pen.text(
        (4, 2),
        loss,
        fill=(255, 255, 255),
        font=ImageFont.load_default(14),
        stroke_width=2,
        stroke_fill=(0, 0, 0),
    )
    return np.asarray(crop)


def write(towns: Mapping[str, Town], out: Path) -> None:
    """Put all tables into the page, the image beside it, and the numbers into the folder."""
    from roadaware.io.files import write_atomically
    from roadaware.reports.copg import plot_ablation

    whole = together(towns)
    table, data = rows_table(whole)
    parts = [f"### Both towns, {whole.pictures} images", table, "### Differences", data.pop("gains_table")]
    for name, held in towns.items():
        own, own_data = rows_table(held)
        own_data.pop("gains_table")
        data[name] = own_data
        parts += [f"### {name}, {held.pictures} images", own]
    knobs = knobs_of(whole)
    usual = whole.lost["angle, erring"]
    parts += ["### Parameters", "![](images/corner_knobs.png)", knob_lines(knobs)]
    parts += [f"### What faults cost, {FAULTY} scenes of each town", fault_lines(whole.faults)]
    parts += [f"### What is proposed, without faults, {FAULTY} scenes of each town", kind_lines(whole.kinds)]
    parts += ["### Which step lost which object", loss_lines(whole.lost)]
    parts += ["![](images/corner_losses.jpg)"]
    parts += ["Of the default with erring inputs:", group_lines(usual, groups_of(usual))]
    write_atomically(IMAGES / "corner_knobs.png", plot_ablation(knobs).png())
    before, rest = PAGE.read_text("utf-8").split(BEGIN)
    page = f"{before}{BEGIN}\n\n{chr(10).join(part + chr(10) for part in parts)}\n{END}{rest.split(END)[1]}"
    write_atomically(PAGE, page.encode())
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
