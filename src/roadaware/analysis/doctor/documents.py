"""Mistakes that a whole file of relations, sentences or maps of sounds makes, and the file without them.

Each look gives alternatives, of which the one that scores best is taken where it scores no less than the file did before;
names first, then what hides boxes, then boxes, then whose they are.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.analysis.doctor.corrections import (
    TrueBoxes,
    collect_true_boxes,
    find_corrections,
    match_names,
    measure_auc,
)
from roadaware.analysis.doctor.diagnosis import Diagnosis
from roadaware.analysis.doctor.predictions import check_orientation, collect_sound_boxes, normalize_word
from roadaware.arrays import Floats
from roadaware.errors import InputError
from roadaware.formats.coco import read_json_document
from roadaware.formats.grounding import Sentences
from roadaware.formats.raw_predictions import RawPredictions
from roadaware.formats.sound_maps import MapError, MapFiles, write_named_maps
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_MOST = 0.9
"""What nearly all rows share is no accident."""
_FEW = 10
_CLEARLY, _TIMES = 0.05, 1.25
"""Another reading of spans or scores has to be better by so much and so many times."""
_LEAST = 0.15
_INVERTED, _PAIRS = 0.25, 20
_SHIFTS, _SHIFT_GAIN, _SHIFT_Z = range(-50, 51), 0.02, 4.0
"""Spans are moved by so many frames where that raises their mean overlap by so much, and so many standard errors: 4 since the
best of a hundred is taken."""
_SPAN_MET, _TRIM = 0.3, 0.1
"""Spans that meet the true one by so much say how far they are off; of these the outermost tenth at either end does not."""
_LOGIT = -1.5
"""Cosine similarities end at -1; what goes below is a logit."""


@dataclass(frozen=True, eq=False)
class Alternative:
    """A file with one mistake less.

    Args:
        finding: what was the matter, in words.
        content: what the file should hold.
        clearly: whether it is taken only where it scores clearly more: nothing in the file itself says that it is right.
    """

    finding: Diagnosis
    content: Any
    clearly: bool = False


Judge = Callable[[Any], float]
Look = Callable[[Any, Scenes, Judge], list[Alternative]]


@dataclass(frozen=True, eq=False)
class Form:
    """How the predictions of a task are opened, looked at and written.

    Args:
        load: the content of a file or folder.
        write: content into a file or folder of the given name.
        looks: what may be wrong, in the order in which causes hide each other.
    """

    load: Callable[[Path], Any]
    write: Callable[[Any, Path], None]
    looks: tuple[Look, ...]


def correct_content(
    form: Form, content: Any, truth: Scenes, judge: Judge, score: float
) -> tuple[list[Diagnosis], Any]:
    """The mistakes of a file in the order in which they are undone, and its content without them.

    Args:
        form: of the task.
        content: as `form.load` gave it.
        truth: what is true.
        judge: the score of a content, less than 0 where it cannot be judged.
        score: of the content as it is.
    """
    found: list[Diagnosis] = []
    for look in form.looks:
        rated = [(judge(each.content), each) for each in look(content, truth, judge)]
        rated = [
            (value, each)
            for value, each in rated
            if value >= score and not (each.clearly and value < max(score + _CLEARLY, _TIMES * score))
        ]
        if rated:
            score, best = max(rated, key=lambda pair: pair[0])
            found.append(best.finding)
            content = best.content
    return found, content


def _write_json(content: Any, path: Path) -> None:
    write_atomically(path, json.dumps(content).encode())


def _judge_rows(
    raw: RawPredictions, truth: TrueBoxes, build: Callable[[RawPredictions], Any], judge: Judge, content: Any
) -> list[Alternative]:
    """What corners and frames of the boxes in a file should be, as one alternative for each mistake, all undone."""
    scores = [judge(content)]

    def accept(rows: RawPredictions) -> bool:
        value = judge(build(rows))
        if value < scores[-1]:
            return False
        scores.append(value)
        return True

    corrections, corrected = find_corrections(raw, truth, accept, boxes_alone=True)
    if not corrections:
        return []
    first = corrections[0].finding
    if len(corrections) > 1:
        second = corrections[1].finding
        first = Diagnosis(
            first.code, first.severity, f"{first.says} {second.says}", first.evidence, f"{first.remedy} {second.remedy}"
        )  # fmt: skip
    return [Alternative(first, build(corrected))]


def _collect_sizes(truth: Scenes, names: Sequence[str]) -> Floats:
    """(n, 2) width and height of the images of each row's video; the mean where one does not say."""
    columns = {"width_px", "height_px"} <= set(truth.videos.columns)
    known: dict[str, tuple[float, float]] = {}
    if columns:
        rows = truth.videos.select(pl.col("video").cast(pl.String), "width_px", "height_px").drop_nulls()
        known = {video: (float(width), float(height)) for video, width, height in rows.iter_rows()}
    mean = tuple(np.mean(list(known.values()), axis=0)) if known else (1.0, 1.0)
    return np.array([known.get(name, mean) for name in names], dtype=np.float64).reshape(-1, 2)


def _collect_rates(truth: Scenes) -> dict[str, float]:
    if "fps" not in truth.videos.columns:
        return {}
    rows = truth.videos.select(pl.col("video").cast(pl.String), "fps").drop_nulls()
    return {video: float(fps) for video, fps in rows.iter_rows()}


# Relations.


def _load_relations(path: Path) -> Any:
    content = read_json_document(path)
    if not isinstance(content, dict) or not isinstance(content.get("results", content), dict):
        raise InputError(
            'expected {"results": {video: [prediction]}}, or {video: [prediction]}',
            where=to_printable(str(path)),
        )
    return content


def _get_videos(content: Any) -> dict[str, Any]:
    """Video to its predictions: the object in the file, not a copy."""
    held: dict[str, Any] = content.get("results", content)
    return held


def _list_relations(content: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each prediction that has the parts of one, with its video."""
    for video, listed in _get_videos(content).items():
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, dict) and isinstance(each.get("triplet"), list) and len(each["triplet"]) == 3:
                yield video, each


def _rename(content: Any, names: Mapping[str, str]) -> Any:
    """The same with videos called otherwise."""
    held = {names.get(video, video): value for video, value in _get_videos(content).items()}
    return {**content, "results": held} if "results" in content else held


def _find_video_names(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    known = truth.videos["video"].cast(pl.String).to_list()
    found = match_names("Videos", list(_get_videos(content)), known)
    return [] if found is None else [Alternative(found[0], _rename(content, found[1]))]


def _find_numbers(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Words that are numbers of classes, from 0 or from 1."""
    said = [word for _, each in _list_relations(content) for word in each["triplet"]]
    numbers = [_parse_number(word) for word in said]
    if not said or sum(number is not None for number in numbers) < _MOST * len(said):
        return []
    words = truth.meta.vocabularies
    found = []
    for base in (0, 1):
        changed, right = copy.deepcopy(content), 0
        for _, each in _list_relations(changed):
            triplet = []
            for word, kind in zip(each["triplet"], ("category", "predicate", "category"), strict=True):
                number, names = _parse_number(word), words.get(kind, ())
                good = number is not None and 0 <= number - base < len(names)
                triplet.append(names[number - base] if good and number is not None else str(word))
                right += good
            each["triplet"] = triplet
        finding = Diagnosis(
            "label_numbers",
            "wrong",
            f"Words of triplets are numbers of classes, from {base} on.",
            f"{right:,} of {len(said):,} are places in the ground truth's lists, such as {said[0]!r}",
            "Write the names of categories and predicates.",
        )
        found.append(Alternative(finding, changed))
    return found


def _parse_number(word: Any) -> int | None:
    if isinstance(word, str) and word.isascii() and word.isdigit() and len(word) < 9:
        return int(word)
    return word if type(word) is int else None


def _find_words(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Words that are spelled otherwise: in capitals, with other marks between their parts."""
    meant: dict[str, dict[str, str]] = {}
    for kind in ("category", "predicate"):
        spelled: dict[str, list[str]] = {}
        for word in truth.meta.vocabularies.get(kind, ()):
            spelled.setdefault(normalize_word(word), []).append(word)
        meant[kind] = {plain: words[0] for plain, words in spelled.items() if len(words) == 1}
    changed, pairs, count = copy.deepcopy(content), {}, 0
    for _, each in _list_relations(changed):
        triplet = list(each["triplet"])
        for n, kind in enumerate(("category", "predicate", "category")):
            word = triplet[n]
            if isinstance(word, str) and word not in truth.meta.vocabularies.get(kind, ()):
                known = meant[kind].get(normalize_word(word))
                if known is not None:
                    triplet[n], pairs[word] = known, known
        count += triplet != each["triplet"]
        each["triplet"] = triplet
    if not pairs:
        return []
    listed = ", ".join(f"{word!r} is {known!r}" for word, known in list(pairs.items())[:4])
    finding = Diagnosis(
        "words",
        "wrong",
        "Words are spelled otherwise than in the ground truth.",
        f"{count:,} predictions: {listed}",
        "Write the ground truth's words, to the letter.",
    )
    return [Alternative(finding, changed)]


def _find_durations(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Durations in seconds, or with their last frame, told from the number of boxes that they come with."""
    rates, rows = _collect_rates(truth), []
    for video, each in _list_relations(content):
        span, boxes = _parse_span(each.get("duration"), 0.0), each.get("sub_traj")
        if isinstance(boxes, list) and not np.isnan(span).any():
            rows.append((*span, len(boxes), rates.get(video, float("nan"))))
    if len(rows) < _FEW:
        return []
    begin, end, count, rate = np.array(rows, dtype=np.float64).T
    if np.mean(end - begin == count) >= 1 - _MOST:
        return []
    fits = {
        "ends": end - begin + 1 == count,
        # Seconds are rounded: one box more or less.
        "seconds": np.abs((end - begin) * rate - count) <= 1 + 0.05 * count,
    }
    for name, right in fits.items():
        if np.mean(right) < _MOST:
            continue
        changed = copy.deepcopy(content)
        for video, each in _list_relations(changed):
            boxes = each.get("sub_traj")
            if not isinstance(each.get("duration"), list) or not isinstance(boxes, list):
                continue
            low = each["duration"][0]
            if name == "seconds":
                low = round(low * rates.get(video, 1.0))
            each["duration"] = [int(low), int(low) + len(boxes)]
        says, remedy = {
            "ends": ("Durations end with their last frame.", "Write the frame after the last as the end."),
            "seconds": ("Durations are seconds.", "Multiply them by the frame rate of the video, and round."),
        }[name]
        written = np.mean(end - begin == count)
        evidence = (
            f"{np.mean(right):.0%} of {len(rows):,} have a box for each frame then, {written:.0%} as written"
        )
        return [Alternative(Diagnosis("durations", "wrong", says, evidence, remedy), changed)]
    return []


def _find_relation_boxes(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Corners in another form or unit, and frames that are late or early."""
    video: list[str] = []
    frame: list[int] = []
    score: list[float] = []
    pieces: list[tuple[int, str, Floats]] = []
    listed = list(_list_relations(content))
    for n, (name, each) in enumerate(listed):
        span = each.get("duration")
        if not isinstance(span, list) or len(span) != 2 or not all(type(end) in (int, float) for end in span):
            continue
        for side in ("sub_traj", "obj_traj"):
            boxes = _parse_boxes(each.get(side))
            if boxes is not None:
                number: Any = each.get("score")
                video += [name] * len(boxes)
                frame += range(int(span[0]), int(span[0]) + len(boxes))
                score += [float(number) if type(number) in (int, float) else 0.0] * len(boxes)
                pieces.append((n, side, boxes))
    if not pieces:
        return []
    size = _collect_sizes(truth, video)

    def build(rows: RawPredictions) -> Any:
        changed = copy.deepcopy(content)
        copies = list(_list_relations(changed))
        at = 0
        for n, side, boxes in pieces:
            begin, end = listed[n][1]["duration"]
            moved = int(rows.change("frames", np.array([int(begin)]))[0])
            copies[n][1][side] = rows.corners[at : at + len(boxes)].tolist()
            copies[n][1]["duration"] = [moved, moved + int(end) - int(begin)]
            at += len(boxes)
        return changed

    raw = RawPredictions(
        pl.Series(video, dtype=pl.String),
        np.array(frame, dtype=np.int64),
        np.concatenate([boxes for _, _, boxes in pieces]),
        np.array(score)[:, None],
        None,
        np.ones_like(size),
        size,
        lambda rows, path: None,
    )
    return _judge_rows(raw, collect_true_boxes(truth), build, judge, content)


def _parse_boxes(given: Any) -> Floats | None:
    """(n, 4) numbers, or None where they are none."""
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return (
        found if found.ndim == 2 and found.shape[1] == 4 and len(found) and np.isfinite(found).all() else None
    )


def _find_direction(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Subject and object exchanged: in the words, in the boxes, or in both."""
    true = _collect_triplets(truth)
    said = [(video, *each["triplet"]) for video, each in _list_relations(content)]
    if len(said) < _FEW or not all(isinstance(word, str) for row in said for word in row):
        return []
    kept = sum(row in true for row in said)
    turned = sum((video, other, word, one) in true for video, one, word, other in said)
    words = ((True, True, ""), (True, False, " in the triplets")) if turned >= max(kept, 1) else ()
    # Right words on exchanged boxes meet no relation at all, which a look at the words cannot tell.
    boxes = ((False, True, " in the trajectories"),) if turned < kept and judge(content) < _CLEARLY else ()
    found = []
    for in_words, in_boxes, what in (*words, *boxes):
        changed = copy.deepcopy(content)
        for _, each in _list_relations(changed):
            if in_words:
                each["triplet"] = each["triplet"][::-1]
            if in_boxes and "sub_traj" in each and "obj_traj" in each:
                each["sub_traj"], each["obj_traj"] = each["obj_traj"], each["sub_traj"]
        finding = Diagnosis(
            "exchanged",
            "wrong",
            f"Subject and object are exchanged{what}.",
            f"{kept:,} of {len(said):,} predicted triplets exist as written, {turned:,} if exchanged",
            "Write [subject, predicate, object], and sub_traj of the subject.",
        )
        found.append(Alternative(finding, changed, clearly=True))
    return found


def _collect_triplets(truth: Scenes) -> set[tuple[str | None, ...]]:
    """Video, category, predicate and category of each true relation."""
    named = dict(enumerate(truth.meta.vocabularies.get("category", ())))
    kinds = truth.tube_labels.filter(pl.col("kind").cast(pl.String) == "category")
    category = {tube: named.get(label) for tube, label in kinds.select("tube", "label").iter_rows()}
    predicates = dict(enumerate(truth.meta.vocabularies.get("predicate", ())))
    rows = truth.relations.select(pl.col("video").cast(pl.String), "subject", "predicate", "object")
    return {
        (video, category.get(one), predicates.get(word), category.get(other))
        for video, one, word, other in rows.iter_rows()
    }


def _find_inverted_relations(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Scores that are low where triplets are those of the video."""
    true = _collect_triplets(truth)
    rows = [
        (float(each["score"]), (video, *each["triplet"]) in true)
        for video, each in _list_relations(content)
        if type(each.get("score")) in (int, float) and all(isinstance(word, str) for word in each["triplet"])
    ]
    score, right = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], dtype=np.bool_)
    area = measure_auc(score, right)
    if area is None or area > _INVERTED:
        return []
    changed = copy.deepcopy(content)
    most, least = float(score.max()), float(score.min())
    for _, each in _list_relations(changed):
        if type(each.get("score")) in (int, float):
            each["score"] = most + least - each["score"]
    finding = Diagnosis(
        "inverted",
        "wrong",
        "Scores are low where triplets are right: costs or distances, not probabilities.",
        f"a triplet of the video has a higher score than another one in {area:.0%} of pairs",
        "Turn the scores round.",
    )
    return [Alternative(finding, changed)]


# Sentences.


@dataclass(frozen=True, eq=False)
class _Grounded:
    """What a file says of sentences.

    Args:
        names: of each.
        spans: (n, 2) half open, as the file counts frames; NaN where there is none.
        rows: (m,) which sentence each box is of.
        frames: (m,) as the file counts them.
        boxes: (m, 4).
        top: the content of the file.
        official: whether it is in the form of HC-STVG's evaluation, with frames from `first` and ends included.
        first: the number of the first frame.
    """

    names: list[str]
    spans: Floats
    rows: Any
    frames: Any
    boxes: Floats
    top: Any
    official: bool
    first: int


_BOXES, _SPANS = "predictions", "video_predictions"


def _load_grounding(path: Path) -> Any:
    content = read_json_document(path)
    if not isinstance(content, dict):
        raise InputError(
            "expected an object with what is predicted of each sentence", where=to_printable(str(path))
        )
    return content


def _find_results(top: Any) -> Any:
    """The object with TubeDETR's predictions: the top, or the member of its log that has them; None of the other form."""
    inner = [each for each in top.values() if isinstance(each, dict) and isinstance(each.get(_SPANS), dict)]
    return next((each for each in (top, *inner) if _SPANS in each or _BOXES in each), None)


def _parse_sentences(content: Any, truth: Scenes) -> _Grounded:
    """Sentences with numbers for spans and boxes; what has none is left as it is."""
    results = _find_results(content)
    first = int(truth.meta.notes.get("first_frame", 0) or 0) if results is None else 0
    spans: dict[str, tuple[float, float]] = {}
    held: list[tuple[str, int, Any]] = []
    if results is None:
        for name, each in content.items():
            if not isinstance(each, dict):
                continue
            ends: Any = (each.get("st_frame"), each.get("ed_frame"))
            spans[name] = _parse_span(ends, 1.0)
            drawn = each.get("bbox")
            held += (
                [(name, int(f), box) for f, box in drawn.items() if f.isdigit()]
                if isinstance(drawn, dict)
                else []
            )
    else:
        for name, each in (results.get(_SPANS) or {}).items():
            ends = each.get("sted") if isinstance(each, dict) else None
            spans[name] = _parse_span(ends, 0.0)
        for key, each in (results.get(_BOXES) or {}).items():
            name, _, frame = key.rpartition("_")
            box = each.get("boxes") if isinstance(each, dict) else None
            box = box[0] if isinstance(box, list) and box and isinstance(box[0], list) else box
            if frame.isdigit():
                spans.setdefault(name, (float("nan"), float("nan")))
                held.append((name, int(frame), box))
    names = list(spans)
    place = {name: n for n, name in enumerate(names)}
    good = [(place[name], frame, box) for name, frame, box in held if _parse_boxes([box]) is not None]
    return _Grounded(
        names,
        np.array([spans[name] for name in names], dtype=np.float64).reshape(-1, 2),
        np.array([row[0] for row in good], dtype=np.int64),
        np.array([row[1] for row in good], dtype=np.int64),
        np.array([row[2] for row in good], dtype=np.float64).reshape(-1, 4),
        content,
        results is None,
        first,
    )


def _parse_span(ends: Any, last: float) -> tuple[float, float]:
    good = (
        isinstance(ends, list | tuple) and len(ends) == 2 and all(type(end) in (int, float) for end in ends)
    )
    return (float(ends[0]), float(ends[1]) + last) if good else (float("nan"), float("nan"))


def _build_sentences(held: _Grounded, names: Sequence[str], spans: Floats, frames: Any, boxes: Floats) -> Any:
    """The content of the file with other names, spans, frames and boxes."""
    changed = copy.deepcopy(held.top)
    fresh = dict(zip(held.names, names, strict=True))
    whole = [None if np.isnan(span).any() else [int(n) for n in np.round(span)] for span in spans]
    ends = dict(zip(held.names, whole, strict=True))
    drawn: dict[str, dict[int, list[float]]] = {name: {} for name in held.names}
    for row, frame, box in zip(held.rows.tolist(), np.asarray(frames).tolist(), boxes.tolist(), strict=True):
        if frame >= 0:
            drawn[held.names[row]][frame] = box
    if held.official:
        for name in held.names:
            each = changed[name]
            span = ends[name]
            if span is not None:
                each["st_frame"], each["ed_frame"] = span[0], span[1] - 1
            if isinstance(each.get("bbox"), dict):
                each["bbox"] = {str(frame): box for frame, box in drawn[name].items()}
        return {fresh.get(name, name): each for name, each in changed.items()}
    results = _find_results(changed)
    for name, each in (results.get(_SPANS) or {}).items():
        span = ends.get(name)
        if isinstance(each, dict) and span is not None:
            each["sted"] = span
    if _SPANS in results:
        results[_SPANS] = {fresh.get(name, name): each for name, each in results[_SPANS].items()}
    if _BOXES in results:
        results[_BOXES] = {
            f"{fresh[name]}_{frame}": {"boxes": [box]}
            for name in held.names
            for frame, box in drawn[name].items()
        }
    return changed


def _find_sentence_names(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    held = _parse_sentences(content, truth)
    sentences = Sentences(truth)
    theirs = [name for name in sentences.names if name is not None] or sentences.videos
    found = match_names(
        "Sentences",
        held.names,
        list(dict.fromkeys(theirs)),
        lambda name: isinstance(sentences.find(name), int),
    )
    if found is None:
        return []
    names = [found[1].get(name, name) for name in held.names]
    return [Alternative(found[0], _build_sentences(held, names, held.spans, held.frames, held.boxes))]


def _find_spans(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Spans in seconds, in shares of the video, or late or early by a constant."""
    held = _parse_sentences(content, truth)
    sentences = Sentences(truth)
    if not {"start_frame", "end_frame"} <= set(truth.queries.columns):
        return []
    found = {
        n: sentences.find(name) for n, name in enumerate(held.names) if not np.isnan(held.spans[n]).any()
    }
    at = {n: place for n, place in found.items() if isinstance(place, int)}
    true = truth.queries.select("start_frame", "end_frame").cast(pl.Float64).to_numpy()
    at = {n: place for n, place in at.items() if not np.isnan(true[place]).any()}
    if len(at) < _FEW // 2:
        return []
    rows, true = list(at), true[list(at.values())]
    mine = held.spans[rows]
    # The form of HC-STVG includes ends, which says nothing of other units.
    distance = mine - np.array([0.0, float(held.official)])
    rates = _collect_rates(truth)
    videos = [sentences.videos[place] for place in at.values()]
    fps = np.array([rates.get(video, np.nan) for video in videos])[:, None]
    length = _collect_lengths(truth, videos)[:, None]
    begin = float(held.first)
    by_frames = "Multiply them by its number of frames"
    readings: dict[str, tuple[str, str, Floats]] = {
        "seconds": (
            "Spans are seconds.",
            "Multiply them by the frame rate, and round.",
            distance * fps + begin,
        ),
        "shares": ("Spans are shares of the video.", f"{by_frames}, and round.", distance * length + begin),
        "per cent": (
            "Spans are per cent of the video.",
            f"{by_frames}, divide by 100, and round.",
            distance * length / 100 + begin,
        ),
    }
    as_is = _measure_span_overlap(mine - begin, true)
    fits = {name: _measure_span_overlap(read - begin, true) for name, (_, _, read) in readings.items()}
    best = max(fits, key=lambda name: np.nan_to_num(fits[name], nan=-1.0))
    spans = held.spans.copy()
    if fits[best] >= _LEAST and fits[best] >= max(as_is + _CLEARLY, _TIMES * as_is):
        says, remedy, read = readings[best]
        evidence = f"spans meet the true ones by {as_is:.2f} as written and by {fits[best]:.2f} if read so"
        code = "span_unit"
        spans[rows] = np.round(read)
    else:
        step, error, before, after = _find_shift(mine - begin, true)
        if step == 0:
            return []
        says = f"Spans are {abs(step)} frames {'late' if step < 0 else 'early'}."
        remedy = f"Add {step:+d} to starts and ends."
        evidence = (
            f"spans meet the true ones by {before:.3f} as written and by {after:.3f} if moved; the number of frames has a "
            f"standard error of {error:.1f}"
        )
        code = "span_shift"
        spans[rows] = mine + step
    changed = _build_sentences(held, held.names, spans, held.frames, held.boxes)
    return [Alternative(Diagnosis(code, "wrong", says, evidence, remedy), changed)]


def _collect_lengths(truth: Scenes, names: Sequence[str]) -> Floats:
    """(n,) frames of each video, NaN where they are not known."""
    known: dict[str, int] = {}
    if "n_frames" in truth.videos.columns:
        known = dict(
            truth.videos.select(pl.col("video").cast(pl.String), "n_frames").drop_nulls().iter_rows()
        )
    return np.array([known.get(name, np.nan) for name in names], dtype=np.float64)


def _measure_span_overlap(mine: Floats, true: Floats) -> float:
    """Mean temporal IoU of half-open spans; NaN where a reading has no number."""
    return float(_compute_span_overlaps(mine, true).mean())


def _compute_span_overlaps(mine: Floats, true: Floats) -> Floats:
    meet = np.minimum(mine[:, 1], true[:, 1]) - np.maximum(mine[:, 0], true[:, 0])
    join = np.maximum(mine[:, 1], true[:, 1]) - np.minimum(mine[:, 0], true[:, 0])
    found: Floats = np.maximum(meet, 0) / np.maximum(join, 1e-9)
    return found


def _find_shift(mine: Floats, true: Floats) -> tuple[int, float, float, float]:
    """Frames to add to all spans, their standard error, and the mean temporal IoU without and with them.

    The shift of the highest IoU follows whichever spans happen to be off, and is wrong by a frame or two: it only says which
    spans meet, and their middles say by how much (a trimmed mean). 0 frames where nothing is clearly better.

    Args:
        mine: (n, 2) half-open spans in frames.
        true: (n, 2) those of the ground truth.
    """
    as_is = _compute_span_overlaps(mine, true)
    if len(mine) < _PAIRS:
        return 0, 0.0, float(as_is.mean()), float(as_is.mean())
    best = max(_SHIFTS, key=lambda step: (_compute_span_overlaps(mine + step, true).mean(), -abs(step)))
    off = np.sort((true - mine).mean(axis=1)[_compute_span_overlaps(mine + best, true) >= _SPAN_MET])
    off = off[int(_TRIM * len(off)) : len(off) - int(_TRIM * len(off))]
    error = float("inf")
    if len(off) >= _FEW:
        best, error = int(np.floor(off.mean() + 0.5)), float(off.std() / np.sqrt(len(off)))
    gain = _compute_span_overlaps(mine + best, true) - as_is
    if gain.mean() < max(_SHIFT_GAIN, _SHIFT_Z * gain.std() / np.sqrt(len(gain))):
        best = 0
    return best, error, float(as_is.mean()), float(as_is.mean() + gain.mean())


def _find_sentence_boxes(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Corners in another form or unit, and frames of boxes that are late or early."""
    held = _parse_sentences(content, truth)
    sentences = Sentences(truth)
    if not len(held.boxes) or "tube" not in truth.queries.columns or "tube" not in truth.boxes.columns:
        return []
    places = [sentences.find(name) for name in held.names]
    key = [str(place) if isinstance(place, int) else "" for place in places]
    owners = pl.DataFrame({"key": [str(n) for n in range(len(truth.queries))], "tube": truth.queries["tube"]})
    boxes = truth.boxes.select("tube", "frame", *(pl.col(c).cast(pl.Float64) for c in CORNERS)).join(
        owners.drop_nulls(), on="tube"
    )
    video = [sentences.videos[place] if isinstance(place, int) else "" for place in places]
    size = _collect_sizes(truth, [video[row] for row in held.rows])
    rates = sorted(set(_collect_rates(truth).values()))[:3]
    true = TrueBoxes(
        boxes.select("frame", *CORNERS, video="key").select("video", "frame", *CORNERS),
        boxes["key"].rank("dense").to_numpy().astype(np.int64),
        fps=tuple(rates),
    )
    raw = RawPredictions(
        pl.Series([key[row] for row in held.rows], dtype=pl.String),
        held.frames - held.first,
        held.boxes,
        np.ones((len(held.boxes), 1)),
        None,
        np.ones_like(size),
        size,
        lambda rows, path: None,
    )

    def build(rows: RawPredictions) -> Any:
        return _build_sentences(held, held.names, held.spans, rows.frame + held.first, rows.corners)

    return _judge_rows(raw, true, build, judge, content)


# Sounds.


def _load_maps(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    with MapFiles(path) as files:
        for name in files.names:
            try:
                found[name] = files.read(name)
            except MapError as error:
                raise InputError(f"the map {to_printable(name)}: {error}", where=files.where) from error
    return found


def _find_sound_names(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    name = pl.col("name") if "name" in truth.sounds.columns else pl.col("video")
    theirs = truth.sounds.select(name.cast(pl.String))["name" if "name" in truth.sounds.columns else "video"]
    found = match_names("Sounds", list(content), theirs.drop_nulls().unique(maintain_order=True).to_list())
    if found is None:
        return []
    return [Alternative(found[0], {found[1].get(key, key): values for key, values in content.items()})]


def _find_orientation(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Maps that lie on their side, upside down or mirrored, or are low where the sound comes from."""
    boxes = collect_sound_boxes(truth)
    column = "name" if "name" in truth.sounds.columns else "video"
    numbers = dict(truth.sounds.select(pl.col(column).cast(pl.String), "sound").iter_rows())
    pairs = []
    for name, values in list(content.items())[:500]:
        number = numbers.get(name)
        array = np.asarray(values, dtype=np.float64)
        if number in boxes and np.isfinite(array).all() and np.ptp(array) > 0:
            pairs.append((array, boxes[number]))
    found = check_orientation(pairs)
    if found is None:
        return []
    finding, turn = found
    return [
        Alternative(finding, {name: turn(np.asarray(each, np.float64)) for name, each in content.items()})
    ]


def _find_map_scale(content: Any, truth: Scenes, judge: Judge) -> list[Alternative]:
    """Maps of logits."""
    from scipy.special import expit

    if not content or min(float(np.nanmin(each)) for each in content.values()) >= _LOGIT:
        return []
    low, high = (f([float(f(each)) for each in content.values()]) for f in (np.nanmin, np.nanmax))
    finding = Diagnosis(
        "logits",
        "wrong",
        "Maps are logits, not probabilities.",
        f"they run from {low:.4g} to {high:.4g}",
        "Write the sigmoid of each cell.",
    )
    changed = {name: expit(np.asarray(each, np.float64)) for name, each in content.items()}
    return [Alternative(finding, changed, clearly=True)]


FORMS: dict[str, Form] = {
    "relations": Form(
        _load_relations,
        _write_json,
        (
            _find_video_names,
            _find_numbers,
            _find_words,
            _find_durations,
            _find_relation_boxes,
            _find_direction,
            _find_inverted_relations,
        ),
    ),
    "grounding": Form(
        _load_grounding, _write_json, (_find_sentence_names, _find_spans, _find_sentence_boxes)
    ),
    "sound": Form(
        _load_maps,
        lambda content, path: write_named_maps(content.items(), path),
        (_find_sound_names, _find_orientation, _find_map_scale),
    ),
}
"""The tasks whose files are corrected so, by name."""
