"""The faults of the annotation example: what is changed in which round, and what a check should say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

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


def plant(versions: list[Tables], videos: list[str], people: int, boxes: int) -> tuple[Planted, ...]:
    """Change the tables of the three versions, one item per fault.

    Args:
        versions: original, round 1 and round 2, with equal numbers for equal things; changed in place.
        videos: three.
        people: in each video.
        boxes: of each person, every fifth frame.
    """
    bench = _Bench(versions, videos, people, boxes)
    for group in (_boxes, _box_faults, _sentences, _relations, _sounds, _labels, _rows):
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
        """What the original says."""
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


def _relations(on: _Bench) -> None:
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


def _sounds(on: _Bench) -> None:
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
