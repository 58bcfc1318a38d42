"""Predictions of where and when sentences happen, in TubeDETR's form and that of HC-STVG's evaluation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.datasets.issues import (
    NOTHING_PREDICTED,
    Findings,
    build_all_rejected_error,
    find_common_reason,
)
from roadaware.errors import InputError
from roadaware.formats.known_scenes import refuse_findings
from roadaware.io.json import (
    decode,
    describe_type,
    ensure_object,
    escape_surrogates,
    format_value,
    parse,
    parse_corners,
    pause_garbage_collection,
)
from roadaware.io.sources import read_file, to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

# Which sentence of the scenes a prediction means, by any of the names that published files use.

_SHOWN = 5
UNKNOWN = "a sentence that the truth does not have"


class Sentences:
    """The sentences of some scenes by their names, running numbers and videos.

    Args:
        scenes: with queries.

    Raises:
        InputError: if there is no query.
    """

    def __init__(self, scenes: Scenes) -> None:
        table = scenes.queries.with_columns(pl.col("video").cast(pl.String))
        if table.is_empty():
            raise InputError(
                f"{scenes.meta.dataset or 'the truth'} has no sentences: there is nothing to predict",
                hint="check which file was given as truth",
            )
        self.query = table["query"].to_list()
        self.videos = table["video"].to_list()
        self.names = _texts(table, "name")
        self.kinds = _texts(table, "sentence_kind")
        numbers = [None if n is None else str(n) for n in _column(table, "number")]
        stems = [None if name is None else name.removesuffix(".mp4") for name in self.names]
        self._tables = [_places(each) for each in (self.names, stems, numbers, self.videos)]

    def find(self, name: str) -> int | str:
        """The place of the sentence that is called so, or why there is none.

        The first of these decides: native names, the same without their ending, running numbers in the
        file, videos.
        """
        for asked in dict.fromkeys((name, name.removesuffix(".mp4"))):
            for table in self._tables:
                places = table.get(asked, [])
                if len(places) == 1:
                    return places[0]
                if places:
                    return f"{len(places)} sentences of the truth are called so: take one split or file"
        return UNKNOWN

    def nothing(self, predicted: Iterable[str], where: str) -> InputError:
        """The error for predictions of which none is on a sentence of the ground truth: which names differ."""
        asked = list(dict.fromkeys(predicted))[:_SHOWN]
        has = [name for name in self.names if name is not None][:_SHOWN] or self.videos[:_SHOWN]
        return InputError(
            f"not one prediction is on a sentence of the truth: the file names {asked}, the truth {has}",
            where=where,
            hint="take the truth that the predictions were made on, in the form whose names they use",
        )


def _places(names: list[str | None]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if name is not None:
            found.setdefault(name, []).append(place)
    return found


def _column(table: pl.DataFrame, name: str) -> list[int | None]:
    return table[name].to_list() if name in table.columns else [None] * len(table)


def _texts(table: pl.DataFrame, name: str) -> list[str | None]:
    return table[name].cast(pl.String).to_list() if name in table.columns else [None] * len(table)


Form = Literal["tubedetr", "hcstvg"]
MOST_BYTES = 1 << 30
_FAR = 1 << 53
_FRAME = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_BOXES, _SPANS = "predictions", "video_predictions"
_HINT = (
    f'expected {{"{_BOXES}": {{"ID_FRAME": {{"boxes": [[x1, y1, x2, y2]]}}}}, "{_SPANS}": {{"ID": {{"sted": '
    '[start, end]}}}, or {"VIDEO": {"st_frame", "ed_frame", "bbox": {"FRAME": [x1, y1, x2, y2]}}}'
)


@dataclass
class _Prediction:
    """The prediction for one sentence: a half-open span and boxes, both in frames from 0."""

    span: tuple[int, int] | None = None
    frames: list[int] = field(default_factory=list)
    boxes: list[Any] = field(default_factory=list)


@dataclass
class _Predictions:
    """All predictions of a file by the place of their sentence.

    Args:
        file: its name.
        sentences: of the ground truth.
        findings: takes what is refused.
        shift: number of the first frame in the file.
    """

    file: str
    sentences: Sentences
    findings: Findings
    shift: int = 0
    held: dict[int, _Prediction] = field(default_factory=dict)
    places: dict[str, int | str] = field(default_factory=dict)

    def prediction(self, name: str) -> _Prediction | None:
        """The prediction on the sentence of that name; None if there is none, which is counted once."""
        place = self.places.get(name)
        if place is None:
            place = self.sentences.find(name)
            if isinstance(place, int) and place in self.held:
                place = "a second reading of this sentence; the first is kept"
            if isinstance(place, int):
                self.held[place] = _Prediction()
            else:
                self.findings.reject("queries", self.file, name, place)
            self.places[name] = place
        return self.held[place] if isinstance(place, int) else None

    def span(self, prediction: _Prediction, name: str, start: Any, end: Any, *, inclusive: bool) -> None:
        """Take a predicted span; one that ends before it starts lasts no frame, as to published evaluators."""
        first, last = _whole(start), _whole(end)
        if first is None or last is None:
            text = f"the span {format_value(start)}..{format_value(end)} is no pair of whole frame numbers"
            text += ", are these seconds?" if isinstance(start, float) or isinstance(end, float) else ""
            self.refuse(name, text)
            return
        # Half open from here on; published files differ in whether they count the last frame.
        last += inclusive
        if last < first:
            self.findings.warn("predicted spans that end before they start, taken as empty", name)
            last = first
        prediction.span = first - self.shift, last - self.shift

    def refuse(self, name: str, reason: str) -> None:
        """Leave out what is predicted of a sentence, and say why."""
        self.findings.reject("queries", self.file, name, reason)
        place, self.places[name] = self.places[name], reason
        if isinstance(place, int):
            del self.held[place]

    def box(self, prediction: _Prediction, name: str, frame: str, box: Any) -> None:
        """Take a predicted box."""
        number = int(frame) - self.shift if _FRAME.fullmatch(frame) else -1
        if number < 0:
            text = f"a box of frame '{to_printable(frame, 40)}', which is no frame from {self.shift} on"
            self.findings.reject("boxes", self.file, name, text)
            return
        prediction.frames.append(number)
        prediction.boxes.append(box)


def read_grounding_predictions(path: Path, scenes: Scenes, *, strict: bool = False) -> Predictions:
    """Predicted spans and boxes as Predictions: `queries` with the numbers of the ground truth, tubes and boxes.

    In TubeDETR's form (also inside the log it writes) frames count from 0, whatever the ground truth's files count
    from, and ends are left out. In that of HC-STVG's evaluation they count as the ground truth's files do
    (`meta.notes["first_frame"]`), and ends are included. Boxes may lie outside the predicted span. Predictions on
    sentences that the ground truth lacks are in `rejected`, as are spans that are no whole numbers; a sentence
    without a prediction has no row.

    Args:
        path: a JSON file in one of the two forms, seen from its content.
        scenes: the ground truth.
        strict: anything rejected is an error.

    Raises:
        InputError: if the file is damaged or in neither form, the ground truth has no sentence, no prediction is on one
            of its sentences, or every prediction is refused; a file without any prediction is none of these.
        FindingsError: under `strict`, if anything was rejected.

    Source: TubeDETR, `hcstvg_eval` and `vidstg_eval`; HC-STVG, `eval_hcvg`.
    """
    path = Path(path)
    where = to_printable(str(path))
    with pause_garbage_collection():
        top = ensure_object(parse(decode(read_file(path, where, MOST_BYTES), where), where), where, "the top")
        predicted = _Predictions(path.name, Sentences(scenes), Findings())
        inner = [
            each for each in top.values() if isinstance(each, dict) and isinstance(each.get(_SPANS), dict)
        ]
        results = next((each for each in (top, *inner) if _SPANS in each or _BOXES in each), None)
        form: Form = "hcstvg" if results is None else "tubedetr"
        if results is not None:
            # Spans by sentence, and boxes by sentence and frame; the last `_` of a key parts the two
            spans = ensure_object(results.get(_SPANS, {}), where, f"'{_SPANS}'")
            boxes = ensure_object(results.get(_BOXES, {}), where, f"'{_BOXES}'")
            for key, each in spans.items():
                name = escape_surrogates(key)
                prediction = predicted.prediction(name)
                if prediction is None:
                    continue
                sted = each.get("sted", ()) if isinstance(each, dict) else None
                if sted is None or (sted != () and not (isinstance(sted, list) and len(sted) == 2)):
                    predicted.refuse(
                        name,
                        f"'sted' should be a pair of frames in an object; found {format_value(sted or each)}",
                    )
                    continue
                if sted:
                    predicted.span(prediction, name, *sted, inclusive=False)
                _compare_kind(each.get("qtype"), name, predicted)
            lost: dict[str, int] = {}
            for key, each in boxes.items():
                # The last underscore: names of videos may have some.
                name, _, frame = escape_surrogates(key).rpartition("_")
                prediction = predicted.prediction(name)
                if prediction is None:
                    lost[name] = lost.get(name, 0) + 1
                    continue
                listed = each.get("boxes") if isinstance(each, dict) else None
                if not isinstance(listed, list) or not listed:
                    held = describe_type(listed) if isinstance(each, dict) else f"in {describe_type(each)}"
                    held = "empty" if listed == [] else held
                    text = f"'boxes' should be a list with a box and is {held}"
                    predicted.findings.reject("boxes", predicted.file, f"{name}, frame {frame}", text)
                    continue
                many = isinstance(listed[0], list)
                if many and len(listed) > 1:
                    predicted.findings.warn(
                        "frames with several boxes, of which the first counts", escape_surrogates(key)
                    )
                predicted.box(prediction, name, frame, listed[0] if many else listed)
            for name, count in lost.items():
                predicted.findings.warn("boxes of sentences that are not taken, left out", name, count)
        else:
            predicted.shift = _first_frame(scenes)
            _read_official(top, where, predicted)
        if not predicted.held and predicted.places:
            raise _not_one(predicted, where)
        predicted.findings.warn(NOTHING_PREDICTED, path.name, int(not predicted.held))
        predictions = _predictions(predicted, scenes, form)
    if strict:
        refuse_findings(where, predictions)
    return predictions


def _not_one(predictions: _Predictions, where: str) -> InputError:
    """Why not one prediction can be taken: their names differ from the ground truth's, or what most were refused for."""
    reason, _ = find_common_reason(predictions.findings.table()["reason"])
    if reason == UNKNOWN:
        return predictions.sentences.nothing(predictions.places, where)
    hint = _HINT
    if reason.startswith("the span"):
        hint = (
            "spans are numbers of frames: multiply seconds by the frames per second of the video, and round"
        )
    return build_all_rejected_error(predictions.findings, where, "predictions", hint)


def _first_frame(scenes: Scenes) -> int:
    first = scenes.meta.notes.get("first_frame", 0)
    return first if first in (0, 1) else 0


def _read_official(top: Mapping[str, Any], where: str, predictions: _Predictions) -> None:
    """Span and boxes by video."""
    if top and not any(isinstance(each, dict) and "bbox" in each for each in top.values()):
        raise InputError("holds predictions in neither of the known forms", where=where, hint=_HINT)
    for key, each in top.items():
        name = escape_surrogates(key)
        prediction = predictions.prediction(name)
        if prediction is None:
            continue
        boxes = each.get("bbox") if isinstance(each, dict) else None
        if not isinstance(boxes, dict):
            held = describe_type(boxes) if isinstance(each, dict) else f"in {describe_type(each)}"
            text = f"'bbox' should be an object, boxes by frame, and is {held}"
            predictions.refuse(name, text)
            continue
        predictions.span(prediction, name, each.get("st_frame"), each.get("ed_frame"), inclusive=True)
        for frame, box in boxes.items():
            predictions.box(prediction, name, frame, box)


def _compare_kind(kind: Any, name: str, predictions: _Predictions) -> None:
    """Count predictions that call a sentence of another kind than the ground truth does."""
    place = predictions.places[name]
    known = predictions.sentences.kinds[place] if isinstance(place, int) else None
    if isinstance(kind, str) and known is not None and kind not in (known, "none"):
        predictions.findings.warn(
            "predictions whose kind of sentence is not that of the truth, which counts", name
        )


def _predictions(predictions: _Predictions, scenes: Scenes, form: Form) -> Predictions:
    """The tables of all predictions that are on a sentence of the ground truth, in the ground truth's order."""
    sentences, findings = predictions.sentences, predictions.findings
    listed = sorted(predictions.held.items())
    counts = [len(prediction.frames) for _, prediction in listed]
    tube = np.repeat(np.arange(len(listed)), np.array(counts, dtype=np.int64))
    frame = np.array([number for _, prediction in listed for number in prediction.frames], dtype=np.int64)
    corners, bad = parse_corners([box for _, prediction in listed for box in prediction.boxes], sized=False)
    for place, reason in bad.items():
        name = sentences.names[listed[tube[place]][0]]
        findings.reject(
            "boxes", predictions.file, f"{name}, frame {frame[place] + predictions.shift}", reason
        )
    order = np.lexsort((frame, tube))
    order = order[~np.isin(order, list(bad))] if bad else order
    tube, frame, corners = tube[order], frame[order], corners[order]
    videos = pl.Series("video", [sentences.videos[place] for place, _ in listed], dtype=pl.String)
    names = pl.Series("name", [sentences.names[place] for place, _ in listed], dtype=pl.String)
    numbers = pl.Series("tube", range(len(listed)), dtype=pl.Int64)
    spans = [prediction.span or (None, None) for _, prediction in listed]
    findings.warn("sentences without a prediction", "", len(sentences.query) - len(listed))
    unspanned = [sentences.names[place] or "" for place, prediction in listed if prediction.span is None]
    findings.warn("sentences with predicted boxes and no span", (*unspanned, "")[0], len(unspanned))
    tables = {
        "queries": pl.DataFrame(
            {
                "query": pl.Series([sentences.query[place] for place, _ in listed], dtype=pl.Int64),
                "video": videos,
                "name": names,
                "tube": numbers,
                "start_frame": pl.Series([start for start, _ in spans], dtype=pl.Int64),
                "end_frame": pl.Series([end for _, end in spans], dtype=pl.Int64),
            }
        ),
        "tubes": pl.DataFrame({"tube": numbers, "video": videos, "name": names}),
        "boxes": pl.DataFrame(
            {
                "box": np.arange(len(order)),
                "video": videos.gather(tube),
                "frame": frame,
                "tube": tube,
                **{name: np.ascontiguousarray(corners[:, at]) for at, name in enumerate(CORNERS)},
            }
        ),
    }
    for name, table in tables.items():
        findings.read[name] += len(table)
    meta = Meta(
        dataset=scenes.meta.dataset,
        vocabularies=scenes.meta.vocabularies,
        rows_read=dict(sorted(findings.read.items())),
        notes={**findings.notes(), "form": form, "first_frame": predictions.shift},
    )
    return Predictions(**tables, rejected=findings.table(), meta=meta)


def _whole(value: Any) -> int | None:
    """A whole number that may be written as a float."""
    if type(value) in (int, float) and abs(value) < _FAR and value == int(value):
        return int(value)
    return None
