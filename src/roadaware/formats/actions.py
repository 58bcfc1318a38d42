"""Predictions of actions in AVA's csv of detections, in and out: a box, an action and its score on each row."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import polars as pl

from roadaware.datasets.ava import (
    KIND,
    LabelMap,
    Place,
    add_label_index,
    assign_box_ids,
    read_rows,
    select_action_labels,
    select_boxes,
)
from roadaware.datasets.issues import NOTHING_PREDICTED, Findings, build_all_rejected_error
from roadaware.errors import InputError
from roadaware.io.csv import format_csv, from_sheets, is_blank
from roadaware.io.files import write_atomically
from roadaware.io.pickles import load
from roadaware.io.sources import read_file, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

MOST_BYTES = 1 << 31
_FOREIGN = "files with no prediction of an action that the truth has: compare numbers with its label map"
# A few odd scores are refused by themselves; more than that is another scale.
_MOST_BEYOND = 0.05
_UNSCORED = "rows without a score, taken as 1 as the published evaluators do"
_PERSONS = "scores that are all 0 or 1: numbers of persons, read as scores?"
_SHARED = ("unit_pictures", "first_frame", "label_ids")
_SECONDS = "timestamps are seconds and stand for the frames shown then"


_MOMENT = re.compile(r"(.{1,255}),([0-9]{1,9})", re.ASCII | re.DOTALL)
"""The name of an array of proposals: video and second."""
_FAR_SHARE = 2.0
"""Shares beyond it are pixels."""


def read_action_predictions(path: Path, scenes: Scenes) -> Predictions:
    """Predictions of actions as Predictions: boxes, and a label with its score for each row, in the file's order.

    A row is `video,timestamp,x1,y1,x2,y2,action,score`, corners in shares of the image; without a score it
    predicts with 1. Rows with equal corners in a moment are one box. Rows that cannot be taken are in
    `rejected` with the reason, among them those of an action that the ground truth's label map lacks. Predictions in
    videos and moments that the ground truth lacks are kept and reported in `meta.notes["warnings"]`: what they count for
    is the metric's to say.

    An empty file predicts nothing, and neither does one all of whose actions the ground truth lacks.

    Args:
        path: the csv.
        scenes: the ground truth: its vocabulary `action`, sizes of videos, and how moments and actions are numbered.

    Raises:
        InputError: if the file cannot be read, is in pixels or a file of ground truth, has scores of another scale,
            every row is refused for something other than its action, or no prediction is in a moment of the ground truth.
        DatasetNotFoundError: if there is no such file.
    """
    path, findings = Path(os.path.realpath(path)), Findings()
    where = to_printable(str(path))
    known, data = label_map(scenes), read_file(path, where, MOST_BYTES)
    if is_blank(data):
        findings.warn(NOTHING_PREDICTED, path.name)
        # The columns that boxes and labels are made of, without a row
        whole, numbers = ("box", "frame", "label"), (*CORNERS, "score")
        schema = {"video": pl.String, "opens": pl.Boolean, **dict.fromkeys(whole, pl.Int64)}
        return _build_predictions(
            pl.DataFrame(schema={**schema, **dict.fromkeys(numbers, pl.Float64)}), scenes, findings
        )
    rows = read_rows(data, path.name, where, findings).with_columns(from_sheets(pl.col("video")))
    rows = _parse_scores(rows, path.name, where, findings)
    rows = _with_frames(rows, scenes, path.name, findings)
    if rows.is_empty():
        raise build_all_rejected_error(
            findings, where, "rows", "a row is video,timestamp,x1,y1,x2,y2,action,score"
        )
    place = Place(path.name, findings, _first_frame(scenes))
    rows = add_label_index(rows, known, place)
    if rows.is_empty():
        findings.warn(_FOREIGN, path.name)
    rows = assign_box_ids(_in_pixels(rows, scenes), ["video", "frame", *CORNERS], place)
    _tell_of_strangers(rows, scenes, path.name, where, findings)
    return _build_predictions(rows, scenes, findings)


def _build_predictions(rows: pl.DataFrame, scenes: Scenes, findings: Findings) -> Predictions:
    """The Predictions that rows with their numbers of boxes are."""
    boxes, labels = select_boxes(rows), select_action_labels(rows)
    findings.read["boxes"] += len(boxes)
    findings.read["labels"] += len(labels)
    notes = {name: scenes.meta.notes[name] for name in _SHARED if name in scenes.meta.notes}
    return Predictions(
        boxes=boxes,
        labels=labels,
        rejected=findings.table(),
        meta=Meta(
            dataset=scenes.meta.dataset,
            vocabularies={KIND: scenes.meta.vocabularies[KIND]},
            rows_read=dict(sorted(findings.read.items())),
            notes={**findings.notes(), **notes},
        ),
    )


def read_person_boxes(path: Path, scenes: Scenes | None = None) -> Predictions:
    """Boxes of persons that a detector proposes, in the csv or the pickle that AVA's models take them from.

    A row of csv is `video,timestamp,x1,y1,x2,y2,label,score`; the label is empty or a number and says nothing. A pickle
    (of MMAction2, `*.pkl`) has `VIDEO,SECOND` to an array of `x1, y1, x2, y2, score`; it is read as data, nothing of it is
    run. Boxes come in the order of the file, one for each row.

    Args:
        path: the csv or the pickle.
        scenes: the ground truth, for sizes of videos and the count of frames; without it a video is one pixel wide
            and high, and a frame a second.

    Raises:
        InputError: if the file cannot be read, is in pixels, or no row can be taken.
        DatasetNotFoundError: if there is no such file.
    """
    path, findings = Path(os.path.realpath(path)), Findings()
    scenes = scenes or Scenes(meta=Meta(dataset="AVA", notes={"unit_pictures": True}))
    where = to_printable(str(path))
    data = read_file(path, where, MOST_BYTES)
    if path.suffix.lower() == ".pkl":
        rows = _read_proposals(data, path.name, where, findings)
    else:
        rows = read_rows(data, path.name, where, findings)
        rows = _parse_scores(rows, path.name, where, findings, action_due=False)
    rows = _in_pixels(_with_frames(rows, scenes, path.name, findings), scenes)
    findings.read["boxes"] += len(rows)
    notes = {name: scenes.meta.notes[name] for name in _SHARED if name in scenes.meta.notes}
    return Predictions(
        boxes=rows.with_row_index("box").select(
            pl.col("box").cast(pl.Int64), "video", "frame", *CORNERS, "score"
        ),
        rejected=findings.table(),
        meta=Meta(
            dataset=scenes.meta.dataset,
            vocabularies={"agentness": ("person",)},
            rows_read=dict(sorted(findings.read.items())),
            notes={**findings.notes(), **notes},
        ),
    )


def _read_proposals(data: bytes, file: str, where: str, findings: Findings) -> pl.DataFrame:
    """`line` (null), `video`, `frame` (a second), corners in shares and `score` of a pickle's arrays that can be taken.

    Raises:
        InputError: if it is no pickle of arrays by `VIDEO,SECOND`, or nothing in it can be taken.
    """
    held = load(data, where)
    if not isinstance(held, dict) or not held:
        raise InputError(
            "expected proposals: a dictionary of VIDEO,SECOND to arrays of x1, y1, x2, y2, score", where=where
        )
    names = [*CORNERS, "score"]
    parts = [pl.DataFrame(schema={"video": pl.String, "frame": pl.Int64, **dict.fromkeys(names, pl.Float64)})]
    for key, value in held.items():
        match = _MOMENT.fullmatch(key) if isinstance(key, str) else None
        array = isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "fiu"
        if match is None or not array or value.shape[1] != len(names):
            shape = f"an array of {value.shape}" if isinstance(value, np.ndarray) else "no array"
            fault = f"expected VIDEO,SECOND and an array of (n, 5), found {shape}"
            for _ in range(max(1, len(value) if isinstance(value, np.ndarray) and value.ndim else 1)):
                findings.reject("boxes", file, to_printable(str(key), 100), fault)
            continue
        numbers = pl.DataFrame(value.astype(np.float64), schema=names)
        said = {"video": pl.lit(to_printable(match[1], 255)), "frame": pl.lit(int(match[2]), pl.Int64)}
        parts.append(numbers.with_columns(**said))
    rows = pl.concat([part.select(parts[0].columns) for part in parts])
    good = pl.all_horizontal(pl.col(name).is_finite() & (pl.col(name).abs() <= _FAR_SHARE) for name in names)
    upright = (pl.col("x1_px") <= pl.col("x2_px")) & (pl.col("y1_px") <= pl.col("y2_px"))
    right = good & upright & pl.col("score").is_between(0, 1)
    reason = pl.lit("a proposal is x1, y1, x2, y2 in shares of the image, upright, and a score from 0 to 1")
    text = pl.format("{},{}: {}", "video", "frame", pl.concat_str(*names, separator=", "))
    bad = rows.filter(~right).select(line=pl.lit(None, pl.Int64), file=pl.lit(file), item=text, reason=reason)
    findings.read["boxes"] += len(bad)
    findings.reject_rows("boxes", bad)
    kept = rows.filter(right)
    if kept.is_empty() and (bad.height or findings.read["boxes"]):
        raise build_all_rejected_error(findings, where, "proposals", "write shares of the image, not pixels")
    return kept.with_columns(line=pl.lit(None, pl.Int64))


def write_action_predictions(predictions: Predictions, scenes: Scenes, path: Path) -> None:
    """Predictions as the csv that `read_action_predictions` and the published evaluators read; the inverse.

    Numbers are written with as many digits as they need. A video's name that a sheet would take for a formula
    gets an apostrophe in front; names of letters, digits, `_`, `.` and `-` stay as they are.

    Args:
        predictions: with `boxes` and scored `labels` of the kind `action`.
        scenes: the ground truth, see `read_action_predictions`.
        path: where to; its folder must exist.

    Raises:
        InputError: if a label has no score.
        DiskError: if the disk refuses; what stood there before still stands.
    """
    labels = predictions.labels.filter(pl.col("kind").cast(pl.String) == KIND)
    if len(labels) and ("score" not in labels.columns or labels["score"].null_count()):
        raise InputError("predictions without a score cannot be written", hint="every label needs a `score`")
    if "score" not in labels.columns:
        labels = labels.with_columns(score=pl.lit(0.0))
    known = label_map(scenes)
    rows = labels.join(predictions.boxes, on="box", how="left", maintain_order="left", suffix="_box")
    rows = rows.with_columns(pl.col("video").cast(pl.String)).join(
        _sizes(scenes), on="video", how="left", maintain_order="left"
    )
    out = rows.select(
        "video",
        # AVA writes four digits.
        (pl.col("frame") + _first_frame(scenes)).cast(pl.String).str.zfill(4).alias("timestamp"),
        pl.col("x1_px", "x2_px") / pl.col("width"),
        pl.col("y1_px", "y2_px") / pl.col("height"),
        pl.col("label")
        .replace_strict(range(len(known.ids)), known.ids, return_dtype=pl.Int64)
        .alias("action"),
        "score",
    ).select("video", "timestamp", *CORNERS, "action", "score")
    write_atomically(Path(path), format_csv(out, header=False).encode())


def label_map(scenes: Scenes) -> LabelMap:
    """The ground truth's actions with the numbers that its files give them.

    Raises:
        InputError: if the ground truth has no vocabulary of actions.
    """
    if KIND not in scenes.meta.vocabularies:
        raise InputError(
            f"the truth ({scenes.meta.dataset or 'unnamed'}) has no actions",
            hint="read it with the reader `ava` or `chaotic_world`",
        )
    names = scenes.meta.vocabularies[KIND]
    ids = scenes.meta.notes.get("label_ids", {}).get(KIND)
    return LabelMap(tuple(ids), names) if ids is not None else LabelMap(tuple(range(len(names))), names)


def _parse_scores(
    rows: pl.DataFrame, file: str, where: str, findings: Findings, *, action_due: bool = True
) -> pl.DataFrame:
    """The rows with `score`; those whose score is none are refused.

    Raises:
        InputError: if the eighth cells are numbers of persons, or scores of another scale.
    """
    boxless = rows[CORNERS[0]].is_null()
    actionless = ~boxless & rows["action"].is_null() & action_due
    score = rows["last"].cast(pl.Float64, strict=False)
    _refuse_persons(rows, score, where)
    _refuse_scale(rows["line"], score, where)
    given = rows["last"].is_not_null()
    bad = given & ~(score.is_between(0, 1)).fill_null(value=False)
    reasons = pl.select(
        reason=pl.when(boxless)
        .then(pl.lit("a prediction without a box"))
        .when(actionless)
        .then(pl.lit("a prediction without an action"))
        .when(bad)
        .then(pl.format("the score should be a number in [0, 1] and is '{}'", rows["last"].str.slice(0, 60)))
    )["reason"]
    refused = rows.with_columns(reasons).filter(reasons.is_not_null())
    if len(refused):
        findings.read["boxes"] += len(refused)
        item = pl.format("{}, {}", "video", "frame")
        findings.reject_rows("boxes", refused.select("line", "reason", file=pl.lit(file), item=item))
    unscored = ~given & reasons.is_null()
    if count := int(unscored.sum()):
        findings.warn(_UNSCORED, f"{file}:{rows['line'][int(unscored.arg_true()[0])]}", count)
    held = rows.with_columns(score.fill_null(1.0).alias("score")).filter(reasons.is_null()).drop("last")
    if given.any() and len(held) > 1 and held["score"].is_in([0.0, 1.0]).all():
        findings.warn(_PERSONS, file)
    return held


def _refuse_persons(rows: pl.DataFrame, score: pl.Series, where: str) -> None:
    """Refuse a file of ground truth, whose eighth cells are whole numbers beyond 1."""
    whole = (score == score.floor()).fill_null(value=False)
    beyond = whole & (score > 1)
    if beyond.any() and int(whole.sum()) == len(rows) - rows["last"].null_count():
        first = int(beyond.arg_true()[0])
        raise InputError(
            f"the eighth column holds whole numbers such as {to_printable(rows['last'][first], 40)}, where a score "
            "in [0, 1] is due: numbers of persons, as in a file of truth",
            where=f"{where}:{rows['line'][first]}",
            hint="give detections; to score truth against itself, leave the eighth column out",
        )


def _refuse_scale(lines: pl.Series, score: pl.Series, where: str) -> None:
    """Refuse a file of which more than one score in twenty lies outside [0, 1]: that is its scale."""
    numbers = score.set(~score.is_finite(), None)
    beyond = ((numbers < 0) | (numbers > 1)).fill_null(value=False)
    if int(beyond.sum()) < 2 or int(beyond.sum()) <= _MOST_BEYOND * numbers.count():
        return
    low, high = float(str(numbers.min())), float(str(numbers.max()))
    remedy = "bring them to [0, 1] in a way that keeps their order"
    if low < 0:
        remedy = "they look like logits: write the sigmoid of each"
    elif high <= 100:
        remedy = "they look like percent: divide each by 100"
    count = f"{int(beyond.sum()):,} of {numbers.count():,}"
    raise InputError(
        f"{count} scores lie outside [0, 1]; they run from {low:g} to {high:g}",
        where=f"{where}:{lines[int(beyond.arg_true()[0])]}",
        hint=remedy,
    )


def _with_frames(rows: pl.DataFrame, scenes: Scenes, file: str, findings: Findings) -> pl.DataFrame:
    """The rows with frames counted as those of the ground truth."""
    first = _first_frame(scenes)
    if "first_frame" not in scenes.meta.notes:
        return rows
    moved = rows.with_columns(frame=pl.col("frame") - first)
    known = _moments(scenes)
    if "t_s" in scenes.frames.columns and not len(moved.join(known, on=["video", "frame"], how="semi")):
        times = scenes.frames.select(
            pl.col("video").cast(pl.String), pl.col("t_s").floor().cast(pl.Int64).alias("second"), at="frame"
        ).drop_nulls()
        times = times.unique(subset=["video", "second"], keep="first", maintain_order=True)
        found = rows.join(times, left_on=["video", "frame"], right_on=["video", "second"], how="left")
        if len(found) != found["at"].null_count():
            findings.warn(_SECONDS, file, len(rows))
            moved = rows.with_columns(found["at"].fill_null(-1).alias("frame"))
    early = moved.filter(pl.col("frame") < 0)
    if len(early):
        findings.read["boxes"] += len(early)
        item = pl.format("{}, {}", "video", pl.col("frame") + first)
        reason = pl.lit("a moment that the truth does not have")
        findings.reject_rows("boxes", early.select("line", file=pl.lit(file), item=item, reason=reason))
    return moved.filter(pl.col("frame") >= 0)


def _in_pixels(rows: pl.DataFrame, scenes: Scenes) -> pl.DataFrame:
    """The rows with corners in pixels of the ground truth's videos."""
    if scenes.meta.notes.get("unit_pictures"):
        return rows
    sizes = _sizes(scenes)
    rows = rows.join(sizes, on="video", how="left", maintain_order="left")
    across, down = (
        pl.col(side).fill_null(sizes[side].first() if len(sizes) else 1) for side in ("width", "height")
    )
    return rows.with_columns(pl.col("x1_px", "x2_px") * across, pl.col("y1_px", "y2_px") * down).drop(
        "width", "height"
    )


def _sizes(scenes: Scenes) -> pl.DataFrame:
    """Width and height of each video."""
    return scenes.videos.select(
        pl.col("video").cast(pl.String), width=pl.col("width_px"), height=pl.col("height_px")
    )


def _first_frame(scenes: Scenes) -> int:
    return int(scenes.meta.notes.get("first_frame") or 0)


def _moments(scenes: Scenes) -> pl.DataFrame:
    """Every video and frame that the ground truth knows."""
    table = scenes.frames if len(scenes.frames) else scenes.boxes
    return table.select(pl.col("video").cast(pl.String), "frame").unique()


def _explain_moments(predicted: pl.DataFrame, known: pl.DataFrame) -> str:
    """What brings predicted moments to those of the ground truth: a constant to be added, or a frame rate."""
    plain = "compare the names of videos and the timestamps of both files: they must be written alike"
    both = predicted.select("video", "frame").join(
        known.group_by("video").agg(first=pl.col("frame").min(), last=pl.col("frame").max()), on="video"
    )
    if both.is_empty():
        return plain
    spans = both.group_by("video").agg(
        pl.col("frame").min().alias("low"),
        pl.col("frame").max().alias("high"),
        pl.col("first", "last").first(),
    )
    due = known.select("video", "frame").unique()
    offsets = {
        int(n) for n in (spans["first"] - spans["low"]).to_list() + (spans["last"] - spans["high"]).to_list()
    }
    rate = spans.filter(pl.col("last") > 0).select((pl.col("high") / pl.col("last")).median()).item()

    def meet(moved: pl.Expr) -> float:
        met = both.with_columns(moved.alias("frame")).join(due, on=["video", "frame"], how="semi")
        return len(met) / len(both)

    shares = {n: meet(pl.col("frame") + n) for n in sorted(offsets, key=abs)[:40] if n}
    best = max(shares, key=lambda n: shares[n], default=0)
    text, share = f"add {best:+d} to every timestamp", shares.get(best, 0.0)
    # A constant comes first: division brings many moments to one, so that they are met by chance
    if share <= 0.5 and rate is not None and round(rate) > 1:
        text = f"divide every timestamp by {round(rate)}: are these frames, where seconds are due?"
        share = meet((pl.col("frame") / round(rate)).round().cast(pl.Int64))
    return f"{text}; then {share:.0%} of the moments are in the truth" if share > 0.5 else plain


def _tell_of_strangers(rows: pl.DataFrame, scenes: Scenes, file: str, where: str, findings: Findings) -> None:
    """Warn of predictions in moments that the ground truth lacks.

    Raises:
        InputError: if all are; says which names differ.
    """
    shift = pl.col("frame") + _first_frame(scenes)
    known, rows = _moments(scenes).with_columns(shift), rows.with_columns(shift)
    predicted = rows.group_by("video", "frame", maintain_order=True).agg(pl.len(), pl.col("line").first())
    strange = predicted.join(known, on=["video", "frame"], how="anti", maintain_order="left")
    if strange.is_empty():
        return
    videos = known["video"].unique()
    foreign = ~strange["video"].is_in(videos.implode())
    first = strange.row(0, named=True)
    if len(strange) == len(predicted):
        has = known.sort("video", "frame").row(0) if len(known) else ("nothing", 0)
        raise InputError(
            f"none of {len(predicted):,} predicted moments is in the truth: predicted is "
            f"'{to_printable(first['video'], 60)}' at {first['frame']}, "
            f"the truth has '{to_printable(has[0], 60)}' at {has[1]}",
            where=f"{where}:{first['line']}",
            hint=_explain_moments(predicted, known),
        )
    for what, rows_of in (
        ("predictions in videos that the truth lacks", strange.filter(foreign)),
        ("predictions in moments that the truth lacks", strange.filter(~foreign)),
    ):
        if len(rows_of):
            row = rows_of.row(0, named=True)
            findings.warn(
                what, f"{file}:{row['line']}: {row['video']}, {row['frame']}", int(rows_of["len"].sum())
            )
