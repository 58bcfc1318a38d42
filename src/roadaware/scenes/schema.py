"""The tables of Scenes and Predictions as data: each column, its type, unit, meaning and target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "int", "float", "bool", "texts", "floats", "spans"]


@dataclass(frozen=True)
class Column:
    """One column: its kind of value, its meaning, and the law it keeps.

    Args:
        kind: text (String, Enum or Categorical), int (Int64), float (Float32), bool, texts (list of
            text), floats (array or list of Float32) or spans (list of [start, end) frame pairs).
        doc: meaning, with unit.
        required: the table must have it.
        nullable: null means unknown.
        to: the table whose key it points to.
        claimed: only Predictions have it; what is claimed in Float64 stays so.
        exact: what comes in Float64 stays so, in Scenes too.
        bounds: smallest and largest value of a number.
        vocabulary: the vocabulary it is an index in; `*` is the one that `kind` in its row names.
    """

    kind: Kind
    doc: str
    required: bool = False
    nullable: bool = True
    to: str | None = None
    claimed: bool = False
    exact: bool = False
    bounds: tuple[float, float] | None = None
    vocabulary: str | None = None


@dataclass(frozen=True)
class Table:
    """One table: its purpose, its key and its columns; other columns are the dataset's own and are kept."""

    doc: str
    key: tuple[str, ...]
    columns: dict[str, Column]
    unique: bool = True


def _key(kind: Kind, doc: str, to: str | None = None, vocabulary: str | None = None) -> Column:
    return Column(kind, doc, required=True, nullable=False, to=to, vocabulary=vocabulary)


_VIDEO = _key("text", "the video", "videos")
_START = Column("int", "first frame")
_END = Column("int", "frame after the last (half open)")
_CORNER = {
    "x1_px": "left",
    "y1_px": "top",
    "x2_px": "right, x1_px <= x2_px",
    "y2_px": "bottom, y1_px <= y2_px",
}
_SCORE = Column("float", "confidence in [0, 1]", claimed=True, bounds=(0, 1))
_READY = Column("float", "when it was emitted, in seconds of the stream", claimed=True)
_EVENT_SOURCE = (
    "provenance of `event_frame`: annotated; fallback, made up for a crosser without one; "
    "none, the end of the track of somebody who does not cross"
)
_KIND = _key("text", "the vocabulary")
_LABEL = _key("int", "index in the vocabulary of `kind`", vocabulary="*")

CORNERS = ("x1_px", "y1_px", "x2_px", "y2_px")
"""The columns of a box, in the order of its numbers wherever it is an array."""

TABLES: dict[str, Table] = {
    "videos": Table(
        "One camera stream each; an image set is one video, one frame per image.",
        ("video",),
        {
            "video": _key("text", "the video's native name"),
            "scene": Column("text", "groups the streams of one drive"),
            "width_px": Column("int", "width of the original image"),
            "height_px": Column("int", "height of the original image"),
            "fps": Column("float", "frames per second; null where the source does not say"),
            "n_frames": Column("int", "number of frames; null where the source does not say"),
            "path": Column("text", "where the video lies, relative to the dataset's root"),
            "sensor": Column("text", "the camera, a sensor of the scene; its only camera where null"),
            "category": Column("text", "what happens in it as a whole, such as flood or fight"),
            "splits": Column("texts", "names of the splits that hold it, `<subset>/<split>`"),
        },
    ),
    "frames": Table(
        "One frame each, with what is known of the moment: ego motion, traffic, whether it was annotated.",
        ("video", "frame"),
        {
            "video": _VIDEO,
            "frame": _key("int", "counts from 0"),
            "t_s": Column("float", "presentation time"),
            "annotated": Column(
                "bool", "whether somebody looked at this frame; never inferred from absent boxes"
            ),
            "ego_speed_kmh": Column("float", "speed of the ego vehicle"),
            "path": Column("text", "where its picture lies, in a set of pictures"),
            "world_SE3_ego": Column("floats", "4x4 pose of the vehicle, row by row"),
            "scores": Column("floats", "dense frame scores", claimed=True),
        },
    ),
    "boxes": Table(
        "One box each, in pixels of the original image.",
        ("box",),
        {
            "box": _key("int", "unique number"),
            "video": _VIDEO,
            "frame": _key("int", "counts from 0"),
            "tube": Column("int", "the tube that owns the box; null if untracked", to="tubes"),
            **{
                corner: Column("float", doc, required=True, nullable=False, exact=True)
                for corner, doc in _CORNER.items()
            },
            "occlusion": Column("text", "how much is hidden: none, part, full"),
            "ignore": Column("bool", "neither asked for nor counted as false"),
            "corner_case": Column("bool", "outside the common classes"),
            "sound": Column("int", "the sound it makes", to="sounds"),
            "annotator": Column("text", "who drew it"),
            "round": Column("int", "round of annotation"),
            "score": _SCORE,
            "scores": Column(
                "floats", "dense class scores; their (kind, label) stand in meta.json", claimed=True
            ),
            "ready_s": _READY,
            "interpolated": Column("bool", "made up between two detections, not seen", claimed=True),
        },
    ),
    "labels": Table(
        "What a box is, for kinds of which it can carry several labels.",
        ("box", "kind", "label"),
        {"box": _key("int", "the box", "boxes"), "kind": _KIND, "label": _LABEL, "score": _SCORE},
    ),
    "tubes": Table(
        "Boxes over time that carry labels: a track, or a part of one.",
        ("tube",),
        {
            "tube": _key("int", "unique number"),
            "video": _VIDEO,
            "name": Column("text", "native identifier"),
            "start_frame": _START,
            "end_frame": _END,
            "parent": Column("int", "the tube this one is cut from; it owns the boxes", to="tubes"),
            "kind": Column("text", "what a derived tube is labelled with: agent, action, duplex, event, ..."),
            "spans": Column("spans", "frames of the parent it covers, as half-open pairs"),
            "consecutive": Column(
                "bool",
                "the boxes within `spans` are claimed for consecutive frames from `start_frame`, "
                "whatever frames they were found in; null as false",
                claimed=True,
            ),
            "crossing": Column("text", "whether the pedestrian crosses: not-crossing, crossing, irrelevant"),
            "event_frame": Column("int", "frame of the event (start of crossing)"),
            "event_source": Column("text", _EVENT_SOURCE),
            "intention_prob": Column("float", "mean answer of annotators that the pedestrian wants to cross"),
            "score": _SCORE,
            "ready_s": _READY,
        },
    ),
    "tube_labels": Table(
        "What a tube is.",
        ("tube", "kind", "label"),
        {"tube": _key("int", "the tube", "tubes"), "kind": _KIND, "label": _LABEL, "score": _SCORE},
    ),
    "frame_labels": Table(
        "What happens in a whole frame: the action of the vehicle, a scene tag.",
        ("video", "frame", "kind", "label"),
        {
            "video": _VIDEO,
            "frame": _key("int", "counts from 0"),
            "kind": _KIND,
            "label": _LABEL,
            "score": _SCORE,
        },
    ),
    "samples": Table(
        "Pieces of tubes that a model is asked about; the order of rows is the order of extraction.",
        ("sample",),
        {
            "sample": _key("int", "unique number"),
            "video": Column("text", "the video", to="videos"),
            "tube": Column("int", "the pedestrian", to="tubes"),
            "start_frame": _START,
            "end_frame": _END,
            "event_frame": Column("int", "frame of the event"),
            "event_source": Column("text", _EVENT_SOURCE),
            "tte_frames": Column("int", "frames from the end of the observation to the event"),
            "kind": Column("text", "what is asked: action, intention, risk"),
            "label": Column("int", "the answer, an index in the vocabulary of `kind`", vocabulary="*"),
            "votes": Column("floats", "annotators' answers, where they are at hand"),
            "split": Column("text", "train, val or test"),
            "scores": Column("floats", "the model's score of each label of `kind`", claimed=True),
        },
    ),
    "relations": Table(
        "Who does what to whom.",
        ("relation",),
        {
            "relation": _key("int", "unique number"),
            "video": _VIDEO,
            "subject": _key("int", "who", "tubes"),
            "object": _key("int", "to whom", "tubes"),
            "predicate": _key("int", "index in the vocabulary `predicate`", vocabulary="predicate"),
            "start_frame": _START,
            "end_frame": _END,
            "score": _SCORE,
        },
    ),
    "queries": Table(
        "Sentences that happen somewhere in a video.",
        ("query",),
        {
            "query": _key("int", "unique number"),
            "video": _VIDEO,
            "name": Column("text", "native identifier"),
            "text": Column("text", "the sentence"),
            "sentence_kind": Column("text", "statement or question: declarative, interrogative"),
            "segment_start_frame": Column("int", "first frame of the part of the video that is searched"),
            "segment_end_frame": Column("int", "frame after the last of that part; null for the whole video"),
            "tube": Column("int", "whom it speaks of", to="tubes"),
            "start_frame": _START,
            "end_frame": _END,
            "score": _SCORE,
        },
    ),
    "sounds": Table(
        "What is heard; boxes point to it.",
        ("sound",),
        {
            "sound": _key("int", "unique number"),
            "video": _VIDEO,
            "name": Column("text", "native identifier"),
            "frame": Column("int", "the frame that shows where it comes from"),
            "t_s": Column("float", "when it is heard"),
            "label": Column("int", "index in the vocabulary `sound`", vocabulary="sound"),
            "map": Column("floats", "localisation map, row by row", claimed=True),
            "map_width": Column("int", "cells in a row of `map`; null for a square map", claimed=True),
        },
    ),
    "sensors": Table(
        "Where a sensor sits and how it sees, from a frame on.",
        ("scene", "sensor", "from_frame"),
        {
            "scene": _key("text", "the drive"),
            "sensor": _key("text", "the sensor's name"),
            "from_frame": _key("int", "valid from this frame on"),
            "intrinsics": Column("floats", "3x3 camera matrix, row by row"),
            "ego_SE3_sensor": Column("floats", "4x4 pose of the sensor in the vehicle, row by row"),
            "layout": Column("text", "rings and columns of a LiDAR"),
        },
    ),
    "sweeps": Table(
        "One LiDAR sweep each.",
        ("scene", "sensor", "frame"),
        {
            "scene": _key("text", "the drive"),
            "sensor": _key("text", "the sensor's name"),
            "frame": _key("int", "counts from 0"),
            "path": Column("text", "where the sweep lies, relative to the dataset's root"),
            "n_points": Column("int", "number of points"),
            "fields": Column("text", "what the numbers of a point are; null for x y z intensity ring"),
            "t_s": Column("float", "when it was taken"),
            "world_SE3_ego": Column("floats", "4x4 pose of the vehicle, row by row"),
        },
    ),
    "rejected": Table(
        "What a reader found and did not take, each with its reason: nothing is dropped silently.",
        (),
        {
            "table": _key("text", "the table the row would have gone to; `files` for a whole file"),
            "file": _key("text", "the file, relative to the root"),
            "line": Column("int", "line in the file, from 1"),
            "item": Column("text", "the row or element, as far as it can be named"),
            "reason": _key("text", "what is wrong with it"),
        },
        unique=False,
    ),
}
