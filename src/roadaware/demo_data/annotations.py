"""A small set of annotations of chaotic scenes and two rounds of checking, with faults that are known."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL, list_label_names
from roadaware.io.folders import encode_json, make_folder, write_text
from roadaware.scenes.store import save
from roadaware.scenes.tables import Meta, Scenes

# The faults of the annotation example: what is changed in which round, and what a check should say.

Tables = dict[str, pl.DataFrame]
_ALL, _CHECKED = (0, 1, 2), (1, 2)


@dataclass(frozen=True)
class Planted:
    """One fault.

    Args:
        rule: the rule that it breaks; `limit` where a difference is as large as may be.
        what: kind of the item.
        video: where it is; None for a row of the file.
        name: of the person, sentence or sound; subject of a relation.
        frame: of a box.
        status: what a check with both rounds should call the item: pass, fail, disputed.
    """

    rule: str
    what: str
    video: str | None
    name: str | None
    frame: int | None
    status: str


def add_annotation_errors(
    versions: list[Tables], videos: list[str], people: int, boxes: int
) -> tuple[Planted, ...]:
    """Change the tables of the three versions, one item per fault.

    Args:
        versions: original, round 1 and round 2, with equal numbers for equal things; changed in place.
        videos: three.
        people: in each video.
        boxes: of each person, every fifth frame.
    """
    bench = _Bench(versions, videos, people, boxes)
    for group in (
        _boxes,
        _box_faults,
        _sentences,
        _plant_relation_faults,
        _plant_sound_faults,
        _labels,
        _rows,
    ):
        group(bench)
    return tuple(bench.planted)


class _Bench:
    """The three versions, addressed by video, person and frame."""

    def __init__(self, versions: list[Tables], videos: list[str], people: int, boxes: int) -> None:
        self.versions, self.videos, self._people, self._boxes = versions, videos, people, boxes
        self.planted: list[Planted] = []

    def box(self, video: int, person: int, frame: int) -> int:
        """The number of a person's box."""
        return (video * self._people + person) * self._boxes + frame // 5

    def sound_box(self, video: int, sound: int) -> int:
        """The number of a sound's box."""
        return len(self.videos) * self._people * self._boxes + 2 * video + sound

    def value(self, table: str, number: int, column: str) -> Any:
        """Value of the original."""
        rows = self.versions[0][table]
        return rows.filter(pl.nth(0) == number)[column][0]

    def put(self, rounds: tuple[int, ...], table: str, number: int, **values: Any) -> None:
        """Set columns of one row in some versions."""
        for k in rounds:
            rows = self.versions[k][table]
            where = pl.nth(0) == number
            changes = [
                pl.when(where)
                .then(pl.lit(value, dtype=rows.schema[name]))
                .otherwise(pl.col(name))
                .alias(name)
                for name, value in values.items()
            ]
            self.versions[k][table] = rows.with_columns(changes)

    def corners(self, rounds: tuple[int, ...], number: int, *shift: float) -> None:
        """Set a box to that of the original, each edge shifted."""
        names = ("x1_px", "y1_px", "x2_px", "y2_px")
        moved = {name: self.value("boxes", number, name) + by for name, by in zip(names, shift, strict=True)}
        self.put(rounds, "boxes", number, **moved)

    def drop(self, rounds: tuple[int, ...], table: str, number: int) -> None:
        """Take a row out of some versions, with the labels of a box."""
        for k in rounds:
            tables = self.versions[k]
            tables[table] = tables[table].filter(pl.nth(0) != number)
            if table == "boxes":
                tables["labels"] = tables["labels"].filter(pl.col("box") != number)

    def tell(
        self, rule: str, what: str, video: int, name: str | None, status: str, frame: int | None = None
    ) -> None:
        """Note what was planted."""
        self.planted.append(Planted(rule, what, self.videos[video], name, frame, status))


def _boxes(on: _Bench) -> None:
    """Boxes that differ: by more than the limit in one round, and by exactly the limit."""
    on.corners(_CHECKED, on.box(0, 0, 25), 0, 0, 2.5, 0)
    on.tell("box moved", "box", 0, "P1", "fail", 25)
    on.corners(_CHECKED, on.box(0, 0, 50), 2, -2, 2, -2)
    on.tell("limit", "box", 0, "P1", "pass", 50)
    on.corners((1,), on.box(0, 1, 25), 0, 0, 0, 0)
    on.corners((2,), on.box(0, 1, 25), 0, -3, 0, 0)
    on.tell("box moved", "box", 0, "P2", "disputed", 25)
    on.drop(_CHECKED, "boxes", on.box(1, 3, 60))
    on.tell("missing", "box", 1, "P4", "fail", 60)
    on.drop((0,), "boxes", on.box(1, 3, 65))
    on.tell("added", "box", 1, "P4", "fail", 65)


def _box_faults(on: _Bench) -> None:
    """Boxes that are wrong by themselves, or checked by the wrong person."""
    outside, empty = on.box(2, 3, 40), on.box(2, 2, 45)
    on.put((0,), "boxes", outside, x1_px=297.0, x2_px=321.0)
    on.corners(_CHECKED, outside, -1, 0, -1.5, 0)
    on.tell("outside the frame", "box", 2, "P4", "fail", 40)
    on.put((0,), "boxes", empty, x2_px=on.value("boxes", empty, "x1_px"))
    on.corners(_CHECKED, empty, -0.5, 0, 0.5, 0)
    on.tell("empty box", "box", 2, "P3", "fail", 45)
    on.put(_ALL, "boxes", on.box(2, 0, 200), tube=None)
    on.tell("unknown person", "box", 2, None, "disputed", 200)
    on.put((1,), "boxes", on.box(1, 2, 155), annotator="ann")
    on.tell("same reviewer", "box", 1, "P3", "fail", 155)
    on.put((2,), "boxes", on.box(1, 2, 150), annotator="bea")
    on.tell("same reviewer", "box", 1, "P3", "disputed", 150)
    double = on.box(0, 3, 30)
    for tables in on.versions:
        again = tables["boxes"].filter(pl.col("box") == double)
        shifted = again.with_columns(pl.col("box") + 10_000, pl.col("x1_px", "x2_px") - 60)
        tables["boxes"] = pl.concat([tables["boxes"], shifted])
    for _ in range(2):
        on.tell("drawn twice", "box", 0, "P4", "disputed", 30)


def _sentences(on: _Bench) -> None:
    """Sentences with wrong times, and with words that must not be there."""
    end = on.value("queries", 4, "end_frame")
    on.put(_CHECKED, "queries", 4, start_frame=60, end_frame=end + 11)
    on.tell("time moved", "sentence", 1, "S1", "fail")
    on.put(_CHECKED, "queries", 5, start_frame=60, end_frame=end + 10)
    on.tell("limit", "sentence", 1, "S2", "pass")
    on.put((1,), "queries", 6, start_frame=60, end_frame=end)
    on.put((2,), "queries", 6, start_frame=90, end_frame=end)
    on.tell("time moved", "sentence", 1, "S3", "disputed")
    on.put((0,), "queries", 0, text="John  SMITH and two ladies in red hoodies push a man")
    on.tell("forbidden word", "sentence", 0, "S1", "fail")
    on.put(_ALL, "queries", 9, text="a group of Gypsies runs to the left")
    on.tell("forbidden word", "sentence", 2, "S2", "disputed")


def _plant_relation_faults(on: _Bench) -> None:
    """Relations without duration, with oneself, outside their tracks, and one that round 2 does not see."""
    on.put((0,), "relations", 0, start_frame=100, end_frame=100)
    on.put(_CHECKED, "relations", 0, start_frame=100, end_frame=105)
    on.tell("no duration", "relation", 0, "P1", "fail")
    on.put(_ALL, "relations", 4, object=on.value("relations", 4, "subject"))
    on.tell("own object", "relation", 1, "P2", "disputed")
    on.put((0,), "relations", 6, end_frame=255)
    on.put(_CHECKED, "relations", 6, end_frame=249)
    on.tell("outside its tracks", "relation", 2, "P1", "fail")
    on.drop((2,), "relations", 8)
    on.tell("missing", "relation", 2, "P3", "disputed")


def _plant_sound_faults(on: _Bench) -> None:
    """A sound that starts later in round 1, and a box that is not where its sound starts."""
    frame = on.value("sounds", 5, "frame")
    on.put(_ALL, "boxes", on.sound_box(2, 1), frame=frame + 5)
    on.put(_CHECKED, "sounds", 5, frame=frame + 11, t_s=(frame + 11) / 25)
    on.tell("time moved", "sound", 2, "E2", "fail")
    on.put(_ALL, "boxes", on.sound_box(1, 0), frame=90)
    on.tell("sound elsewhere", "sound box", 1, "E1", "disputed", 90)


def _labels(on: _Bench) -> None:
    """Actions that round 1 changes or that nobody knows, and an event that is misspelt."""
    changed, unknown = on.box(0, 2, 100), on.box(1, 0, 75)
    label = on.value("labels", changed, "label")
    on.put(_CHECKED, "labels", changed, label=(label + 1) % 50)
    on.tell("label changed", "box", 0, "P3", "fail", 100)
    on.put(_ALL, "labels", unknown, label=50)
    on.tell("label unknown", "box", 1, "P1", "disputed", 75)
    videos = on.versions[0]["videos"]
    misspelt = pl.when(pl.col("video") == on.videos[1]).then(pl.lit("flud")).otherwise("category")
    on.versions[0]["videos"] = videos.with_columns(category=misspelt)
    on.tell("label unknown", "video", 1, None, "fail")
    on.tell("label changed", "video", 1, None, "fail")


def _rows(on: _Bench) -> None:
    """A row that the original's reader refused."""
    row = {
        "table": "boxes",
        "file": "clip_2.csv",
        "line": 7,
        "item": "P9",
        "reason": "x1 317 lies right of x2 290",
    }
    on.versions[0]["rejected"] = pl.DataFrame([row])
    on.planted.append(Planted("refused", "refused row", None, "clip_2.csv:7 P9", None, "fail"))


FORBIDDEN = ("lady", "John Smith", "gypsy")
"""The words that the example's descriptions must not hold."""
_SIZE, _FPS, _FRAMES, _STEP, _PEOPLE = (320, 180), 25.0, 250, 5, 4
_VIDEOS = (("ADCCAWWD", "protest_riot"), ("BQTTZKLM", "flood"), ("CXWERTYP", "fight"))
_JITTER_PX, _JITTER_FRAMES = 1.5, 8
"""Honest differences between annotators: below 2 px at this size, and below 10 frames at this rate."""
_SENTENCES = (
    "a man in a red hoodie pushes another man",
    "a woman with blonde hair runs to the left",
    "a boy with a black backpack holds a sign",
    "an old man in a blue shirt shouts at a guard",
)


@dataclass(frozen=True)
class Rounds:
    """The original, both rounds, and what was planted."""

    original: Scenes
    round1: Scenes
    round2: Scenes
    planted: tuple[Planted, ...]


def generate_annotation_rounds(*, seed: int = 0) -> Rounds:
    """Three clips of 10 s at 320x180 and 25 frames per second, boxes every fifth frame, in three versions.

    Args:
        seed: of everybody's way, and of the differences between annotators.
    """
    rng = np.random.default_rng(seed)
    # Annotations of the first annotator.
    names = [name for name, _ in _VIDEOS]
    tubes = pl.DataFrame(
        [
            (v * _PEOPLE + p, video, f"P{p + 1}", 0, _FRAMES)
            for v, video in enumerate(names)
            for p in range(_PEOPLE)
        ],
        schema=["tube", "video", "name", "start_frame", "end_frame"],
        orient="row",
    )
    frames = np.arange(0, _FRAMES, _STEP)
    rows: list[tuple[Any, ...]] = []
    for tube, video in tubes.select("tube", "video").iter_rows():
        left, top = 20 + 70 * (tube % _PEOPLE) + 20 * rng.random(), 40 + 30 * rng.random()
        for frame in frames:
            x1, y1 = left + 0.05 * frame, top + 4 * np.sin(frame / 40)
            rows.append((len(rows), video, int(frame), tube, None, x1, y1, x1 + 24, y1 + 60))
    for v, video in enumerate(names):
        rows += [
            (len(rows) + s, video, 50 + 100 * s, None, 2 * v + s, 40.0, 90.0, 80.0, 130.0) for s in range(2)
        ]
    columns = ["box", "video", "frame", "tube", "sound", "x1_px", "y1_px", "x2_px", "y2_px"]
    boxes = pl.DataFrame(rows, schema=columns, orient="row", infer_schema_length=None)
    truth = {
        "videos": pl.DataFrame({"video": names, "category": [event for _, event in _VIDEOS]}),
        "tubes": tubes,
        "boxes": boxes.with_columns(annotator=pl.lit("ann")),
        "labels": _actions(rng, boxes),
        "relations": _relations(tubes),
        "queries": _queries(tubes),
        "sounds": _sounds(names),
    }
    first = _simulate_review(rng, truth, "bea")
    second = _simulate_review(rng, first, "cem")
    versions = [truth, first, second]
    planted = add_annotation_errors(versions, [name for name, _ in _VIDEOS], _PEOPLE, _FRAMES // _STEP)
    original, round1, round2 = (_scenes(tables, place) for place, tables in enumerate(versions))
    return Rounds(original, round1, round2, planted)


def write_annotation_rounds(folder: Path, *, seed: int = 0) -> list[dict[str, Any]]:
    """Write the rounds as tables, `words.txt` and `planted.json`; what was planted, JSON-ready.

    Args:
        folder: where to; an earlier example in it is replaced.
        seed: as of `generate_annotation_rounds`.

    Raises:
        DiskError: if something cannot be written.
    """
    rounds = generate_annotation_rounds(seed=seed)
    make_folder(folder)
    for name in ("original", "round1", "round2"):
        save(getattr(rounds, name), folder / name, overwrite=True)
    planted = [asdict(fault) for fault in rounds.planted]
    words = "".join(f"{word}\n" for word in ("# never in a description", *FORBIDDEN))
    write_text(folder / "words.txt", words)
    write_text(folder / "planted.json", encode_json({"seed": seed, "planted": planted}))
    return planted


def _actions(rng: np.random.Generator, boxes: pl.DataFrame) -> pl.DataFrame:
    """One or two actions of each person, the same in all his boxes."""
    held = boxes.drop_nulls("tube").select("box", "tube")
    chosen = [
        (tube, int(label))
        for tube in held["tube"].unique().sort()
        for label in rng.choice(len(ACTIONS_OFFICIAL), size=1 + tube % 2, replace=False)
    ]
    labels = pl.DataFrame(chosen, schema=["tube", "label"], orient="row")
    rows = held.join(labels, on="tube", maintain_order="left")
    return rows.select("box", pl.lit("action").alias("kind"), "label")


def _relations(tubes: pl.DataFrame) -> pl.DataFrame:
    """In each clip three pairs."""
    rows: list[tuple[Any, ...]] = []
    for v in range(len(_VIDEOS)):
        for k in range(3):
            subject = v * _PEOPLE + k
            rows.append((len(rows), tubes["video"][subject], subject, subject + 1, (5 * v + k) % 18, 50, 150))
    columns = ["relation", "video", "subject", "object", "predicate", "start_frame", "end_frame"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def _queries(tubes: pl.DataFrame) -> pl.DataFrame:
    """One sentence for each person."""
    return tubes.select(
        query="tube",
        video="video",
        name=pl.format("S{}", pl.col("tube") % _PEOPLE + 1),
        text=pl.col("tube").map_elements(lambda k: _SENTENCES[k % _PEOPLE], return_dtype=pl.String),
        tube="tube",
        start_frame=pl.lit(60),
        end_frame=pl.lit(180),
    )


def _sounds(videos: list[str]) -> pl.DataFrame:
    rows = [
        (2 * v + s, video, f"E{s + 1}", 50 + 100 * s, (50 + 100 * s) / _FPS, (3 * v + s) % 28)
        for v, video in enumerate(videos)
        for s in range(2)
    ]
    columns = ["sound", "video", "name", "frame", "t_s", "label"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def _simulate_review(rng: np.random.Generator, tables: Tables, annotator: str) -> Tables:
    """The work of a reviewer who sees everything alike, within the limits."""
    boxes, corners = tables["boxes"], ["x1_px", "y1_px", "x2_px", "y2_px"]
    shift = rng.uniform(-_JITTER_PX, _JITTER_PX, (len(boxes), 4))
    moved = pl.DataFrame(boxes.select(corners).to_numpy() + shift, schema=corners)
    changed = {
        **tables,
        "boxes": boxes.with_columns(moved.get_columns()).with_columns(annotator=pl.lit(annotator)),
    }
    for name in ("relations", "queries"):
        rows = tables[name]
        drawn = rng.integers(-_JITTER_FRAMES, _JITTER_FRAMES + 1, (len(rows), 2))
        changed[name] = rows.with_columns(
            pl.col("start_frame") + pl.Series(drawn[:, 0]), pl.col("end_frame") + pl.Series(drawn[:, 1])
        )
    return changed


def _scenes(tables: Tables, place: int) -> Scenes:
    width, height = _SIZE
    videos = tables["videos"].with_columns(
        width_px=pl.lit(width), height_px=pl.lit(height), fps=pl.lit(_FPS), n_frames=pl.lit(_FRAMES)
    )
    vocabularies = {
        "action": (*ACTIONS_OFFICIAL, "teleporting"),
        "predicate": list_label_names("interaction"),
        "sound": list_label_names("sound"),
    }
    boxes = tables["boxes"].with_columns(round=pl.lit(place))
    return Scenes(
        **{**tables, "videos": videos, "boxes": boxes},
        meta=Meta(dataset="annotation example", licence="CC0", vocabularies=vocabularies),
    )
