"""Proposals go out as tasks and come back: untouched they are the same, and tasks fit their config."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import polars as pl
import pytest
from lxml import etree

from roadaware.demo_data.labelling import CLASSES, HEIGHT, WIDTH, generate_labelling_sets
from roadaware.errors import UsageError
from roadaware.formats.corrections import read_corrections
from roadaware.formats.proposal_tasks import (
    KIND,
    PICTURES,
    UNNAMED,
    add_class_names,
    encode_coco_annotations,
    encode_proposal_parquet,
    label_studio_config,
    label_studio_tasks,
    select_task_proposals,
)
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions

TRUTH, PREDICTIONS = generate_labelling_sets(seed=3, videos=6)
FRAMES = TRUTH.frames.rename({"path": "picture"}).with_columns(width_px=WIDTH, height_px=HEIGHT)
SENT, LEFT_OUT = select_task_proposals(PREDICTIONS, FRAMES, CLASSES)


def _accepted() -> bytes:
    """An export in which one person took every proposal as it is."""
    tasks = json.loads(label_studio_tasks(SENT))
    for task in tasks:
        task["annotations"] = [{"completed_by": 7, "result": task["predictions"][0]["result"]}]
    return json.dumps(tasks).encode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("ann.json", _accepted()),
        ("ann.coco.json", encode_coco_annotations(SENT)),
        ("ann.parquet", encode_proposal_parquet(SENT)),
    ],
)
def test_what_nobody_touched_comes_back_as_it_was(tmp_path, name, data):
    path = tmp_path / name
    path.write_bytes(data)
    answers = read_corrections(path, SENT)
    sent = add_class_names(SENT).sort("box")
    back = answers.drawn.sort("proposal")
    assert back["proposal"].to_list() == sent["box"].to_list()
    assert back["label"].fill_null(UNNAMED).to_list() == sent["label"].to_list()
    assert abs(back.select(CORNERS).to_numpy() - sent.select(CORNERS).to_numpy()).max() < 1e-9
    assert len(answers.looked) == len(SENT.frames)
    assert answers.findings.table().is_empty()
    assert not answers.findings.warnings


def test_the_config_offers_what_the_tasks_say():
    root = etree.fromstring(label_studio_config(SENT))
    control, picture = root.find("RectangleLabels"), root.find("Image")
    assert control is not None
    assert picture is not None
    offered = {each.get("value") for each in control}
    assert offered == {*CLASSES, UNNAMED}
    for task in json.loads(label_studio_tasks(SENT)):
        assert picture.get("value") in {f"${name}" for name in task["data"]}
        for result in task["predictions"][0]["result"]:
            assert result["from_name"] == control.get("name")
            assert result["to_name"] == control.get("toName") == picture.get("name")
            assert set(result["value"][result["type"]]) <= offered
            value = result["value"]
            assert 0 <= value["x"] <= value["x"] + value["width"] <= 100 + 1e-9
            assert 0 <= value["y"] <= value["y"] + value["height"] <= 100 + 1e-9


def test_addresses_are_quoted_and_start_where_the_pictures_are_served():
    frames = FRAMES.with_columns(picture=pl.lit("a b/#1/") + pl.col("frame").cast(pl.String) + ".png")
    sent, _ = select_task_proposals(PREDICTIONS, frames, CLASSES)
    first = json.loads(label_studio_tasks(sent, media="http://here/{name}"))[0]
    assert first["data"]["image"] == "http://here/a%20b/%231/0.png"
    assert json.loads(label_studio_tasks(SENT))[0]["data"]["image"].startswith("/data/local-files/?d=")


def test_coco_names_pictures_scores_and_proposals():
    content = json.loads(encode_coco_annotations(SENT))
    assert [image["file_name"] for image in content["images"]] == FRAMES["picture"].to_list()
    scores = dict(SENT.boxes.select("box", "score").iter_rows())
    assert {row["proposal"]: row["score"] for row in content["annotations"]} == scores
    assert content["categories"][-1]["name"] == UNNAMED


def test_coco_has_numbers_and_cuboids_of_proposals_as_attributes_and_boxes_as_outlines():
    for row in json.loads(encode_coco_annotations(SENT))["annotations"]:
        assert row["attributes"] == {"proposal": row["proposal"], "corner_case": True}
        left, top, width, height = row["bbox"]
        (outline,) = row["segmentation"]
        assert [min(outline[::2]), min(outline[1::2])] == [left, top]
        assert [max(outline[::2]), max(outline[1::2])] == [left + width, top + height]
        assert len(set(zip(outline[::2], outline[1::2], strict=True))) == 4
    told = SENT.boxes.with_columns(
        length_m=pl.lit(2.5), moving=pl.lit(value=True), z_m=pl.lit(None, pl.Float64)
    )
    first = json.loads(encode_coco_annotations(replace(SENT, boxes=told)))["annotations"][0]
    assert first["attributes"] == {
        "proposal": first["proposal"],
        "corner_case": True,
        "length_m": 2.5,
        "moving": True,
    }


def test_pictures_without_a_proposal_stay_in_the_table():
    table = pl.read_parquet(io.BytesIO(encode_proposal_parquet(SENT)))
    assert table.select("video", "frame").n_unique() == len(FRAMES)


def _predictions(*corners: tuple[float, float, float, float]) -> Predictions:
    rows = [(n, "v", 0, *edges, 0.5) for n, edges in enumerate(corners)]
    boxes = pl.DataFrame(rows, schema=["box", "video", "frame", *CORNERS, "score"], orient="row")
    labels = pl.DataFrame({"box": [0, 0], "kind": [KIND, KIND], "label": [0, 1], "score": [0.2, 0.7]})
    return Predictions(boxes=boxes, labels=labels, meta=Meta(vocabularies={KIND: ("dog", "cart")}))


def _one(width: int | None = 100, height: int | None = 50) -> pl.DataFrame:
    return pl.DataFrame([("v", 0, "v.png", width, height)], schema=PICTURES, orient="row")


def test_boxes_are_cut_to_their_picture_and_empty_ones_left_out():
    predictions = _predictions((-5.0, 1.0, 30.0, 60.0), (4.0, 4.0, 4.0, 9.0), (120.0, 0.0, 130.0, 9.0))
    sent, left_out = select_task_proposals(predictions, _one(), ["cone"])
    assert sent.boxes.select(CORNERS).rows() == [(0.0, 1.0, 30.0, 50.0)]
    assert left_out == {"proposals without a width or height in the image": 2}
    assert sent.meta.vocabularies[KIND] == ("cone", "cart")
    assert add_class_names(sent)["label"].to_list() == ["cart"]


def test_proposals_of_other_pictures_are_counted():
    other = _one().with_columns(video=pl.lit("w"))
    sent, left_out = select_task_proposals(_predictions((0.0, 0.0, 9.0, 9.0)), other, ["cone"])
    assert (len(sent.boxes), left_out) == (0, {"proposals on images that are not sent out": 1})


@pytest.mark.parametrize(
    ("pictures", "told"),
    [
        (_one().clear(), "no image"),
        (pl.concat([_one(), _one()]), "stands twice"),
        (_one(width=None), "no size that is known"),
        (_one(height=0), "no size that is known"),
    ],
)
def test_pictures_that_cannot_be_sent_out(pictures, told):
    with pytest.raises(UsageError, match=told):
        select_task_proposals(_predictions((0.0, 0.0, 9.0, 9.0)), pictures, ["cone"])
