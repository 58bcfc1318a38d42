"""`roadaware label`: from synthetic proposals to a consensus, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from small_files import Command

from roadaware.analysis.annotation.selection import read_image_list
from roadaware.errors import InputError
from roadaware.scenes.store import open_scenes


@pytest.fixture(scope="module")
def streets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, its tasks and what came back; nobody writes into them."""
    from roadaware.cli import main

    root = tmp_path_factory.mktemp("label")
    made = root / "streets"
    out = ["--videos", str(made / "scenes"), "--all", "--classes", "traffic_cone", "dog", "debris", "barrier"]
    for words in (
        ["example", str(made)],
        ["export", str(made / "proposals"), *out, "--out", str(root / "tasks")],
        ["import", str(root / "tasks"), str(made / "corrected.json"), "-o", str(root / "labels")],
    ):
        assert main(["label", *words, "-q"]) == 0
    return root


@pytest.mark.slow
def test_a_list_holds_all_pictures_with_reasons_and_feeds_an_export(
    roadaware: Command, streets: Path, tmp_path: Path
) -> None:
    proposals, scenes = streets / "streets/proposals", streets / "streets/scenes"
    words = ["label", "select", proposals, "--truth", scenes, "--resamples", "20", "-o", tmp_path / "list"]
    done = roadaware(*words)
    assert done.code == 0, done.err
    assert "measured on" in done.out
    table = pl.read_csv(tmp_path / "list" / "list.csv")
    assert len(table) == 72
    assert table["reason"].str.contains("proposal").all()
    assert read_image_list(tmp_path / "list") == read_image_list(tmp_path / "list" / "list.json")
    assert {"curve.png", "curve.csv", "report.html"} <= {path.name for path in (tmp_path / "list").iterdir()}
    out = ["--out", tmp_path / "few", "--list", tmp_path / "list", "--most", "3", "--copy"]
    made = roadaware("label", "export", proposals, "--videos", scenes, *out, "--json").data
    assert made["pictures"] == 3
    tasks = json.loads((tmp_path / "few/tasks.json").read_text())
    assert [task["data"]["video_name"] for task in tasks] == [
        f"{row['video']}/{row['frame']:06d}" for row in table.head(3).iter_rows(named=True)
    ]
    assert len(list((tmp_path / "few/pictures").rglob("*.png"))) == 3


def test_without_truth_only_what_is_known_is_told(roadaware: Command, streets: Path) -> None:
    done = roadaware("label", "select", streets / "streets/proposals")
    assert "images without a proposal are not known" in done.out
    assert "what the list misses is not known" in done.out
    data = roadaware(
        "label", "select", streets / "streets/proposals", "--videos", streets / "streets/scenes", "--json"
    ).data
    assert data["planned"]["pictures"] == 72
    assert data["measured"] is None


def test_corrections_become_labels_with_fates_times_and_a_page(streets: Path) -> None:
    scenes = open_scenes(streets / "labels/labels")
    assert set(scenes.boxes["annotator"]) == {"1", "2", "3"}
    told = json.loads((streets / "labels/results.json").read_text())
    whole = told["classes"][-1]
    assert whole["class"] == "all"
    assert whole["kept"] + whole["moved"] + whole["deleted"] == whole["proposals"]
    assert whole["kept"] + whole["moved"] + whole["added"] == len(scenes.boxes)
    assert [round(told["labour"][name]) for name in ("look_s", "judge_s")] == [8, 2]
    assert told["labour"]["draw_s"] == pytest.approx(30, abs=3)
    assert "What became of proposals" in (streets / "labels/report.html").read_text()


def test_agreement_makes_truth_and_a_list_of_disputes(
    roadaware: Command, streets: Path, tmp_path: Path
) -> None:
    draw = ["--draw", "2", "--videos", streets / "streets/scenes"]
    out = ["-o", tmp_path / "agreed", "--strict"]
    done = roadaware("label", "agree", streets / "labels", "--resamples", "20", *draw, *out)
    assert done.code == 1
    assert len(list((tmp_path / "agreed/disputed").glob("*.png"))) == 2
    assert "disputes" in done.err
    truth = open_scenes(tmp_path / "agreed/consensus")
    assert truth.boxes["corner_case"].all()
    disputes = pl.read_csv(tmp_path / "agreed/disputes.csv")
    told = json.loads((tmp_path / "agreed/results.json").read_text())
    assert (told["boxes_agreed"], told["disputes"]) == (len(truth.boxes), len(disputes))
    assert read_image_list(tmp_path / "agreed/disputes.csv")[0] == disputes.select("video", "frame").row(0)
    again = roadaware("label", "agree", streets / "labels/labels", "--resamples", "20", "--json").data
    assert again["agreement"] == told["agreement"]


def test_one_annotator_is_told_that_two_are_needed(roadaware: Command, streets: Path, tmp_path: Path) -> None:
    tasks = json.loads((streets / "streets/corrected.json").read_text())
    for task in tasks:
        task["annotations"] = task["annotations"][:1]
    tasks[0]["annotations"][0]["result"] += [{"id": "a", "type": "rectanglelabels", "value": {"x": 1}}]
    value = {"x": 95, "y": 1, "width": 9, "height": 9, "rectanglelabels": ["dog"]}
    tasks[0]["annotations"][0]["result"] += [{"id": "b", "type": "rectanglelabels", "value": value}]
    (tmp_path / "one.json").write_text(json.dumps(tasks))
    words = ["label", "import", streets / "tasks", tmp_path / "one.json", "-o", tmp_path / "one", "--strict"]
    done = roadaware(*words)
    assert done.code == 1
    assert "2 items were refused" in done.err
    done = roadaware("label", "agree", tmp_path / "one")
    assert done.code == 3
    assert "only 1 looked at these images" in done.err


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["import", "STREETS/list", "STREETS/streets/corrected.json"], 2, "no folder that"),
        (["import", "STREETS/tasks", "STREETS/streets/nothing.json"], 3, "nothing.json"),
        (["import", "STREETS/tasks", "STREETS/streets/planted.json"], 3, "expected corrected proposals"),
        (["import", "STREETS/tasks", "STREETS/streets/corrected.json", "--still-px", "-1"], 2, "--still-px"),
        (["agree", "STREETS/labels", "--iou", "0"], 2, "--iou"),
        (["agree", "STREETS/labels", "--draw", "3"], 2, "--draw needs --videos"),
        (["agree", "STREETS/streets/scenes"], 3, "no column 'annotator'"),
        (["select", "STREETS/streets/proposals", "--repeat", "2"], 2, "'repeat'"),
        (["select", "STREETS/streets/proposals", "--score", "x1_px"], 2, "does not lie from 0 to 1"),
        (["select", "STREETS/streets/proposals", "--look-s", "0"], 2, "seconds of work"),
        (["select", "STREETS/nothing"], 3, "nothing"),
        (["export", "STREETS/streets/proposals", "--videos", "STREETS/tasks", "--out", "OUT"], 3, "tasks"),
        (
            [
                "export",
                "STREETS/streets/proposals",
                "--videos",
                "STREETS/streets/scenes",
                "--out",
                "STREETS/tasks",
            ],
            2,
            "holds an earlier export",
        ),
        (
            [
                "export",
                "STREETS/streets/proposals",
                "--videos",
                "STREETS/streets/scenes",
                "--out",
                "STREETS/labels",
            ],
            2,
            "holds other things",
        ),
        (
            [
                *(
                    "export",
                    "STREETS/streets/proposals",
                    "--videos",
                    "STREETS/streets/scenes",
                    "--out",
                    "OUT",
                ),
                *("--list", "STREETS/streets/planted.json"),
            ],
            3,
            "expected a list",
        ),
        (
            [
                *(
                    "export",
                    "STREETS/streets/proposals",
                    "--videos",
                    "STREETS/streets/scenes",
                    "--out",
                    "OUT",
                ),
                *("--most", "0"),
            ],
            2,
            "--top",
        ),
    ],
)
def test_wrong_requests_say_what_is_wrong(
    roadaware: Command, streets: Path, tmp_path: Path, words: list[str], code: int, told: str
) -> None:
    given = [word.replace("STREETS", str(streets)).replace("OUT", str(tmp_path / "out")) for word in words]
    done = roadaware("label", *given)
    assert done.code == code, done.err
    assert told in done.err
    assert not (tmp_path / "out").exists()


def test_lists_of_others_are_read_and_broken_ones_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("frame,video,note\n3,v,x\n1,w,y\n")
    assert read_image_list(tmp_path / "a.csv") == [("v", 3), ("w", 1)]
    for name, content in (
        ("b.csv", "video\nv\n"),
        ("c.json", "[1]"),
        ("d.json", "{"),
        ("e.csv", "video,frame\n"),
    ):
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError):
            read_image_list(tmp_path / name)


def test_help_teaches_with_an_example(roadaware: Command) -> None:
    for verb in ("example", "select", "export", "import", "agree"):
        done = roadaware("label", verb, "--help")
        assert f"roadaware label {verb}" in done.out.split("For example:")[1]
