"""Road events: ground truth as arrays, detections as Predictions, their evaluation, and labels in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.arrays import Bools, Bytes, Floats32, Ints
from roadaware.errors import InputError, UsageError
from roadaware.linking.link import link
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.detection.evaluate import evaluate
from roadaware.models.detector import FrameDetections
from roadaware.scenes.advice import Advice, set_advice
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout, set_score_layout
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions, Scenes

if TYPE_CHECKING:
    from roadaware.linking.config import LinkerConfig


AV_ACTION = "av_action"
AGENTNESS = "agentness"
ROAD_KINDS = ("agent", "action", "location", "duplex", "event")
"""The kinds of ROAD, in the order in which the published network scores them."""

Hot = Bools | Floats32
"""Classes of boxes: which they have, or from 0 to 1 how likely."""


@dataclass(frozen=True)
class Classes:
    """The classes of a detector.

    Args:
        kinds: kind of label of boxes to its labels, in the order of the scores.
        av_labels: actions of the own vehicle; empty where there are none.
        advice: how its predictions are used, which their tables carry.
    """

    kinds: Mapping[str, tuple[str, ...]]
    av_labels: tuple[str, ...] = ()
    advice: Advice = field(default_factory=Advice)

    @property
    def n_classes(self) -> int:
        """Columns of the class scores: agentness, then all labels of all kinds."""
        return 1 + sum(len(labels) for labels in self.kinds.values())

    @property
    def names(self) -> tuple[tuple[str, str], ...]:
        """(kind, label) of each column, agentness first."""
        return ((AGENTNESS, AGENTNESS), *((k, label) for k, held in self.kinds.items() for label in held))


def collect_classes(
    scenes: Scenes, kinds: Sequence[str] = (), *, av_action: bool = True, only_used: bool = False
) -> Classes:
    """The classes that scenes have words for.

    Args:
        scenes: with vocabularies.
        kinds: of labels, in the order of the scores (default: those of ROAD that there are, or all where there are none).
        av_action: whether actions of the own vehicle are learnt, where there are any.
        only_used: leave out labels that no box has.

    Raises:
        UsageError: if a kind has no vocabulary, or none is left.
    """
    known = {k: v for k, v in scenes.meta.vocabularies.items() if k not in (AGENTNESS, AV_ACTION)}
    labelled = set(scenes.labels["kind"].cast(pl.String).unique().to_list())
    found = list(kinds) or [k for k in ROAD_KINDS if k in known] or [k for k in known if k in labelled]
    unknown = [kind for kind in found if kind not in known]
    if unknown or not found or len(set(found)) < len(found):
        raise UsageError(
            f"no labels of {', '.join(unknown) or 'any kind'}: boxes have {', '.join(known) or 'no kind'}; "
            "name each kind once"
        )
    held = {kind: known[kind] for kind in found}
    if only_used:
        held = {kind: _list_used_labels(scenes, kind) for kind in found}
    av = scenes.meta.vocabularies.get(AV_ACTION, ()) if av_action and len(scenes.frame_labels) else ()
    return Classes(held, tuple(av))


def _list_used_labels(scenes: Scenes, kind: str) -> tuple[str, ...]:
    rows = scenes.labels.filter(pl.col("kind").cast(pl.String) == kind)["label"].unique().sort()
    return tuple(scenes.meta.vocabularies[kind][label] for label in rows.to_list())


@dataclass(frozen=True, eq=False)
class VideoTruth:
    """The ground truth of the frames of one video.

    Args:
        boxes: (m, 4) x1, y1, x2, y2 in pixels of the video, by frame.
        packed: (m, ceil(c / 8)) bits of the (m, c) classes that each has, agentness first.
        n_classes: c.
        starts: (n + 1) rows of `boxes` where each frame begins.
        av: (n) action of the own vehicle in each frame, -1 where nobody said.
        labelled: (n) whether somebody annotated the frame.
        soft: (m, c) how likely each class is, in place of the bits, where a teacher says it; None elsewhere.
    """

    boxes: Floats32
    packed: Bytes
    n_classes: int
    starts: Ints
    av: Ints
    labelled: Bools
    soft: npt.NDArray[np.float16] | None = None

    def __len__(self) -> int:
        return len(self.av)

    def frame(self, frame: int) -> tuple[Floats32, Hot]:
        """(k, 4) boxes and (k, c) classes of a frame; none of one that nobody annotated.

        Args:
            frame: counts from 0; behind the last one there is nothing.
        """
        rows = slice(0, 0)
        if frame < len(self) and self.labelled[frame]:
            rows = slice(int(self.starts[frame]), int(self.starts[frame + 1]))
        return self.boxes[rows], self.hot(rows)

    def hot(self, rows: slice) -> Hot:
        """(k, c) which classes some of the boxes have, or how likely each is."""
        if self.soft is not None:
            return self.soft[rows].astype(np.float32)
        return np.unpackbits(self.packed[rows], axis=1, count=self.n_classes).astype(np.bool_)


def build_video_truth(scenes: Scenes, classes: Classes) -> dict[str, VideoTruth]:
    """Video to its ground truth, in the order of the videos; labels are found by name.

    Boxes marked `ignore` are left out. A frame counts as annotated where `frames.annotated` says so, and
    everywhere where the set does not say it of any frame.

    Raises:
        UsageError: if the scenes have no videos.
    """
    if scenes.videos.is_empty():
        raise UsageError(f"{scenes.meta.dataset or 'this set'} has no videos to learn from")
    names = scenes.videos["video"].cast(pl.String).to_list()
    boxes = scenes.boxes
    if "ignore" in boxes.columns:
        boxes = boxes.filter(~pl.col("ignore").fill_null(False))
    place = pl.Enum(names)
    boxes = boxes.with_columns(v=pl.col("video").cast(pl.String).cast(place).to_physical())
    boxes = boxes.sort("v", "frame", maintain_order=True)
    packed = _pack_classes(scenes, boxes["box"], classes)
    corners = boxes.select(CORNERS).to_numpy().astype(np.float32).reshape(-1, 4)
    video, frame = boxes["v"].to_numpy().astype(np.int64), boxes["frame"].to_numpy().astype(np.int64)
    ends = np.searchsorted(video, np.arange(len(names) + 1))
    lengths = _lengths(scenes, names)
    looked = _looked_at(scenes, names, lengths)
    av = _av(scenes, names, lengths, classes.av_labels)
    found = {}
    for v, name in enumerate(names):
        rows = slice(int(ends[v]), int(ends[v + 1]))
        starts = np.searchsorted(frame[rows], np.arange(lengths[v] + 1))
        found[name] = VideoTruth(
            corners[rows], packed[rows], classes.n_classes, starts, av[name], looked[name]
        )
    return found


def _pack_classes(scenes: Scenes, box: pl.Series, classes: Classes) -> Bytes:
    """(m, bytes) bits of the classes of boxes, of many boxes piece by piece."""
    column = {named: at for at, named in enumerate(classes.names)}
    parts = []
    for kind in classes.kinds:
        words = scenes.meta.vocabularies.get(kind, ())
        # One place at least: what has no words can be indexed then, too.
        at = np.array([column.get((kind, word), -1) for word in words] or [-1], dtype=np.int64)
        rows = scenes.labels.filter(pl.col("kind").cast(pl.String) == kind).select("box", "label")
        parts.append(rows.with_columns(c=pl.Series(at[rows["label"].to_numpy()])))
    places = pl.DataFrame({"box": box}).with_row_index("row")
    rows = pl.concat(parts).filter(pl.col("c") >= 0).join(places, on="box").sort("row")
    row, place = rows["row"].to_numpy().astype(np.int64), rows["c"].to_numpy()
    pieces = [np.zeros((0, (classes.n_classes + 7) // 8), dtype=np.uint8)]
    for start in range(0, len(box), 1 << 16):
        some = slice(*np.searchsorted(row, [start, start + (1 << 16)]))
        hot = np.zeros((min(1 << 16, len(box) - start), classes.n_classes), dtype=np.bool_)
        # Every box is something: the column of agentness.
        hot[:, 0] = True
        hot[row[some] - start, place[some]] = True
        # Bits: 149 classes of ROAD are 19 bytes a box, and there are half a million boxes.
        pieces.append(np.packbits(hot, axis=1))
    return np.concatenate(pieces)


def _lengths(scenes: Scenes, names: Sequence[str]) -> list[int]:
    """Frames of each video: as the table says, else as far as frames and boxes go."""
    known: dict[str, int | None] = {}
    if "n_frames" in scenes.videos.columns:
        known = dict(zip(names, scenes.videos["n_frames"].to_list(), strict=True))
    far: dict[str, int] = {}
    for table in (scenes.frames, scenes.boxes):
        last = table.group_by(pl.col("video").cast(pl.String)).agg(pl.col("frame").max())
        for name, frame in last.iter_rows():
            far[name] = max(far.get(name, 0), int(frame) + 1)
    return [far.get(name, 0) if (n := known.get(name)) is None else int(n) for name in names]


def _looked_at(scenes: Scenes, names: Sequence[str], lengths: Sequence[int]) -> dict[str, Bools]:
    frames = scenes.frames
    said = "annotated" in frames.columns and frames["annotated"].null_count() < len(frames)
    found = {name: np.full(n, not said) for name, n in zip(names, lengths, strict=True)}
    if said:
        kept = frames.filter(pl.col("annotated").fill_null(False))
        for (name,), rows in kept.partition_by("video", as_dict=True).items():
            found[str(name)][rows["frame"].to_numpy()] = True
    return found


def _av(
    scenes: Scenes, names: Sequence[str], lengths: Sequence[int], labels: Sequence[str]
) -> dict[str, Ints]:
    """The first action of the own vehicle in each frame, -1 where there is none."""
    found = {name: np.full(n, -1, dtype=np.int64) for name, n in zip(names, lengths, strict=True)}
    words = scenes.meta.vocabularies.get(AV_ACTION, ())
    place = np.array([labels.index(word) if word in labels else -1 for word in words] or [-1])
    rows = scenes.frame_labels.filter(pl.col("kind").cast(pl.String) == AV_ACTION)
    if labels and len(rows):
        first = rows.unique(["video", "frame"], keep="first", maintain_order=True)
        for (name,), part in first.partition_by("video", as_dict=True).items():
            found[str(name)][part["frame"].to_numpy()] = place[part["label"].to_numpy()]
    return found


def build_predictions(
    found: Mapping[str, Sequence[FrameDetections]],
    classes: Classes,
    *,
    videos: pl.DataFrame | None = None,
    meta: Meta | None = None,
    frame_step: int = 1,
) -> Predictions:
    """Build Predictions from detections: boxes with dense scores, scores of frames.

    Args:
        found: video to its detections, in the order of its frames.
        classes: of the detector.
        videos: the videos table, where it is known; of its videos those that were annotated are kept.
        meta: of the data; its composites and licence are kept where the vocabularies are the same.
        frame_step: the detector was given every so manieth frame.

    Raises:
        InputError: if scores do not fit the classes.
    """
    width, av = classes.n_classes - 1, len(classes.av_labels)
    flat = [(name, each) for name, frames in found.items() for each in frames]
    if any(each.scores.shape != (len(each), width) or each.av.shape != (av,) for _, each in flat):
        raise InputError(f"expected {width} scores of each box and {av} of each frame")
    counts = [len(each) for _, each in flat]
    names = pl.Series("video", [name for name, _ in flat], dtype=pl.String)
    frame = np.array([each.frame * frame_step for _, each in flat], dtype=np.int64)
    of = np.repeat(np.arange(len(flat)), counts)
    corners = np.concatenate([np.zeros((0, 4), np.float32), *(each.boxes for _, each in flat)])
    boxes = pl.DataFrame(
        {
            "box": np.arange(len(of)),
            "video": names.gather(of),
            "frame": frame[of],
            **{side: corners[:, k] for k, side in enumerate(CORNERS)},
            "score": _stack_parts([each.agentness[:, None] for _, each in flat], 1)[:, 0],
            "scores": _dense(_stack_parts([each.scores for _, each in flat], width)),
        }
    )
    frames: dict[str, Any] = {"video": names, "frame": frame}
    if av:
        frames["scores"] = _dense(_stack_parts([each.av[None] for _, each in flat], av))
    kept = {} if videos is None else {"videos": _filter_videos(videos, list(found))}
    return Predictions(boxes=boxes, frames=pl.DataFrame(frames), meta=_meta(meta or Meta(), classes), **kept)


def add_top_label(predictions: Predictions, kind: str) -> Predictions:
    """Predictions whose boxes have a label: the one of a kind that scores best.

    Args:
        predictions: as `build_predictions` made them.
        kind: one that the detector predicts.
    """
    layout = get_score_layout(predictions.meta, "boxes")
    scores = convert_to_matrix(predictions.boxes["scores"], layout.width)[:, layout.columns(kind)]
    labels = {"box": predictions.boxes["box"], "kind": [kind] * len(scores), "label": scores.argmax(axis=1)}
    return predictions.with_tables(labels=pl.DataFrame(labels)) if len(scores) else predictions


def _stack_parts(parts: Sequence[npt.NDArray[Any]], width: int) -> Floats32:
    return np.concatenate([np.zeros((0, width), np.float32), *parts]).astype(np.float32, copy=False)


def _dense(scores: Floats32) -> pl.Series:
    return pl.Series("scores", scores, dtype=pl.Array(pl.Float32, scores.shape[1]))


def _filter_videos(videos: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    return videos.filter(pl.col("video").cast(pl.String).is_in(list(names)))


def _meta(meta: Meta, classes: Classes) -> Meta:
    """The meta of predictions: the detector's words, and what composites are made of where it uses the data's."""
    words = {**classes.kinds, **({AV_ACTION: classes.av_labels} if classes.av_labels else {})}
    same = {kind for kind in classes.kinds if meta.vocabularies.get(kind) == classes.kinds[kind]}
    made = {k: of for k, of in meta.composites.items() if {k, *of} <= same}
    children = {k: rows for k, rows in meta.notes.get("children", {}).items() if k in made}
    bare = replace(meta, vocabularies=words, composites=made, rows_read={}, source_digest="", notes={})
    if children:
        bare = replace(bare, notes={"children": children})
    with_layout = set_score_layout(set_advice(bare, classes.advice), "boxes", list(classes.kinds))
    return set_score_layout(with_layout, "frames", [AV_ACTION]) if classes.av_labels else with_layout


def evaluate_predictions(
    predictions: Predictions,
    scenes: Scenes,
    linker: LinkerConfig,
    *,
    # The thresholds at which the ROAD paper reports frame-mAP and video-mAP.
    frame_iou: float = 0.5,
    video_iou: float = 0.2,
) -> dict[str, float]:
    """Metric to its value in [0, 1]: frame-mAP and video-mAP of each kind, AP of the own vehicle's actions.

    Only the videos that were annotated are judged. What is undefined, as the AP of a kind that the ground truth
    does not have, is not among them.

    Args:
        predictions: detections, not linked.
        scenes: ground truth.
        linker: how detections become tubes.
        frame_iou: overlap that a box needs.
        video_iou: overlap that a tube needs.
    """
    judged = scenes.only(predictions.frames["video"].cast(pl.String).unique(maintain_order=True).to_list())
    result = evaluate(
        link(predictions, linker),
        judged,
        DetectionConfig.default(),
        frame_thresholds=(frame_iou,),
        video_thresholds=(video_iou,) if len(judged.tubes) else (),
    )
    rows = result.of_group().filter(pl.col("label").is_null() & pl.col("value").is_not_null())
    named = {"frame": f"frame_map@{frame_iou:g}", "video": f"video_map@{video_iou:g}"}
    return {
        f"{named[row['level']]}/{row['kind']}" if row["level"] in named else AV_ACTION: float(row["value"])
        for row in rows.iter_rows(named=True)
    }


# ROAD's labels and ROAD-Waymo's, which are some of them (Singh et al., TPAMI 2022, tables 11 to 14). An agent is a noun,
# an action a verb in the third person, a place what stands behind the noun: any of each make a sentence.

AGENTS = {
    "Ped": "pedestrian",
    "Car": "car",
    "Cyc": "cyclist",
    "Mobike": "motorbike",
    "SmalVeh": "small vehicle",
    "MedVeh": "van",
    "LarVeh": "lorry",
    "Bus": "bus",
    "EmVeh": "emergency vehicle",
    "TL": "traffic light",
    "OthTL": "traffic light for others",
}
ACTIONS = {
    "Red": "shows red",
    "Amber": "shows amber",
    "Green": "shows green",
    "Black": "is dark",
    "MovAway": "moves away",
    "MovTow": "comes closer",
    "Mov": "moves across",
    "Rev": "reverses",
    "Brake": "brakes",
    "Stop": "stands still",
    "IncatLft": "indicates left",
    "IncatRht": "indicates right",
    "HazLit": "flashes its hazard lights",
    "TurLft": "turns left",
    "TurRht": "turns right",
    "MovRht": "moves to the right",
    "MovLft": "moves to the left",
    "Ovtak": "overtakes",
    "Wait2X": "waits to cross",
    "XingFmLft": "crosses from the left",
    "XingFmRht": "crosses from the right",
    "Xing": "crosses",
    "PushObj": "pushes an object",
}
_ON_FOOT = {
    "MovAway": "walks away",
    "MovTow": "walks closer",
    "Mov": "walks across",
    "HazLit": "flashes lights",
}
"""What is said of pedestrians instead."""
LOCATIONS = {
    "VehLane": "in our lane",
    "OutgoLane": "in the outgoing lane",
    "OutgoCycLane": "in the outgoing cycle lane",
    "OutgoBusLane": "in the outgoing bus lane",
    "IncomLane": "in the oncoming lane",
    "IncomCycLane": "in the oncoming cycle lane",
    "IncomBusLane": "in the oncoming bus lane",
    "Pav": "on the pavement",
    "LftPav": "on the left pavement",
    "RhtPav": "on the right pavement",
    "Jun": "at the junction",
    "xing": "at the crossing",
    "BusStop": "at the bus stop",
    "parking": "in a parking space",
    "RhtParking": "in a parking space on the right",
}
AV_ACTIONS = {
    "AV-Stop": "stands still",
    "AV-Mov": "moves",
    "AV-TurRht": "turns right",
    "AV-TurLft": "turns left",
    "AV-MovRht": "moves to the right",
    "AV-MovLft": "moves to the left",
    "AV-Ovtak": "overtakes",
}
_ALTERNATIVES = (
    frozenset({"Red", "Amber", "Green", "Black"}),
    frozenset({"MovAway", "MovTow", "Mov", "Rev", "Stop"}),
    frozenset({"TurLft", "TurRht"}),
    frozenset({"XingFmLft", "XingFmRht", "Xing", "Wait2X"}),
    frozenset({"LftPav", "RhtPav", "Pav"}),
    frozenset({label for label in LOCATIONS if label.endswith("Lane")}),
    frozenset(AV_ACTIONS),
)
"""Labels of which a thing has one at a time: several of them are what it may be, not all of what it is."""
_VEHICLE, _SOMEBODY, _THERE = "our vehicle", "road user", "is there"
_AN, _A = re.compile(r"[aeiou]", re.IGNORECASE), re.compile(r"(?:uni|use|eu|one\b)", re.IGNORECASE)
_MOST_WORD = 60

Labels = Mapping[str, Iterable[str]]
"""Kind to the labels of it, best first; scores beside them do no harm."""


def describe_event(labels: Labels, begin_s: float | None = None, end_s: float | None = None) -> str:
    """A sentence on what has these labels, with its time where that is known.

    Labels of other vocabularies are taken as they are: an agent as a noun, an action as what is seen of it.

    Args:
        labels: kinds `agent`, `action` and `location`, or `av_action` for the own vehicle; all other kinds are passed over.
        begin_s: when it begins; None where that is not known.
        end_s: when it ends; None for a moment.

    >>> describe_event({"agent": ["Ped"], "location": ["LftPav"], "action": ["MovAway"]}, 3.2, 5.0)
    'A pedestrian on the left pavement walks away, 3.2 to 5.0 s.'
    >>> describe_event({"agent": ["TL"], "action": ["Red", "Amber"]})
    'A traffic light shows red or amber.'
    >>> describe_event({"agent": ["EmVeh"], "action": ["Brake", "IncatLft"]}, 0.25)
    'An emergency vehicle brakes and indicates left, at 0.2 s.'
    """
    own = list(labels.get("av_action", ()))
    if own:
        said = f"{_VEHICLE} {_join_labels({label: _phrase(AV_ACTIONS, label, 'is seen to do') for label in own})}"
        return f"{said[0].upper()}{said[1:]}{_format_time(begin_s, end_s)}."
    agents = list(labels.get("agent", ()))
    nouns = [AGENTS.get(label, _plain(label)) for label in agents] or [_SOMEBODY]
    who = _join([f"{_choose_article(noun)} {noun}" for noun in nouns], "or")
    where = _join_labels({label: _phrase(LOCATIONS, label, "at") for label in labels.get("location", ())})
    on_foot = agents == ["Ped"]
    does = {
        label: _ON_FOOT[label] if on_foot and label in _ON_FOOT else _phrase(ACTIONS, label, "is seen to do")
        for label in labels.get("action", ())
    }
    said = " ".join(part for part in (who, where, _join_labels(does) or _THERE) if part)
    return f"{said[0].upper()}{said[1:]}{_format_time(begin_s, end_s)}."


def _join_labels(phrases: Mapping[str, str]) -> str:
    """The phrases of labels joined by `and`, those that exclude each other by `or`."""
    groups: dict[object, list[str]] = {}
    for label, phrase in phrases.items():
        group = next((k for k, names in enumerate(_ALTERNATIVES) if label in names), label)
        groups.setdefault(group, []).append(phrase)
    return _join([_join_alternatives(held) for held in groups.values()], "and")


def _join_alternatives(phrases: Sequence[str]) -> str:
    """Phrases joined by `or`; a first word that all of them share is said once: shows red or amber."""
    first, words = {phrase.partition(" ")[0] for phrase in phrases}, [p.partition(" ")[2] for p in phrases]
    if len(phrases) < 2 or len(first) > 1 or not all(words):
        return _join(phrases, "or")
    return f"{first.pop()} {_join(words, 'or')}"


def _phrase(words: Mapping[str, str], label: str, before: str) -> str:
    """The words for a label; for one of another vocabulary its own, in quotes."""
    return words.get(label, f'{before} "{_plain(label)}"')


def _plain(label: str) -> str:
    """A label of another vocabulary as words on one line."""
    text = " ".join(re.sub(r"[^\w\s/().'-]+", " ", label.replace("_", " ")).split())
    return text[:_MOST_WORD].strip() or "unnamed thing"


def _choose_article(noun: str) -> str:
    """`a` or `an`, by the sound that a noun begins with."""
    return "an" if _AN.match(noun) and not _A.match(noun) else "a"


def _join(parts: Sequence[str], last: str) -> str:
    return "" if not parts else parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def _format_time(begin_s: float | None, end_s: float | None) -> str:
    if begin_s is None:
        return ""
    begin = f"{max(0.0, begin_s):.1f}"
    end = begin if end_s is None else f"{max(0.0, end_s):.1f}"
    return f", at {begin} s" if end == begin else f", {begin} to {end} s"


# A stream of events as sentences: a tube has one for each stretch over which its labels stay.


@dataclass(frozen=True)
class Stretch:
    """Labels that something had for a while.

    Args:
        tube: its number; None for the own vehicle.
        begin_s: when they were first reported.
        end_s: when they were last reported.
        labels: kind to labels, best first.
    """

    tube: int | None
    begin_s: float
    end_s: float
    labels: Mapping[str, tuple[str, ...]]

    @property
    def text(self) -> str:
        """The sentence."""
        return describe_event(self.labels, self.begin_s, self.end_s)


def collect_stretches(events: Iterable[Mapping[str, Any]]) -> list[Stretch]:
    """The stretches over which the sentence of a tube, or of the own vehicle, stays the same; by their beginning.

    Args:
        events: in their order, as `online.events.read_events` gives them.
    """
    open_ones: dict[int | None, tuple[float, dict[str, tuple[str, ...]]]] = {}
    found: list[Stretch] = []
    t_s = 0.0
    for event in events:
        t_s = float(event["t_s"])
        if event["event"] == "source":
            continue
        tube = None if event["tube"] is None else int(event["tube"])
        labels = order_labels(event["labels"])
        begun = open_ones.pop(tube, None)
        ended = event["event"] == "end"
        if begun is not None and (ended or describe_event(begun[1]) != describe_event(labels)):
            found.append(Stretch(tube, begun[0], t_s, begun[1]))
            begun = None
        if not ended:
            open_ones[tube] = begun or (t_s, labels)
    found += [Stretch(tube, begin_s, t_s, labels) for tube, (begin_s, labels) in open_ones.items()]
    return sorted(found, key=lambda each: (each.begin_s, -1 if each.tube is None else each.tube))


def order_labels(labels: Mapping[str, Mapping[str, float]]) -> dict[str, tuple[str, ...]]:
    """Kind to labels, best first, of kind to label to score.

    >>> order_labels({"agent": {"Car": 0.4, "Bus": 0.5}})
    {'agent': ('Bus', 'Car')}
    """
    return {
        kind: tuple(sorted(held, key=lambda name: (-held[name], name)))
        for kind, held in labels.items()
        if held
    }
