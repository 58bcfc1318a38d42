"""Corrected tasks are read back: what people did, what is refused, and files that are broken."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from roadaware.analysis.annotation.cost import build_labelled_scenes, compute_outcomes
from roadaware.datasets import read as read_dataset
from roadaware.errors import InputError
from roadaware.formats.corrections import SOMEBODY, Answers, merge_answers, read_corrections
from roadaware.formats.proposal_tasks import KIND, PICTURES, encode_coco_annotations, select_task_proposals
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, Predictions

_ROWS = [(4, "v", 0, 10.0, 10.0, 30.0, 20.0, 0.9), (5, "v", 0, 50.0, 10.0, 70.0, 20.0, 0.5)]
_ROWS += [(6, "v", 1, 10.0, 10.0, 30.0, 20.0, 0.7)]
_PREDICTIONS = Predictions(
    boxes=pl.DataFrame(_ROWS, schema=["box", "video", "frame", *CORNERS, "score"], orient="row"),
    meta=Meta(vocabularies={KIND: ("dog", "cart")}),
)
_PICTURES = pl.DataFrame(
    [("v", frame, f"films/v/{frame}.png", 200, 100) for frame in range(3)], schema=PICTURES, orient="row"
)
SENT, _ = select_task_proposals(_PREDICTIONS, _PICTURES, ["dog", "cart"])


def region(name: str, x: Any, y: Any, width: Any, height: Any, *words: str, **more: Any) -> dict[str, Any]:
    value = {"x": x, "y": y, "width": width, "height": height, "rotation": 0, "rectanglelabels": list(words)}
    head = {"id": name, "from_name": "corner", "to_name": "image", "type": "rectanglelabels"}
    return {**head, "value": {**value, **more}}


def done(who: Any, *result: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"completed_by": who, "was_cancelled": False, "result": list(result), **more}


def task(frame: int, *annotations: dict[str, Any]) -> dict[str, Any]:
    name = f"v/{frame:06d}"
    return {
        "id": frame,
        "data": {"image": f"/x/{frame}.png", "video_name": name},
        "annotations": [*annotations],
    }


def read(tmp_path, content: Any, name: str = "back.json") -> Answers:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return read_corrections(path, SENT)


def test_several_annotators_with_times_and_skipped_pictures(tmp_path):
    ann = done(
        1, region("proposal-4", 5, 10, 10, 10, "dog"), region("x", 40, 40, 5, 5, "cart"), lead_time=9.5
    )
    ben = done({"id": 2, "email": "b@x"}, was_cancelled=True, lead_time=3)
    found = read(tmp_path, [task(0, ann, ben), task(1, done(2), done(None))])
    assert found.drawn.rows() == [
        ("v", 0, "1", 4, 10.0, 10.0, 30.0, 20.0, "dog"),
        ("v", 0, "1", None, 80.0, 40.0, 90.0, 45.0, "cart"),
    ]
    assert sorted(found.looked.rows()) == [
        ("v", 0, "1", False, 9.5, True),
        ("v", 0, "2", True, 3.0, True),
        ("v", 1, "2", False, None, True),
        ("v", 1, SOMEBODY, False, None, True),
    ]


def test_the_last_annotation_of_a_person_counts(tmp_path):
    first, second = (done(1, region(f"r{n}", n, 0, 5, 5, "dog")) for n in (1, 2))
    found = read(tmp_path, [task(0, first, second)])
    assert found.drawn["x1_px"].to_list() == [4.0]
    both = merge_answers([found, read(tmp_path, [task(0, done(1)), task(2, done(1))], "later.json")])
    assert (len(both.drawn), len(both.looked)) == (0, 2)
    assert both.findings.left_out["earlier annotations of an image by the same person"] == 2


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (region("a", 5, 5, 10, 10, rotation=12), "turned by 12 degrees"),
        (region("a", 5, 5, 0, 10), "no width or no height"),
        (region("a", 95, 5, 10, 10), "outside 0 to 100 %"),
        (region("a", -1, 5, 10, 10), "outside 0 to 100 %"),
        (region("a", "5", 5, 10, 10), "no finite number"),
        (region("a", 5, 5, -10, 10), "upside down"),
        (region("a", 1e300, 5, 10, 10), "no finite number"),
    ],
)
def test_a_box_that_is_none_is_refused_and_the_rest_is_read(tmp_path, wrong, told):
    found = read(tmp_path, [task(0, done(1, wrong, region("b", 5, 5, 10, 10, "dog")))])
    assert len(found.drawn) == 1
    (reason,) = found.findings.table()["reason"].to_list()
    assert told in reason


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "'value' should be an object and is null"),
        ("text", "'value' should be an object and is a text"),
        ({"x": 1, "y": 1, "width": 1, "rectanglelabels": ["dog"]}, "its value has no 'height'"),
        ({"rectanglelabels": ["dog"]}, "has no 'x', 'y', 'width', 'height'"),
        ({"x": 1, "y": 1, "width": 1, "height": None}, "no finite number"),
    ],
)
def test_a_region_without_a_whole_box_is_refused_and_its_proposal_not_called_deleted(tmp_path, value, told):
    broken = {"id": "proposal-4", "from_name": "corner", "type": "rectanglelabels", "value": value}
    found = read(tmp_path, [task(0, done(1, broken))])
    (reason,) = found.findings.table()["reason"].to_list()
    assert told in reason
    assert found.refused.rows() == [("v", 0, "1", 4)]
    table = compute_outcomes(SENT, found)
    assert table.select("proposal", "fate").rows() == [(4, "refused"), (5, "deleted")]


@pytest.mark.parametrize(
    ("result", "fate"),
    [
        (region("proposal-4", 5, 10, 10, 10, rotation=3), ["refused", "deleted"]),
        (region("proposal-4", 5, 10, 0, 10), ["refused", "deleted"]),
        ({"id": "proposal-4", "type": "ellipselabels", "value": {"x": 1}}, ["refused", "deleted"]),
        ({"type": "rectangle", "value": None}, ["refused", "refused"]),
        (None, ["refused", "refused"]),
        (region("other", 5, 10, 0, 10), ["refused", "refused"]),
    ],
)
def test_what_may_have_been_a_proposal_is_not_called_deleted(tmp_path, result, fate):
    found = read(tmp_path, [task(0, done(1, result))])
    assert len(found.findings.table()) == 1
    assert compute_outcomes(SENT, found)["fate"].to_list() == fate


def test_where_boxes_keep_their_numbers_a_refused_one_without_is_no_proposal(tmp_path):
    found = read(
        tmp_path, [task(0, done(1, region("proposal-4", 5, 10, 10, 10), region("other", 5, 10, 0, 10)))]
    )
    assert compute_outcomes(SENT, found)["fate"].to_list() == ["kept", "deleted"]
    labels = build_labelled_scenes(SENT, found, compute_outcomes(SENT, found))
    assert labels.meta.notes["refused"] == []


def test_what_is_said_of_a_refused_region_is_not_said_of_the_picture(tmp_path):
    broken = {"id": "a", "type": "rectanglelabels", "value": None}
    said = {"id": "a", "type": "choices", "from_name": "sure", "value": {"choices": ["no"]}}
    path = tmp_path / "back.json"
    path.write_text(json.dumps([task(0, done(1, broken, said))]))
    assert read_dataset("label_studio", path, cache=False).videos["choices"].to_list() == [None]


def test_a_task_that_stands_twice_counts_once(tmp_path):
    first, second = (task(0, done(1, region("a", x, 10, 10, 10, "dog"))) for x in (5, 50))
    found = read(tmp_path, [first, second])
    assert found.drawn["x1_px"].to_list() == [10.0]
    assert "a second task of the number 0" in found.findings.table()["reason"][0]


def test_a_second_result_of_one_control_is_refused_and_those_of_others_are_not(tmp_path):
    again = region("a", 5, 5, 10, 10, "cart")
    other = {**again, "from_name": "second"}
    found = read(tmp_path, [task(0, done(1, region("a", 5, 5, 10, 10, "dog"), again, other))])
    assert found.drawn["label"].to_list() == ["dog"]
    assert found.findings.table()["reason"].str.contains("under the identifier of another").to_list() == [
        True
    ]


def test_refused_annotations_of_coco_and_parquet_are_no_deletions(tmp_path):
    content = json.loads(encode_coco_annotations(SENT))
    content["annotations"][0]["bbox"] = [5, 5, 0, 3]
    content["annotations"][1]["bbox"] = [500, 500, 5, 5]
    found = read(tmp_path, content, "ann.json")
    table = compute_outcomes(SENT, found).sort("proposal")
    assert table["fate"].to_list() == ["refused", "refused", "kept"]
    rows = {"video": ["v"], "frame": [0], "proposal": [4], "x1_px": [9.0], "y1_px": [9.0]}
    pl.DataFrame(rows | {"x2_px": [9.0], "y2_px": [20.0]}).write_parquet(tmp_path / "a.parquet")
    table = compute_outcomes(SENT, read_corrections(tmp_path / "a.parquet", SENT))
    assert table["fate"].to_list() == ["refused", "deleted"]


def test_two_boxes_under_one_identifier(tmp_path):
    found = read(tmp_path, [task(0, done(1, region("a", 5, 5, 10, 10, "dog"), region("a", 50, 5, 10, 10)))])
    assert found.drawn["x1_px"].to_list() == [10.0]
    assert "second box under the identifier" in found.findings.table()["reason"][0]


def test_rounding_past_the_edge_is_brought_back(tmp_path):
    found = read(tmp_path, [task(0, done(1, region("a", -1e-9, 50, 100.0000001, 50.0000001, "dog")))])
    assert found.drawn.select(CORNERS).row(0) == (0.0, 50.0, 200.0, 100.0)


def test_pictures_links_and_classes_that_were_not_sent_out(tmp_path):
    other = region("proposal-6", 5, 5, 10, 10, "whale", "dog")
    found = read(tmp_path, [task(0, done(1, other)), task(9, done(1))])
    assert found.drawn.select("proposal", "label").rows() == [(None, "whale")]
    assert found.findings.table()["reason"].to_list() == ["an image that was not sent out"]
    assert {what.split(",")[0].split(":")[0] for what in found.findings.warnings} == {
        "boxes that name a proposal of no or another image",
        "boxes of a class that was not sent out",
        "boxes with several classes",
    }


def test_coco_of_another_tool_without_folders_and_numbers(tmp_path):
    content = json.loads(encode_coco_annotations(SENT))
    for image in content["images"]:
        image["file_name"] = image["file_name"].rpartition("/")[2]
    content["images"].append({"id": 99, "file_name": "other.png", "width": 9, "height": 9})
    for row in content["annotations"]:
        del row["proposal"], row["attributes"]
    content["annotations"][0]["bbox"] = [float(x) for x in (190, 90, 20, 20)]
    content["annotations"].append({**content["annotations"][1], "id": 77, "bbox": [5, 5, 0, 3]})
    content["annotations"].append({**content["annotations"][1], "id": 78, "category_id": 55})
    found = read(tmp_path, content, "ann.json")
    assert found.looked["annotator"].unique().to_list() == ["ann"]
    assert not found.looked["linked"].any()
    assert (190.0, 90.0, 200.0, 100.0) in found.drawn.select(CORNERS).rows()
    assert len(found.drawn) == 3
    assert len(found.findings.table()) == 3
    assert list(found.findings.warnings) == ["boxes that reach out of their image, cut to it"]


@pytest.mark.parametrize("change", [lambda name: f"images/{name}", lambda name: name.replace("/", "\\")])
def test_images_are_found_by_as_much_of_their_path_as_is_sent(tmp_path, change):
    """Two images whose last names are one, so that these alone do not tell them apart."""
    frames = SENT.frames.with_columns(picture=pl.format("v{}/000001.png", "task"))
    sent = SENT.with_tables(frames=frames)
    content = json.loads(encode_coco_annotations(sent))
    for image in content["images"]:
        image["file_name"] = change(image["file_name"])
    path = tmp_path / "back.json"
    path.write_text(json.dumps(content))
    found = read_corrections(path, sent)
    assert found.findings.table().is_empty()
    assert len(found.looked) == len(frames) > 1


@pytest.mark.parametrize("kind", [int, float, str])
def test_coco_of_a_tool_that_keeps_numbers_of_proposals_among_attributes_alone(tmp_path, kind):
    content = json.loads(encode_coco_annotations(SENT))
    for row in content["annotations"]:
        row["attributes"]["proposal"] = kind(row.pop("proposal"))
    found = read(tmp_path, content)
    assert sorted(found.drawn["proposal"].to_list()) == sorted(SENT.boxes["box"].to_list())
    assert found.looked["linked"].any()
    content["annotations"][0]["attributes"]["proposal"] = "x"
    assert read(tmp_path, content).drawn["proposal"].null_count() == 1


def test_a_proposal_stands_for_one_box_only(tmp_path):
    content = json.loads(encode_coco_annotations(SENT))
    for row in content["annotations"]:
        row["proposal"] = 4
    found = read(tmp_path, content)
    assert sorted(found.drawn["proposal"].fill_null(-1).to_list()) == [-1, -1, 4]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (json.dumps([task(0, done(1))]).encode()[:40], "not strict JSON"),
        (b"", "empty"),
        (b"[" * 100_000 + b"]" * 100_000, "nested more than"),
        (b'[{"id": 1, "data": {"image": "x"}, "annotations": [NaN]}]', "no number of JSON"),
        (b'{"a": 1}', "expected corrected proposals"),
        (b"[]", "list of tasks"),
        (b"[[]]", "a task should be an object"),
        (b'{"images": [], "annotations": 3, "categories": []}', "should be a list"),
        (b'{"images": [{"id": 1}, {"id": 1}], "annotations": [], "categories": []}', "stands twice"),
    ],
)
def test_broken_files_are_refused_whole(tmp_path, content, told):
    with pytest.raises(InputError, match=told):
        read(tmp_path, content)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (pl.DataFrame({"video": ["v"], "frame": [0]}), "no column x1_px"),
        (pl.DataFrame({"video": ["v"], "frame": ["a"], **dict.fromkeys(CORNERS, 1.0)}), "no table"),
        (pl.DataFrame({"video": ["v"], "frame": [0], **dict.fromkeys(CORNERS, float("nan"))}), "no finite"),
    ],
)
def test_tables_that_are_none(tmp_path, table, told):
    table.write_parquet(tmp_path / "a.parquet")
    with pytest.raises(InputError, match=told):
        read_corrections(tmp_path / "a.parquet", SENT)


def test_parquet_of_several_annotators_and_what_is_no_parquet(tmp_path):
    rows = {"video": ["v", "v", "z"], "frame": [0, 2, 0], "annotator": ["ann", "ben", "ann"]}
    edges = dict(
        zip(CORNERS, ([1.0, None, 1.0], [2.0, None, 2.0], [9.0, None, 9.0], [8.0, None, 8.0]), strict=True)
    )
    pl.DataFrame(rows | edges).write_parquet(tmp_path / "a.parquet")
    found = read_corrections(tmp_path / "a.parquet", SENT)
    assert found.drawn.select("annotator", *CORNERS).rows() == [("ann", 1.0, 2.0, 9.0, 8.0)]
    assert sorted(found.looked["annotator"].to_list()) == ["ann", "ben"]
    assert len(found.findings.table()) == 1
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    for name in ("b.parquet", "c.parquet"):
        with pytest.raises(InputError):
            read_corrections(tmp_path / name, SENT)
