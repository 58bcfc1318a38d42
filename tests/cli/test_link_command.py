"""`link`: detections in any form become tubes in tables, and every wrong request is one message."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from event_files import Events
from small_files import Command

from roadaware.linking.config import LinkerConfig
from roadaware.linking.link import link
from roadaware.scenes.store import open_predictions


@pytest.mark.slow
@pytest.mark.parametrize("config", ["reference", "default"])
def test_the_command_writes_what_the_library_links(
    roadaware: Command, events: Events, tmp_path: Path, config: str
) -> None:
    out = tmp_path / "linked"
    done = roadaware("link", events.saved, "--config", config, "--out", out, "--json")
    assert done.code == 0
    chosen = LinkerConfig.reference("road") if config == "reference" else LinkerConfig.default("road")
    assert open_predictions(out) == link(events.predictions, chosen)
    paths = open_predictions(out).tubes.filter(pl.col("parent").is_null())
    assert done.data["paths"] == len(paths) > 0
    assert done.data["detections"] == len(events.predictions.boxes)


@pytest.mark.slow
@pytest.mark.parametrize("on", ["local", "ray://local"])
def test_two_workers_write_the_bytes_of_one(
    roadaware: Command, events: Events, tmp_path: Path, on: str
) -> None:
    if on != "local":
        pytest.importorskip("ray")
    assert roadaware("link", events.saved, "--out", tmp_path / "one").code == 0
    done = roadaware("link", events.saved, "--out", tmp_path / "two", "--processes", "2", "--on", on)
    assert done.code == 0, done.err
    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).rglob("*.*")} for name in ("one", "two")
    )
    assert one == two
    assert len(open_predictions(tmp_path / "one").videos) > 1


def test_a_folder_of_pickles_gives_the_tubes_of_the_tables(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    words = ("--truth", events.truth, "--config", "reference", "--json")
    found = [
        roadaware("link", path, "--out", tmp_path / path.name, *words).data
        for path in (events.folder, events.saved)
    ]
    for name in ("paths", "labelled tubes", "linked detections"):
        assert found[0][name] == found[1][name]


def test_names_of_labels_come_from_the_truth(roadaware: Command, events: Events, tmp_path: Path) -> None:
    assert roadaware("link", events.folder, "--truth", events.truth, "--out", tmp_path / "a").code == 0
    assert open_predictions(tmp_path / "a").meta.vocabularies["agent"][0] == "Ped"
    assert roadaware("link", events.folder, "--out", tmp_path / "b").code == 0
    assert open_predictions(tmp_path / "b").meta.vocabularies["agent"][0] == "agent 0"


def test_options_change_the_linker(roadaware: Command, events: Events, tmp_path: Path) -> None:
    words = [
        "--iou",
        "0.25",
        "--jump-gap",
        "2",
        "--edge",
        "iou",
        "--assignment",
        "hungarian",
        "--trim",
        "indiv",
    ]
    done = roadaware("link", events.saved, "--out", tmp_path / "out", "--json", *words)
    config = done.data["config"]
    assert (config["min_iou"], config["jump_gap"], config["cost"]) == (0.25, 2, "iou")
    assert (config["assignment"], config["trim"]) == ("hungarian", "indiv")


def test_products_of_marginals_change_composite_scores_alone(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    for how in ("joint", "product"):
        done = roadaware("link", events.saved, "--composites", how, "--out", tmp_path / how)
        assert done.code == 0
    joint, product = (open_predictions(tmp_path / how) for how in ("joint", "product"))
    for kind, same in (("agent", True), ("duplex", False)):
        held = [
            tables.tube_labels.filter(pl.col("kind").cast(pl.String) == kind)["score"].to_list()
            for tables in (joint, product)
        ]
        assert (held[0] == held[1]) is same


def test_an_earlier_result_is_not_replaced_unless_asked(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    words = ["link", events.saved, "--out", tmp_path / "out"]
    assert roadaware(*words).code == 0
    assert roadaware(*words).code == 2
    assert roadaware(*words, "--overwrite").code == 0


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["absent"], 3, "there is no such file or folder"),
        (["PREDICTIONS", "--size", "big"], 2, "WIDTHxHEIGHT"),
        (["PREDICTIONS", "--size", "0x512"], 2, "WIDTHxHEIGHT"),
        (["PREDICTIONS", "--iou", "2"], 2, "--iou"),
        (["PREDICTIONS", "--jump-gap", "-1"], 2, "jump_gap"),
        (["PREDICTIONS", "--edge", "scores"], 2, "score"),
        (["FOLDER", "--truth", "absent.json"], 3, "absent.json"),
        (["TRUTH"], 2, "say --truth"),
        (["notes.md"], 3, "ends in '.md'"),
    ],
)
def test_wrong_requests(
    roadaware: Command,
    events: Events,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.md").write_text("dear")
    places = {"PREDICTIONS": events.saved, "FOLDER": events.folder, "TRUTH": events.truth}
    done = roadaware("link", *(places.get(word, word) for word in words), "--out", "out")
    assert done.code == code
    assert says in done.err
    assert not (tmp_path / "out").exists()


def test_tubes_are_not_linked_again(roadaware: Command, events: Events, tmp_path: Path) -> None:
    assert roadaware("link", events.saved, "--out", tmp_path / "out").code == 0
    done = roadaware("link", tmp_path / "out", "--out", tmp_path / "again")
    assert done.code == 3
    assert "found tubes" in done.err


def test_the_result_does_not_go_into_its_input(roadaware: Command, events: Events) -> None:
    done = roadaware("link", events.saved, "--out", events.saved, "--overwrite")
    assert done.code == 2
    assert "would be written over the input" in done.err


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (open, ("exploded", "w"))


def test_a_pickle_that_would_act_is_refused_by_name(
    roadaware: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "detections" / "v1"
    place.mkdir(parents=True)
    (place / "00001.pkl").write_bytes(pickle.dumps(Bomb()))
    done = roadaware("link", tmp_path / "detections", "--out", "out")
    assert done.code == 3
    assert "00001.pkl" in done.err
    assert "open" in done.err
    assert not (tmp_path / "exploded").exists()
    assert not (tmp_path / "out").exists()


def test_one_bad_file_among_many_is_counted_and_named(
    roadaware: Command, events: Events, tmp_path: Path
) -> None:
    place = tmp_path / "detections" / "drive"
    place.mkdir(parents=True)
    good = {"ego": np.zeros(7, np.float32), "main": np.full((1, 153), 0.5, np.float32)}
    good["main"][0, :4] = (1, 2, 30, 40)
    for frame in range(1, 9):
        (place / f"{frame:05d}.pkl").write_bytes(pickle.dumps(good))
    (place / "00009.pkl").write_bytes(b"not a pickle")
    done = roadaware("link", tmp_path / "detections", "--out", tmp_path / "out", "--json")
    assert done.code == 0
    assert list(done.data["dropped"].values()) == [1]
    assert "00009.pkl" in next(iter(done.data["dropped"]))
    assert done.data["detections"] == 8
