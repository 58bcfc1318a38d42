"""Predictions of relations in videos, the form of VidVRD's results, read and written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.datasets.issues import NOTHING_PREDICTED, Findings, build_all_rejected_error
from roadaware.datasets.relation_tables import (
    CATEGORY,
    PREDICATE,
    Packed,
    Tracks,
    build_relation_tables,
    collect_relation_vocabularies,
    format_video_name,
    merge_overlapping_tracks,
    pack,
    parse_relation,
)
from roadaware.errors import InputError, UsageError
from roadaware.formats.known_scenes import refuse_findings
from roadaware.io.files import write_atomically
from roadaware.io.json import decode, describe_type, format_value, iterate_members, pause_garbage_collection
from roadaware.io.sources import read_file, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

MOST_BYTES = 2 << 30
_TOP = "results"
# Both forms are in use, and only a look at the text tells them apart before it is read piece by piece.
_WRAPPED = re.compile(rf'"{_TOP}"\s*:\s*\{{')
_HINT = 'expected {"results": {video: [{"triplet", "score", "duration", "sub_traj", "obj_traj"}, ...]}}'
_NAMED = 5


def read_relation_predictions(path: Path, scenes: Scenes, *, strict: bool = False) -> Predictions:
    """Predicted relations as Predictions, in the order of the file, which decides between equal scores.

    Each prediction is a row of `relations` with its score; its subject and object are tubes of the Predictions
    that own the predicted boxes; trajectories of a category that have an equal box in a shared frame are pieces
    of one tube, unless that gave it two boxes in a frame.
    Trajectories have one box for each frame of the duration; a prediction that has not is in `rejected`, as is
    one with a box upside down or without a finite score. Predictions on videos that the scenes do not have are
    left out and counted. Words that the scenes do not know are added behind theirs: such predictions are wrong,
    and count as wrong.

    Scores lie in [0, 1]. If one of the file lies outside, as a logit or a product may, every score of the
    file is replaced by 0.5 + rank / (2 x number of different scores), which keeps order and ties and so
    every recall and precision; `meta.notes["scores"]` says so, and `relations.predicted_score` holds the
    file's own numbers, which `write_relation_predictions` writes again.

    Args:
        path: JSON {"results": {video: [prediction]}}, or {video: [prediction]}.
        scenes: what the predictions are about.
        strict: anything rejected is an error.

    Raises:
        InputError: if the file is damaged or has another form, no video of it is one of the scenes, or every
            prediction is refused; a file without any prediction is none of these.
        FindingsError: under `strict`, if anything was rejected.

    Source: VidVRD-helper, evaluation of visual relation detection.
    """
    path = Path(path)
    where = to_printable(str(path))
    findings = Findings()
    known = set(scenes.videos["video"].cast(pl.String).to_list())
    with pause_garbage_collection():
        clips, scores = _clips(decode(read_file(path, where, MOST_BYTES), where), where, known, findings)
    vocabularies = _extend_vocabularies(scenes.meta.vocabularies, collect_relation_vocabularies(clips))
    _strange_words(clips, scenes.meta.vocabularies, findings)
    tables = build_relation_tables(clips, vocabularies)
    held, notes = _normalize_scores(scores)
    tables["relations"] = tables["relations"].with_columns(held)
    predictions = Predictions(
        videos=_videos(scenes, clips),
        **tables,
        rejected=findings.table(),
        meta=Meta(
            dataset=scenes.meta.dataset,
            vocabularies=vocabularies,
            rows_read=dict(sorted(findings.read.items())),
            notes={**findings.notes(), **notes},
        ),
    )
    if strict:
        refuse_findings(where, predictions)
    return predictions


def write_relation_predictions(predictions: Predictions, scenes: Scenes, path: Path) -> int:
    """Write predicted relations as VidVRD's results; every video of the scenes is there, also without predictions.

    Args:
        predictions: with `relations`, their scores, and boxes in every frame of each.
        scenes: what the predictions are about; its videos come first, in its order.
        path: where to; replaced in one step.

    Returns:
        The number of predictions.

    Raises:
        UsageError: if relations have no scores, or a tube no category or not one box in each frame.
        DiskError: if the disk refuses.
    """
    relations = predictions.relations
    if len(relations) and "score" not in relations.columns:
        raise UsageError("relations without scores are no predictions; give the column `score`")
    videos = [
        *scenes.videos["video"].cast(pl.String).to_list(),
        *relations["video"].cast(pl.String).unique(maintain_order=True).to_list(),
    ]
    listed: dict[str, list[dict[str, Any]]] = {video: [] for video in videos}
    for video, prediction in _written(predictions):
        listed[video].append(prediction)
    write_atomically(Path(path), json.dumps({_TOP: listed}, allow_nan=False).encode())
    return len(relations)


def _clips(
    text: str, where: str, known: set[str], findings: Findings
) -> tuple[list[Packed], npt.NDArray[np.float64]]:
    """The predictions of each known video, and all their scores.

    Raises:
        InputError: if nothing is about a known video, or every prediction is refused.
    """
    file = Path(where).name
    found: list[Packed] = []
    scores: list[float] = []
    foreign: list[str] = []
    for name, value in _iterate_videos(text, where):
        video = format_video_name(name)
        if video not in known:
            foreign.append(video)
            count = len(value) if isinstance(value, list) else 0
            findings.warn(
                "predictions on videos that the truth does not have, left out", video, max(count, 1)
            )
        elif not isinstance(value, list):
            reason = f"should be a list of predictions and is {describe_type(value)}"
            findings.reject("relations", file, video, reason)
        else:
            found.append(_clip(video, value, file, scores, findings))
    if foreign and not found:
        here, there = (
            ", ".join(to_printable(name, 60) for name in sorted(names)[:_NAMED]) for names in (foreign, known)
        )
        message = f"not one of {len(foreign)} videos is among the {len(known)} of the truth"
        hint = f"the predictions name {here}; the truth has {there}: names must be equal to the letter"
        raise InputError(message, where=where, hint=hint)
    if not scores and findings.read["relations"]:
        raise build_all_rejected_error(findings, where, "predictions", _HINT)
    findings.warn(NOTHING_PREDICTED, file, int(not scores and not foreign))
    return found, np.array(scores, dtype=np.float64)


def _iterate_videos(text: str, where: str) -> Iterator[tuple[str, Any]]:
    """Each video with what stands there.

    Raises:
        InputError: if the file has another form.
    """
    prefix = (_TOP,) if _WRAPPED.search(text) else ()
    seen = beside = False
    for _, path, value in iterate_members(text, where, lambda path: path in ((), prefix)):
        if not path:
            raise InputError(
                f"the top should be an object and is {describe_type(value)}", where=where, hint=_HINT
            )
        if path[:-1] == prefix:
            seen = True
            yield path[-1], value
        elif isinstance(value, list):
            beside = True
    if beside and not seen:
        raise InputError("the file holds no predictions", where=where, hint=_HINT)


def _clip(video: str, listed: Sequence[Any], file: str, scores: list[float], findings: Findings) -> Packed:
    """The predictions of one video; those that cannot be taken are refused."""
    held = Tracks()
    findings.read["relations"] += len(listed)
    for number, value in enumerate(listed):
        prediction = parse_relation(value)
        if isinstance(prediction, str):
            findings.reject("relations", file, f"{video}, prediction {number}", prediction, rows=0)
            continue
        score = value.get("score")
        # Sums of scores must stay finite, too.
        if type(score) not in (int, float) or not -1e300 < score < 1e300:
            reason = f"the score should be a finite number and is {format_value(score)}"
            findings.reject("relations", file, f"{video}, prediction {number}", reason, rows=0)
            continue
        if np.array_equal(prediction.subject, prediction.object):
            findings.warn("predictions whose subject is its own object", f"{video}, prediction {number}", 1)
        scores.append(float(score))
        held.take(prediction)
    return pack(video, merge_overlapping_tracks(held))


def _strange_words(clips: Sequence[Packed], known: Mapping[str, tuple[str, ...]], findings: Findings) -> None:
    """Count the predictions with words that the ground truth does not know, where it knows some."""
    names = {kind: set(words) for kind, words in known.items()}
    for clip in clips:
        for relation in clip.relations:
            said = [
                (CATEGORY, clip.categories[relation.subject]),
                (CATEGORY, clip.categories[relation.object]),
            ]
            for kind, word in [(PREDICATE, relation.predicate), *said]:
                if names.get(kind) and word not in names[kind]:
                    findings.warn(
                        "predictions with a word that the truth does not know", f"{clip.video}: {word}", 1
                    )
                    break


def _extend_vocabularies(
    known: Mapping[str, tuple[str, ...]], said: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """The ground truth's vocabularies, with words that only predictions have behind theirs."""
    found = dict(known)
    for kind in (CATEGORY, PREDICATE):
        have = tuple(known.get(kind, ()))
        found[kind] = (*have, *(word for word in said[kind] if word not in set(have)))
    return found


def _videos(scenes: Scenes, clips: Sequence[Packed]) -> pl.DataFrame:
    """The scenes' rows of the predicted videos, in the predictions' order; their lengths would bound the boxes."""
    order = pl.DataFrame({"video": pl.Series([clip.video for clip in clips], dtype=pl.String)})
    table = scenes.videos.with_columns(pl.col("video").cast(pl.String)).drop("n_frames", strict=False)
    return order.join(table, on="video", how="left", maintain_order="left")


def _normalize_scores(scores: npt.NDArray[np.float64]) -> tuple[list[pl.Series], dict[str, str]]:
    """Scores in [0, 1], with the file's own beside them where they are not those, and what is to be said."""
    if ((scores >= 0) & (scores <= 1)).all():
        return [pl.Series("score", scores)], {}
    values, rank = np.unique(scores, return_inverse=True)
    within = 0.5 + (rank + 1) / (2 * len(values))
    said = (
        f"scores run from {scores.min():g} to {scores.max():g}: replaced by their ranks among "
        f"{len(values)} different ones, brought to (0.5, 1]; order and ties are the file's"
    )
    return [pl.Series("score", within), pl.Series("predicted_score", scores)], {"scores": said}


def _written(predictions: Predictions) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each prediction with its video, in the order of `relations`."""
    relations = predictions.relations
    own = pl.col("predicted_score") if "predicted_score" in relations.columns else pl.col("score")
    predicates = predictions.meta.vocabularies.get(PREDICATE, ())
    category = _categories(predictions)
    boxes = _trajectories(predictions)
    rows = relations.select(
        pl.col("video").cast(pl.String), "subject", "object", "predicate", "start_frame", "end_frame", own
    )
    for video, subject, target, predicate, start, end, score in rows.iter_rows():
        yield (
            video,
            {
                "triplet": [category(subject), predicates[predicate], category(target)],
                "score": score,
                "duration": [start, end],
                "sub_traj": boxes(subject, start, end),
                "obj_traj": boxes(target, start, end),
            },
        )


def _categories(predictions: Predictions) -> Callable[[int], str]:
    """A tube's category.

    Raises:
        UsageError: on a call, if it has none.
    """
    kinds = predictions.tube_labels.filter(pl.col("kind").cast(pl.String) == CATEGORY)
    label = dict(kinds.select("tube", "label").iter_rows())
    names = predictions.meta.vocabularies.get(CATEGORY, ())

    def category(tube: int) -> str:
        if tube not in label:
            raise UsageError(f"tube {tube} has no label of the kind '{CATEGORY}'")
        return names[label[tube]]

    return category


def _trajectories(predictions: Predictions) -> Callable[[int, int, int], list[list[float]]]:
    """A tube's boxes in the frames [start, end).

    Raises:
        UsageError: on a call, if they are not one in each frame.
    """
    boxes = predictions.boxes.filter(pl.col("tube").is_not_null()).sort("tube", "frame", maintain_order=True)
    tubes, frames = boxes["tube"].to_numpy(), boxes["frame"].to_numpy()
    corners = boxes.select(*CORNERS).to_numpy()

    def trajectory(tube: int, start: int, end: int) -> list[list[float]]:
        low, high = np.searchsorted(tubes, [tube, tube + 1])
        first, last = low + np.searchsorted(frames[low:high], [start, end])
        if not np.array_equal(frames[first:last], np.arange(start, end)):
            raise UsageError(f"tube {tube} has not one box in each of the frames [{start}, {end})")
        found: list[list[float]] = corners[first:last].tolist()
        return found

    return trajectory
