"""Evaluations of any kind: their numbers, and the items behind a number by what each costs, with the frame that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.evaluation.runs import EventRun, Run, SceneRun
from roadaware.arrays import Bools, Floats
from roadaware.errors import InputError, RoadawareError, UsageError
from roadaware.geometry.boxes import iou
from roadaware.metrics.metric_state import SceneResult
from roadaware.metrics.pedestrians import PedestrianCore, is_lower_better
from roadaware.scenes.sampling import get_protocol, sample
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes
from roadaware.statistics.average_precision import average_precision
from roadaware.viewer.opening import Opened, TableSource, load_tables

AnyRun = EventRun | Run | SceneRun

ITEMS: dict[str, Any] = {
    "video": pl.String,
    "label": pl.String,
    "fault": pl.String,
    "meant_for": pl.String,
    "words": pl.String,
    "score": pl.Float64,
    "cost": pl.Float64,
    "frame": pl.Int64,
    "first": pl.Int64,
    "end": pl.Int64,
    "tube": pl.Int64,
    "truth": pl.Int64,
    "box": pl.Int64,
    "truth_box": pl.Int64,
}
"""Columns of a list of items: `tube` and `box` are of the predictions, `truth` and `truth_box` of the ground truth."""
MISSED, FALSE, WEAK = "missed", "false alarm", "unsure"
# Items whose cost is found by judging all samples again, and samples that are judged again in all.
_MOST_SAMPLES, _MOST_WORK = 200, 400_000
_MOST_WRONG, _MOST_RANKS = 300, 200_000_000
_HALF = 0.5
_AGAIN = "evaluate again with this version, into a new folder"


def list_metrics(run: Run | SceneRun) -> list[dict[str, Any]]:
    """The numbers of an evaluation in the form of those of road events; `kind` is the metric of the whole.

    A row with a label is of one class, and its kind the metric that it is a part of.
    """
    whole = run.result.of_group().iter_rows(named=True)
    rows = [dict(row) for row in whole]
    names = {row["metric"] for row in rows if row.get("label") is None}
    found = []
    for row in rows:
        label = row.get("label")
        metric = row["metric"] if label is None else row["metric"].removesuffix(f":{label}")
        kind = next((name for name in (metric, f"m{metric}") if name in names), metric)
        # Intervals over videos, as everywhere in the viewer; samples without videos have those over pedestrians.
        over = "video" if row["low_video"] is not None else "pedestrian"
        found.append(
            {
                "metric": row["metric"],
                "level": "",
                "overlap": None,
                "threshold": None,
                "kind": kind,
                "label": label,
                "value": row["value"],
                "n": row["n"],
                "reason": row["reason"],
                "low": row[f"low_{over}"],
                "high": row[f"high_{over}"],
            }
        )
    return found


def list_items(run: Run | SceneRun, metric: str, opened: Opened) -> pl.DataFrame:
    """What stands behind a number, the dearest first; of all classes.

    Args:
        run: an evaluation.
        metric: of the whole, by name.
        opened: the sets that it judged, where they were named.

    Returns:
        the columns of `ITEMS`; `cost` is what the number would gain if this item alone were right, null where
        the number does not tell.

    Raises:
        UsageError: if there is no such metric.
        InputError: if the folder keeps no rows of single items.
    """
    if metric not in {row["kind"] for row in list_metrics(run)}:
        raise UsageError("this evaluation has no such number")
    if isinstance(run, Run):
        rows: pl.DataFrame = run.result.instances("sample")
        state = run.state.take(np.argsort(run.state.places))
        wrong = 1 - rows["truth_score"].to_numpy()
        chosen = np.argsort(-wrong, kind="stable")[:_MOST_SAMPLES]
        chosen = chosen[wrong[chosen] > 0]
        most = max(1, _MOST_WORK // max(1, len(rows)))
        # By how much the metric is better where one sample alone gives all of its score to the truth.
        base = run.result.value(metric)
        sign = -1.0 if is_lower_better(metric) else 1.0
        longest = float(state.tte_frames.max()) if state.tte_frames is not None and len(state) else None
        found = []
        for row in chosen[:most].tolist():
            scores = state.scores.copy()
            if scores.shape[1] == 1:
                scores[row] = state.truth[row]
            else:
                scores[row] = 0.0
                scores[row, state.truth[row]] = 1.0
            core = PedestrianCore.of(replace(state, scores=scores), run.config, longest)
            value = float(core.values(core.once())[metric][0])
            found.append(max(0.0, sign * (value - (base or 0.0))) if np.isfinite(value) else 0.0)
        cost: list[float | None] = [*found]
        cost += [None] * (len(chosen) - len(cost))
        binary = run.state.scores.shape[1] == 1
        words = {"action": ("not crossing", "crossing")}.get(run.config.task) or [
            f"{'region' if run.config.task == 'risk' else 'class'} {place}"
            for place in range(state.n_classes)
        ]
        picked: pl.DataFrame = rows[chosen.tolist()]
        truths, decided = picked["truth"].to_list(), picked["decision"].to_list()
        fault = [
            WEAK if a == b else MISSED if binary and a else FALSE if binary else "class"
            for a, b in zip(truths, decided, strict=True)
        ]
        placed = _place_samples(run, opened.truth)
        picked = picked.with_columns(
            label=pl.Series([words[a] for a in truths], dtype=pl.String),
            fault=pl.Series(fault, dtype=pl.String),
            said=pl.Series([words[place] for place in decided], dtype=pl.String),
            cost=pl.Series(cost, dtype=pl.Float64),
            score=pl.Series(1 - wrong[chosen], dtype=pl.Float64),
        )
        when = pl.format(", {} frames before", "tte_frames").fill_null("")
        text = pl.format("said {} by {}, {}{}", "said", pl.col("confidence").round(2), "pedestrian", when)
        picked = picked.with_columns(words=text).drop("video", "truth")
        rows = picked.join(placed, on="order", how="left", maintain_order="left")
    else:
        rows = _LISTS[run.task.name](run.result, metric, opened)
    # Equal costs stay as the list has them: what was said wrongly with the greatest confidence first.
    return _complete(rows).sort(pl.col("cost").fill_null(-1.0), descending=True, maintain_order=True)


def _complete(rows: pl.DataFrame) -> pl.DataFrame:
    held = rows.columns
    return rows.select(
        (pl.col(name).cast(kind) if name in held else pl.lit(None, kind)).alias(name)
        for name, kind in ITEMS.items()
    )


def _rows(result: SceneResult, level: str) -> pl.DataFrame:
    if level not in result.levels:
        raise InputError(
            f"this run keeps no rows of the kind '{level}', which this number is made of", hint=_AGAIN
        )
    return result.instances(level)


def _name_labels(source: TableSource, kind: str, column: pl.Expr) -> pl.Expr:
    words = source.meta.vocabularies.get(kind, ())
    return column.cast(pl.Int64).replace_strict(
        list(range(len(words))), list(words), default=None, return_dtype=pl.String
    )


# Pedestrians.


def _place_samples(run: Run, truth: TableSource | None) -> pl.DataFrame:
    """`order`, `video`, `truth` (the tube), `frame`, `first` and `end` of samples, as far as the ground truth tells.

    Where the ground truth is the dataset of the protocol, samples are cut from it again; else a sample is looked for
    by video and name, at its time before the event.
    """
    rows = run.result.instances("sample").select("order", "pedestrian", "video", "tte_frames", "truth")
    if truth is None:
        return rows.select("order", "video")
    cut = _cut_again(run, rows, truth)
    if cut is not None:
        return cut
    held = truth.scan("tubes").collect_schema().names()
    event = pl.col("event_frame").cast(pl.Int64) if "event_frame" in held else pl.lit(None, pl.Int64)
    name = pl.col("name").cast(pl.String) if "name" in held else pl.col("tube").cast(pl.String)
    spans = [pl.col(each).cast(pl.Int64) for each in ("start_frame", "end_frame") if each in held]
    tubes = truth.scan("tubes").select(
        "tube", pl.col("video").cast(pl.String), name.alias("own"), event=event
    )
    whole = truth.scan("tubes").select("tube", *spans).collect()
    found = tubes.collect().join(whole, on="tube", how="left")
    for each in ("start_frame", "end_frame"):
        if each not in found.columns:
            found = found.with_columns(pl.lit(None, pl.Int64).alias(each))
    keys = [pl.col("own"), pl.format("{}/{}", "video", "own")]
    known = pl.concat([found.with_columns(key=key, seen="video") for key in keys]).unique(
        "key", keep="none", maintain_order=True
    )
    joined = rows.drop("video", "truth").join(
        known, left_on="pedestrian", right_on="key", how="left", maintain_order="left"
    )
    event = pl.coalesce("event", "end_frame")  # of those who never cross, protocols take a last box for it
    last = pl.coalesce(event - pl.col("tte_frames"), event) - 1
    last = pl.when(last >= pl.col("start_frame")).then(last).otherwise(pl.col("start_frame"))
    return joined.select(
        "order", "video", truth="tube", frame=last, first=pl.col("start_frame"), end=pl.col("end_frame")
    )


def _cut_again(run: Run, rows: pl.DataFrame, truth: TableSource) -> pl.DataFrame | None:
    """The samples of the run's protocol in the dataset; None where they are not those of the run."""
    name, how = run.protocol, run.facts.get("config_name", "default")
    if not name.startswith(f"{truth.meta.dataset.lower()}-") or how not in ("default", "reference"):
        return None
    try:
        scenes: Scenes = load_tables(truth, tuple(truth.tables), Scenes)
        cut = sample(scenes, get_protocol(name, how))
    except RoadawareError:  # another version of the dataset: they are looked for by name
        return None
    samples = cut.samples.with_columns(pl.col("video", "split").cast(pl.String))
    for (_,), part in samples.group_by("split", maintain_order=True):
        if len(part) == len(rows) and part["label"].cast(pl.Int64).equals(rows["truth"].cast(pl.Int64)):
            return part.select(
                rows["order"],
                "video",
                truth="tube",
                frame=pl.col("end_frame") - 1,
                first="start_frame",
                end="end_frame",
            )
    return None


# Tasks on scenes.


def _gain_of_hits(
    rows: pl.DataFrame, n_truth: Mapping[str, int], rule: str
) -> tuple[pl.DataFrame, dict[str, float]]:
    """What wrong predictions and what was missed cost in a mean of average precisions.

    Args:
        rows: `part` (that precisions are averaged over), `score` and `hit` of predictions, the best of a part first.
        n_truth: part to how many there are to be found.
        rule: how average precision is read off.

    Returns:
        the wrong rows with `cost`, up to 300 with the highest scores of each part; and part to what a missed one costs.
    """
    parts = [part for part, count in n_truth.items() if count]
    found, missed = [], {}
    most = min(_MOST_WRONG, max(1, _MOST_RANKS // max(1, len(rows))))
    held = rows.partition_by("part", as_dict=True)
    for part in parts:
        of_part = held.get((part,), rows.clear())
        hit = of_part["hit"].to_numpy()
        base = average_precision(hit, n_truth[part], rule)
        wrong = np.flatnonzero(~hit)[:most].tolist()
        gains = [average_precision(np.delete(hit, at), n_truth[part], rule) - base for at in wrong]
        cost = pl.Series("cost", [max(0.0, gain) / len(parts) for gain in gains], dtype=pl.Float64)
        found.append(of_part[wrong].with_columns(cost))
        missed[part] = max(
            0.0, (average_precision(np.insert(hit, 0, True), n_truth[part], rule) - base) / len(parts)
        )
    empty = rows.clear().with_columns(cost=pl.lit(None, pl.Float64))
    return pl.concat([empty, *found]).sort("score", descending=True, maintain_order=True), missed


def _list_actions(result: SceneResult, metric: str, opened: Opened) -> pl.DataFrame:
    predictions, truth = _rows(result, "prediction"), _rows(result, "truth")
    predictions = predictions.reverse() if result.config.get("tied_ranks") == "reversed" else predictions
    predictions = predictions.sort("score", descending=True, maintain_order=True).with_columns(part="label")
    n_truth = dict(truth.group_by("label", maintain_order=True).len().rows())
    if result.config.get("classes") == "with_truth_and_predictions":
        n_truth = {label: n_truth[label] for label in n_truth.keys() & set(predictions["label"].to_list())}
    wrong, missed = _gain_of_hits(predictions, n_truth, str(result.config.get("ap", "envelope")))
    lost = truth.filter(~pl.col("found"))
    costs = pl.Series([missed.get(label) for label in lost["label"].to_list()], dtype=pl.Float64)
    return pl.concat(
        [
            _complete(wrong.with_columns(fault=pl.lit(FALSE), truth=None, truth_box="truth")),
            _complete(
                lost.drop("score").with_columns(cost=costs, fault=pl.lit(MISSED)).rename({"box": "truth_box"})
            ),
        ]
    )


def _list_relations(result: SceneResult, metric: str, opened: Opened) -> pl.DataFrame:
    if metric.startswith("frame_"):
        return _list_relation_frames(result, metric)
    truth = _rows(result, "truth").with_columns(label="predicate", first="start_frame", end="end_frame")
    truth = _describe_relations(truth, opened.truth)
    at = int(metric.partition("@")[2] or 0) if metric.startswith("recall@") else 0
    lost = truth.filter(pl.col("rank").is_null() | (pl.col("rank") > at if at else False))
    if at:
        share = 1.0 / max(1, len(truth))
        return lost.with_columns(cost=pl.lit(share), fault=pl.lit(MISSED))
    predictions = _rows(result, "prediction").sort("video", "rank", maintain_order=True)
    predictions = predictions.with_columns(part="video", label="predicate")
    n_truth = dict(truth.group_by("video", maintain_order=True).len().rows())
    wrong, missed = _gain_of_hits(predictions, n_truth, "envelope")
    if metric.startswith(
        "precision"
    ):  # a missed relation costs it nothing, and a wrong one only where it ranks high
        lost, wrong = lost.clear(), wrong.with_columns(cost=pl.lit(None, pl.Float64)).sort("rank")
    costs = pl.Series([missed.get(video, 0.0) for video in lost["video"].to_list()], dtype=pl.Float64)
    met = truth.select(
        pl.col("relation").alias("met"), "start_frame", "end_frame", pl.col("truth").alias("own")
    )
    side = next(iter(opened.predicted.values()), None)
    wrong = _describe_relations(wrong.rename({"truth": "met"}), side, "tube")
    wrong = wrong.join(met, on="met", how="left", maintain_order="left").with_columns(
        first=pl.coalesce("first", "start_frame"), end=pl.coalesce("end", "end_frame"), truth="own"
    )
    return pl.concat(
        [
            _complete(wrong.with_columns(fault=pl.lit(FALSE))),
            _complete(lost.with_columns(cost=costs, fault=pl.lit(MISSED))),
        ]
    )


def _describe_relations(rows: pl.DataFrame, source: TableSource | None, tube: str = "truth") -> pl.DataFrame:
    """Rows with who and to whom in words, the tube of the subject, and, of predictions, when."""
    empty = {
        tube: pl.Int64,
        "words": pl.String,
        **({"first": pl.Int64, "end": pl.Int64} if tube == "tube" else {}),
    }
    if source is None or "relations" not in source.tables:
        return rows.with_columns(pl.lit(None, kind).alias(name) for name, kind in empty.items())
    name = "name" if "name" in source.scan("tubes").collect_schema().names() else "tube"
    names = source.scan("tubes").select("tube", called=pl.col(name).cast(pl.String)).collect()
    table = (
        source.scan("relations").select("relation", "subject", "object", "start_frame", "end_frame").collect()
    )
    table = table.join(names, left_on="subject", right_on="tube", how="left", maintain_order="left")
    table = table.join(
        names, left_on="object", right_on="tube", how="left", maintain_order="left", suffix="_of"
    )
    words = pl.format(
        "{} to {}",
        pl.coalesce("called", pl.col("subject").cast(pl.String)),
        pl.coalesce("called_of", pl.col("object").cast(pl.String)),
    )
    when = {"first": pl.col("start_frame"), "end": pl.col("end_frame")} if tube == "tube" else {}
    table = table.select("relation", pl.col("subject").alias(tube), words=words, **when)
    return rows.join(table.unique("relation", keep="first"), on="relation", how="left", maintain_order="left")


def _list_relation_frames(result: SceneResult, metric: str) -> pl.DataFrame:
    rows = _rows(result, "frame")
    at = f"found@{metric.partition('@')[2].partition('_')[0]}"
    column = at if at in rows.columns else rows.columns[-1]
    lost = pl.col("truth") - pl.col(column)
    per_image = metric.endswith("_per_image") or (
        not metric.endswith("_pooled") and result.config.get("averaging") == "per_image"
    )
    asked = len(rows) if result.config.get("empty_frames") == "zero" else int((rows["truth"] > 0).sum())
    cost = lost / pl.col("truth") / max(1, asked) if per_image else lost / max(1, int(rows["truth"].sum()))
    return rows.filter(lost > 0).with_columns(
        fault=pl.lit(MISSED),
        words=pl.format("{} of {} triplets missed", lost, "truth"),
        cost=cost,
        truth=None,
        first="frame",
        end=pl.col("frame") + 1,
    )


def _below(metric: str, column: str, rows: pl.DataFrame) -> pl.DataFrame:
    """The items that do not reach the number's threshold, or, where it is a mean, those that are not perfect."""
    value = pl.col(column).fill_null(0.0)
    known, at = rows.filter(pl.col(column).is_not_null() | ~pl.col("predicted")), metric.partition("@")[2]
    n = max(1, len(known))
    if at:
        return known.filter(value < float(at)).with_columns(cost=pl.lit(1.0 / n), score=value).sort("score")
    return known.filter(value < 1).with_columns(cost=(1 - value) / n, score=value)


def _list_sentences(result: SceneResult, metric: str, opened: Opened) -> pl.DataFrame:
    column = "tiou" if "tiou" in metric else "gt_viou" if metric.startswith("gt_") else "viou"
    rows = _below(metric, column, _rows(result, "sentence"))
    fault = (
        pl.when(~pl.col("predicted"))
        .then(pl.lit("no answer"))
        .when(pl.col("tiou").fill_null(0.0) < _HALF)
        .then(pl.lit("time"))
        .when(pl.col("gt_viou").fill_null(0.0) < _HALF)
        .then(pl.lit("place"))
        .otherwise(pl.lit("space_time"))
    )
    said = pl.format("said frames {} to {}", "predicted_start", pl.col("predicted_end") - 1).fill_null(
        "nothing said"
    )
    rows = rows.with_columns(
        fault=fault, label="sentence_kind", first="start_frame", end="end_frame", words=said
    )
    if opened.truth is None or "queries" not in opened.truth.tables:
        return rows
    held = opened.truth.scan("queries").collect_schema().names()
    text = pl.col("text").cast(pl.String) if "text" in held else pl.lit(None, pl.String)
    tube = pl.col("tube").cast(pl.Int64) if "tube" in held else pl.lit(None, pl.Int64)
    table = opened.truth.scan("queries").select("query", text=text, truth=tube).collect()
    joined = rows.join(table.unique("query", keep="first"), on="query", how="left", maintain_order="left")
    return joined.with_columns(words=pl.concat_str(["text", "words"], separator=" | ", ignore_nulls=True))


def _list_sounds(result: SceneResult, metric: str, opened: Opened) -> pl.DataFrame:
    rows = _below(metric, "ciou", _rows(result, "sound"))
    fault = pl.when(~pl.col("predicted")).then(pl.lit("no answer")).when("constant").then(pl.lit("one value"))
    rows = rows.with_columns(fault=fault.otherwise(pl.lit("place")), label="sound_class")
    if metric.endswith("auc"):
        rows = rows.with_columns(cost=pl.lit(None, pl.Float64), score=1 - pl.col("score")).sort("score")
    better = pl.max_horizontal("whole_image", "centre") >= pl.col("ciou").fill_null(0.0)
    words = pl.format("consensus IoU {}", pl.col("ciou").fill_null(0.0).round(2))
    rows = rows.with_columns(
        words=pl.when(better).then(pl.format("{}, no better than a blind answer", words)).otherwise(words)
    )
    if opened.truth is None or "sounds" not in opened.truth.tables:
        return rows
    held = opened.truth.scan("sounds").collect_schema().names()
    if "frame" not in held:
        return rows
    frames = opened.truth.scan("sounds").select("sound", pl.col("frame").cast(pl.Int64)).collect()
    return rows.join(frames.unique("sound", keep="first"), on="sound", how="left", maintain_order="left")


def _list_corners(result: SceneResult, metric: str, opened: Opened) -> pl.DataFrame:
    rows = _rows(result, "object")
    group, _, column = metric.partition("_")
    if group not in rows["group"].unique().to_list():
        group, column = ("corner" if "corner" in rows["group"] else rows["group"][0]), "ar"
    size = next((each for each in ("small", "medium", "large") if column.endswith(each)), None)
    rows = rows.filter(pl.col("group") == group)
    rows = rows if size is None else rows.filter(pl.col("size") == size)
    n = max(1, len(rows))
    half = column.startswith(("ar50", "ap50"))
    short = pl.col("rank").is_null() if half else pl.col("met_share") < 1
    cost = pl.lit(1.0) if half else 1 - pl.col("met_share")
    met = pl.format("nearest proposal overlaps by {}", pl.col("best_iou").fill_nan(0.0).round(2))
    label = pl.coalesce("super_class", "label") if group == "corner" else pl.coalesce("label", "super_class")
    # The mean over classes gives a rare one more weight. Other overlaps, average precision, and common classes, of
    # which vehicles may count as one, do not tell.
    weight = pl.len().over("label") * rows["label"].n_unique() if group == "classes" else pl.lit(n)
    is_recall = group != "common" and (column == "ar" or column.startswith(("ar50", "ar_")))
    lost = rows.with_columns(cost=cost / weight if is_recall else pl.lit(None, pl.Float64)).filter(short)
    lost = (
        lost.sort("best_iou", nulls_last=False, maintain_order=True)
        .with_columns(
            fault=pl.when(pl.col("rank").is_null()).then(pl.lit(MISSED)).otherwise(pl.lit("loose")),
            label=pl.coalesce(label, pl.lit("object")),
            words=met,
            truth_box="box",
            first="frame",
            end=pl.col("frame") + 1,
        )
        .drop("box")
    )
    return pl.concat([_complete(lost), _complete(_list_strays(rows, opened))])


def _list_strays(objects: pl.DataFrame, opened: Opened) -> pl.DataFrame:
    """Proposals that lie on nothing that is annotated, those with the highest scores first."""
    side, truth = next(iter(opened.predicted.values()), None), opened.truth
    if side is None or truth is None:
        return pl.DataFrame(schema=ITEMS)
    place = ["video", "frame"]
    asked = objects.select(place).unique()
    video = pl.col("video").cast(pl.String)
    columns: list[Any] = ["box", video, pl.col("frame").cast(pl.Int64), *CORNERS]
    held = side.scan("boxes").collect_schema().names()
    score = pl.col("score").cast(pl.Float64) if "score" in held else pl.lit(None, pl.Float64)
    proposed = side.scan("boxes").select(*columns, score=score).collect().join(asked, on=place, how="semi")
    true = truth.scan("boxes").select(*columns).collect().join(asked, on=place, how="semi")
    proposed = proposed.sort("score", descending=True, nulls_last=True, maintain_order=True)
    proposed = proposed.with_row_index("row")
    return proposed.filter(pl.Series(~is_near(proposed, true, _HALF))).with_columns(
        fault=pl.lit("on nothing annotated"), label=pl.lit("proposal"), first="frame", end=pl.col("frame") + 1
    )


def is_near(boxes: pl.DataFrame, others: pl.DataFrame, overlap: float) -> Bools:
    """(n,) whether a box has one of the others in its frame that it overlaps by so much at least.

    Args:
        boxes: `video`, `frame` and corners.
        others: the same.
        overlap: smallest intersection over union.
    """
    place = ["video", "frame"]
    near = np.zeros(len(boxes), dtype=np.bool_)
    rows = boxes.with_row_index("at").select("at", *place)
    cells = (
        rows.group_by(place)
        .agg("at")
        .join(others.with_row_index("of").group_by(place).agg("of"), on=place, how="inner")
    )
    one, two = _corners(boxes), _corners(others)
    for at, of in cells.select("at", "of").iter_rows():
        here = np.asarray(at)
        near[here] = (iou(one[here], two[np.asarray(of)]) >= overlap).any(axis=1)
    return near


def _corners(boxes: pl.DataFrame) -> Floats:
    found: Floats = np.ascontiguousarray(boxes.select(CORNERS).to_numpy(), dtype=np.float64).reshape(-1, 4)
    return found


_LISTS = {
    "actions": _list_actions,
    "relations": _list_relations,
    "grounding": _list_sentences,
    "sound": _list_sounds,
    "corner_cases": _list_corners,
}


def find_owners(source: TableSource, boxes: Sequence[int]) -> dict[int, tuple[str, int, int | None]]:
    """Box to its video, its frame and the tube that it belongs to."""
    held = source.scan("boxes").collect_schema().names()
    tube = pl.col("tube").cast(pl.Int64) if "tube" in held else pl.lit(None, pl.Int64)
    asked = pl.Series("box", boxes, dtype=pl.Int64)
    place = [pl.col("video").cast(pl.String), pl.col("frame").cast(pl.Int64)]
    rows = source.scan("boxes").select(pl.col("box").cast(pl.Int64), *place, tube=tube)
    found = rows.filter(pl.col("box").is_in(asked.implode())).collect()
    return {box: (video, frame, owner) for box, video, frame, owner in found.iter_rows()}
