"""CODA's separation of classes and its routing of predictions, case by case."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from roadaware.errors import InputError, UsageError
from roadaware.metrics.corner_cases.evaluate import UNANSWERED
from roadaware.protocols.coda import (
    TRAINING_SETS,
    drop_classes,
    label_own_predictions,
    label_predictions,
    label_truth,
    load_training_set,
    map_own_categories,
)
from roadaware.scenes.tables import Meta, Predictions, Scenes

ROUTES = {
    "soda10m": {
        "Pedestrian": ("pedestrian", False),
        "Cyclist": ("cyclist", False),
        "Car": ("vehicle", False),
        "Truck": ("vehicle", False),
        "Tram": ("vehicle", False),
        "Tricycle": ("vehicle", False),
        "unknown": (None, True),
    },
    "bdd100k": {
        "pedestrian": ("pedestrian", False),
        "person": ("pedestrian", False),
        "rider": ("cyclist", False),
        "car": ("vehicle", False),
        "truck": ("vehicle", False),
        "train": ("vehicle", False),
        "bus": (None, True),
        "motorcycle": (None, True),
        "motor": (None, True),
        "bicycle": (None, True),
        "bike": (None, True),
        "traffic light": (None, True),
        "traffic sign": (None, True),
    },
    "waymo": {
        "vehicle": ("vehicle", True),
        "pedestrian": ("pedestrian", False),
        "cyclist": ("cyclist", False),
        "sign": (None, False),
    },
}
CASES = [(name, label, *to) for name, labels in ROUTES.items() for label, to in labels.items()]


def predictions(*labels: str) -> Predictions:
    """One box of each label."""
    n = len(labels)
    corners = {name: [0.0] * n for name in ("x1_px", "y1_px", "x2_px", "y2_px")}
    return Predictions(
        videos=pl.DataFrame({"video": ["a"]}),
        boxes=pl.DataFrame(
            {"box": range(n), "video": ["a"] * n, "frame": [0] * n, **corners, "score": [0.5] * n}
        ),
        labels=pl.DataFrame({"box": range(n), "kind": ["corner"] * n, "label": range(n), "score": [0.5] * n}),
        meta=Meta(vocabularies={"corner": labels}),
    )


def truth(*labels: str, kind: str = "corner") -> Scenes:
    held = predictions(*labels)
    return Scenes(
        videos=held.videos,
        boxes=held.boxes.drop("score"),
        labels=held.labels.drop("score").with_columns(kind=pl.lit(kind)),
        meta=Meta(vocabularies={kind: labels}),
    )


def answers(boxes: pl.DataFrame) -> list[tuple[str | None, bool]]:
    return boxes.select("common", "novel").rows()


@pytest.mark.parametrize(("name", "label", "common", "novel"), CASES)
def test_every_route(name: str, label: str, common: str | None, novel: bool) -> None:
    found = label_predictions(predictions(label), load_training_set(name))
    assert answers(found.boxes) == [(common, novel)]
    unanswered = found.meta.notes[UNANSWERED]
    assert ("common" in unanswered) == (common is None)
    assert ("novel" in unanswered) == (not novel)
    assert "classes" in unanswered


def test_every_class_of_every_training_set_has_a_case() -> None:
    for name in TRAINING_SETS:
        held = {route.label for route in load_training_set(name).routes}
        assert held == {label.lower() for label in ROUTES[name]} - {"person", "motor", "bike"}


def test_a_closed_world_of_soda10m_answers_nothing_novel_and_an_open_one_does() -> None:
    soda = load_training_set("soda10m")
    closed = label_predictions(predictions(*soda.categories.values()), soda)
    assert closed.meta.notes[UNANSWERED]["novel"] == "a detector that learnt on soda10m names no novel object"
    opened = label_predictions(predictions(*soda.categories.values(), "unknown"), soda)
    assert "novel" not in opened.meta.notes[UNANSWERED]
    assert opened.boxes["novel"].to_list() == [False] * 6 + [True]


def test_numbers_of_the_training_sets() -> None:
    assert load_training_set("soda10m").categories[6] == "tricycle"
    assert load_training_set("bdd100k").categories[10] == "traffic sign"
    assert load_training_set("waymo").categories == {1: "vehicle", 2: "pedestrian", 3: "sign", 4: "cyclist"}


def test_labels_of_another_set_are_refused_or_answer_nothing() -> None:
    with pytest.raises(InputError, match="none of the classes zebra is one of waymo"):
        label_predictions(predictions("zebra"), load_training_set("waymo"))
    assert answers(label_predictions(predictions("zebra", "vehicle"), load_training_set("waymo")).boxes) == [
        (None, False),
        ("vehicle", True),
    ]


def test_proposals_have_no_classes() -> None:
    found = drop_classes(predictions("car", "dog"))
    assert answers(found.boxes) == [(None, False)] * 2
    assert set(found.meta.notes[UNANSWERED]) == {"common", "novel", "classes"}


@pytest.mark.parametrize(
    ("label", "base", "later"),
    [
        ("pedestrian", "pedestrian", "pedestrian"),
        ("cyclist", "cyclist", "cyclist"),
        *((word, "vehicle", "vehicle") for word in ("car", "truck", "tram", "tricycle")),
        ("bus", None, "vehicle"),
        *((word, None, None) for word in ("bicycle", "construction_vehicle", "dog", "misc", "sofa")),
    ],
)
def test_what_is_common_by_version(label: str, base: str | None, later: str | None) -> None:
    assert answers(label_truth(truth(label)).boxes) == [(base, base is None)]
    assert answers(label_truth(truth(label), "2022").boxes) == [(later, later is None)]
    apart = label if later else None
    assert answers(label_truth(truth(label), "2022", merged=False).boxes) == [(apart, later is None)]
    assert answers(label_own_predictions(predictions(label), "2022").boxes) == [(later, later is None)]


def test_objects_without_a_class_are_novel_and_agents_count_as_what_they_are() -> None:
    scenes = truth("car", "dog")
    assert answers(label_truth(scenes.with_tables(labels=scenes.labels.head(1))).boxes) == [
        ("vehicle", False),
        (None, True),
    ]
    agents = label_truth(truth("Ped", "Cyc", "Car", "LarVeh", "Bus", "TL", kind="agent"))
    assert agents.boxes["common"].to_list() == ["pedestrian", "cyclist", "vehicle", "vehicle", None, None]
    assert agents.meta.vocabularies["corner_super"] == (
        "pedestrian",
        "cyclist",
        "vehicle",
        "traffic facility",
    )


def test_super_classes_of_the_file_stay() -> None:
    scenes = truth("dog")
    named = scenes.with_tables(
        labels=pl.concat([scenes.labels, scenes.labels.with_columns(kind=pl.lit("corner_super"))]),
        meta=Meta(vocabularies={"corner": ("dog",), "corner_super": ("beast",)}),
    )
    assert label_truth(named).meta.vocabularies["corner_super"] == ("beast",)
    assert label_truth(scenes).meta.vocabularies["corner_super"] == ("animal",)


def test_a_training_set_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("id,label,common,novel,also\n1,walker,pedestrian,no,person\n2,stuff,,yes,\n")
    mine = load_training_set(str(path))
    assert (mine.name, mine.categories) == ("mine", {1: "walker", 2: "stuff"})
    assert answers(label_predictions(predictions("person", "stuff"), mine).boxes) == [
        ("pedestrian", False),
        (None, True),
    ]
    path.write_text("id,label\n")
    with pytest.raises(InputError, match="lacks common, novel"):
        load_training_set(str(path))
    path.write_text("id,label,common,novel\n1,a,,maybe\n")
    with pytest.raises(InputError, match="maybe"):
        load_training_set(str(path))
    path.write_text("id,label,common,novel\n1,a,,yes\n2,A,,yes\n")
    with pytest.raises(InputError, match="stands twice"):
        load_training_set(str(path))
    with pytest.raises(UsageError, match="soda10m, bdd100k, waymo, coda"):
        load_training_set("kitti")


def test_results_may_name_classes_that_a_file_of_common_ones_does_not() -> None:
    found = map_own_categories({"pedestrian": 1, "car": 3, "bus": 7})
    assert (found[3], found[17], found[12], len(found)) == ("car", "dog", "class 12", 43)
    assert map_own_categories({"car": 1, "dog": 2}) == {1: "car", 2: "dog"}, (
        "the numbers are not those of 2022"
    )
