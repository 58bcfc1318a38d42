"""Crowds are drawn with arrows of who does what to whom, tags of what is heard, and the sentences that hold."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.reports.drawing import (
    Arrow,
    CrowdFrame,
    collect_crowd,
    collect_marks,
    draw_crowd,
    draw_marks,
    hold_crowd,
)
from roadaware.scenes.tables import Meta, Scenes


def crowd() -> Scenes:
    """Two people in three frames: one pushes, both hug in the last, one is heard, a bell rings elsewhere."""
    rows = [(n, "v", n % 3, n // 3, 10.0 + 60 * (n // 3), 10.0, 40.0 + 60 * (n // 3), 90.0) for n in range(6)]
    names = ["box", "video", "frame", "tube", "x1_px", "y1_px", "x2_px", "y2_px"]
    boxes = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        sound=pl.when((pl.col("tube") == 0) & (pl.col("frame") < 2)).then(0)
    )
    return Scenes(
        videos=pl.DataFrame({"video": ["v"], "width_px": [160], "height_px": [100]}),
        frames=pl.DataFrame({"video": ["v"] * 3, "frame": range(3), "t_s": [0.0, 0.5, 1.0]}),
        boxes=boxes,
        labels=pl.DataFrame({"box": range(6), "kind": ["action"] * 6, "label": [0, 0, 0, 1, 1, 1]}),
        tubes=pl.DataFrame({"tube": [0, 1], "video": ["v", "v"]}),
        relations=pl.DataFrame(
            {"relation": [0, 1, 2], "video": ["v"] * 3, "subject": [0, 0, 1], "object": [1, 1, 0],
             "predicate": [0, 1, 1], "start_frame": [0, 2, 2], "end_frame": [2, 3, 3]}
        ),
        queries=pl.DataFrame(
            {"query": [0], "video": ["v"], "text": ["A man pushes somebody."], "tube": [0], "start_frame": [0],
             "end_frame": [2]}
        ),
        sounds=pl.DataFrame(
            {"sound": [0, 1], "video": ["v", "v"], "frame": [0, None], "t_s": [0.0, 0.4], "end_s": [0.9, 1.2],
             "label": [0, 1]}
        ),
        meta=Meta(vocabularies={"action": ("walk", "run"), "predicate": ("pushes", "hugs"), "sound": ("shout", "bell")}),
    )  # fmt: skip


def test_every_frame_knows_its_relations_sounds_and_sentences() -> None:
    scenes = crowd()
    assert hold_crowd(scenes, "v")
    assert not hold_crowd(scenes, "other")
    found = collect_crowd(scenes, "v")
    assert [[(a.word, a.both) for a in found[frame].arrows] for frame in range(3)] == [
        [("pushes", False)], [("pushes", False)], [("hugs", True)],
    ]  # fmt: skip
    assert [[word for _, word in found[frame].sounds] for frame in range(3)] == [["shout"], ["shout"], []]
    assert [found[frame].away for frame in range(3)] == [[], ["bell"], ["bell"]]
    assert [[text for _, text in found[frame].sentences] for frame in range(3)] == [
        ["0  A man pushes somebody."], ["0  A man pushes somebody."], [],
    ]  # fmt: skip
    far = pl.lit(10**12, pl.Int64).alias("end_frame")
    tables = {"queries": scenes.queries.with_columns(far), "relations": scenes.relations.with_columns(far)}
    assert set(collect_crowd(scenes.with_tables(**tables), "v")) == {0, 1, 2}, (
        "frames that are there, and no others"
    )
    marks = collect_marks(scenes, "v")
    assert [mark.words for mark in marks[0]] == ["0 walk", "1 run"]
    assert marks[0][0].colour == marks[2][0].colour != marks[0][1].colour


def test_all_frames_of_a_size_stay_of_one_size_and_the_image_above_the_strip_is_kept() -> None:
    picture = np.full((100, 160, 3), 90, np.uint8)
    empty = draw_crowd(picture, CrowdFrame())
    found = collect_crowd(crowd(), "v")
    drawn = [draw_crowd(picture, found[frame]) for frame in range(3)]
    assert {each.shape for each in (*drawn, empty)} == {empty.shape}
    assert empty.shape[0] % 2 == 0
    assert (empty[:100] == 90).all()
    assert (drawn[0][:100] != 90).any()
    assert (drawn[0][100:] != empty[100:]).any()  # the sentence
    assert (drawn[2][100:] != drawn[0][100:]).any()
    twice = draw_crowd(draw_marks(picture, [], scale=2), found[0], scale=2)
    assert twice.shape[1] == 320


def test_far_out_boxes_and_many_relations_are_drawn_too() -> None:
    box = (-900.0, -50.0, 5000.0, 9000.0)
    arrows = [Arrow(box, (3.0, 3.0, 3.0, 3.0), "pushes" * 9, (255, 0, 0), bool(n % 2)) for n in range(30)]
    sentences = [((255, 255, 255), "word " * 200)] * 9
    shown = draw_crowd(
        np.zeros((64, 96, 3), np.uint8), CrowdFrame(arrows, [(box, "shout")], ["bell"] * 9, sentences)
    )
    assert shown.shape[1] == 96
