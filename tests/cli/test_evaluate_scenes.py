"""`evaluate actions`, `relations`, `grounding`, `sound`: every task end to end on native files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_files import Command

from roadaware.analysis.scene_tasks import TASKS, list_configs, read_predictions
from roadaware.datasets import read
from roadaware.scenes.store import save

TASK_FILES = {
    "actions": ("ava", "gt.csv", "pred.csv", "map@0.5", "ap@0.5"),
    "relations": ("vidvrd", "truth", "pred.json", "recall@50", "recall@50"),
    "grounding": ("hcstvg", "test_proc.json", "pred.json", "m_viou", "m_viou"),
    "sound": ("vggss", "vggss.json", "maps.npz", "ciou", "ciou"),
}
KEYS = {
    *("summary", "per_class", "intervals", "cautions", "groups", "baselines"),
    *("left_out", "facts", "config", "run"),
}


def words(chaos: Path, task: str) -> list[object]:
    _, truth, predictions, *_ = TASK_FILES[task]
    return ["evaluate", task, "--truth", chaos / task / truth, "--predictions", chaos / task / predictions]


@pytest.mark.parametrize("task", TASKS)
def test_native_files_are_scored_and_the_json_has_the_documented_keys(
    roadaware: Command, chaos: Path, task: str
) -> None:
    done = roadaware(*words(chaos, task), "--resamples", "20", "--json")
    assert done.code == 0, done.err
    data, (*_, metric, of_class) = done.data, TASK_FILES[task]
    assert set(data) == KEYS
    assert 0 < data["summary"][metric] < 1
    low, high = data["intervals"][metric]
    assert 0 <= low <= high <= 1
    assert data["per_class"]
    assert all(set(held) >= {of_class} for held in data["per_class"].values())
    assert data["facts"]
    run = data["run"]
    assert (run["task"], run["config_name"], run["resamples"]) == (task, "default", 20)
    assert len(run["truth"]["digest"]) == 16
    if task == "sound":
        assert set(data["baselines"]) == {"whole image", "centre"}


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_saved_tables_give_the_same_numbers_as_native_files(
    roadaware: Command, chaos: Path, tmp_path: Path, task: str
) -> None:
    reader, truth, predictions, *_ = TASK_FILES[task]
    scenes = read(reader, chaos / task / truth, cache=False)
    save(scenes, tmp_path / "truth")
    save(read_predictions(TASKS[task], chaos / task / predictions, scenes), tmp_path / "predictions")
    native = roadaware(*words(chaos, task), "--json").data
    saved = roadaware(
        *(
            "evaluate",
            task,
            "--truth",
            tmp_path / "truth",
            "--predictions",
            tmp_path / "predictions",
            "--json",
        )
    ).data
    for part in ("summary", "per_class", "facts"):
        assert saved[part] == native[part]
    assert saved["run"]["truth"]["digest"] == native["run"]["truth"]["digest"]


@pytest.mark.parametrize("task", TASKS)
def test_tables_that_were_saved_are_read_and_examined_under_the_name_of_their_reader(
    roadaware: Command, chaos: Path, tmp_path: Path, task: str
) -> None:
    reader, truth, *_ = TASK_FILES[task]
    assert roadaware("read", reader, chaos / task / truth, "-o", tmp_path / "tables").code == 0
    for command in ("read", "doctor"):
        done = roadaware(command, reader, tmp_path / "tables")
        assert done.code == 0, done.err
    done = roadaware("read", "pie", tmp_path / "tables")
    assert done.code == 3
    assert "expected tables of PIE, found those of" in done.err


@pytest.mark.parametrize("task", TASKS)
def test_the_text_shows_facts_metrics_and_classes(roadaware: Command, chaos: Path, task: str) -> None:
    done = roadaware(*words(chaos, task), "--resamples", "20")
    metric = TASK_FILES[task][3]
    lines = done.out.splitlines()
    assert "config default" in lines[0]
    assert any(line.startswith(f"{metric} ") for line in lines)
    assert "95 % by video" in done.out
    assert {"actions": "per frame capacity: none", "sound": "whole image"}.get(task, metric) in done.out


@pytest.mark.slow
def test_every_config_has_a_name_that_runs_or_says_why_not(roadaware: Command, chaos: Path) -> None:
    for name, task in TASKS.items():
        for config in list_configs(task):
            done = roadaware(*words(chaos, name), "--config", config, "--json")
            if (name, config) == ("grounding", "tubedetr-vidstg"):  # HC-STVG's files tell no rate
                assert done.code == 3
                assert "rate is unknown" in done.err
                continue
            assert done.code == 0, done.err
            assert done.data["run"]["config_name"] == config


def test_label_map_and_exclusions_are_taken(roadaware: Command, chaos: Path) -> None:
    root = chaos / "actions"
    done = roadaware(
        *words(chaos, "actions"),
        *("--labels", root / "action_list.pbtxt", "--exclude", root / "excluded.csv", "--json"),
    )
    assert "walking" in done.data["per_class"]
    assert done.data["facts"]["frames_excluded"] == 1
    plain = roadaware(*words(chaos, "actions"), "--json").data
    assert plain["facts"]["frames_excluded"] == 0
    assert all(label.isdigit() for label in plain["per_class"])


def test_slices_are_named_by_column_and_value(roadaware: Command, chaos: Path) -> None:
    data = roadaware(*words(chaos, "relations"), "--by", "density", "--json").data
    assert data["groups"]
    assert all(name.startswith("density: ") for name in data["groups"])
    shown = roadaware(*words(chaos, "relations"), "--by", "density").out
    assert "slice" in shown
    done = roadaware(*words(chaos, "relations"), "--by", "weather")
    assert done.code == 2
    assert "nothing to slice by in 'weather'" in done.err


def test_single_fields_of_a_config_are_changed_and_named(roadaware: Command, chaos: Path) -> None:
    done = roadaware(*words(chaos, "relations"), "--set", "viou_threshold=0.99", "recall_at=[5]", "--json")
    assert done.data["config"]["viou_threshold"] == 0.99
    assert "recall@5" in done.data["summary"]
    assert done.data["run"]["config_name"] == "default, viou_threshold=0.99, recall_at=[5]"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("viou=1", "did you mean viou_threshold?"),
        ("viou_threshold", "--set needs FIELD=VALUE"),
        ("viou_threshold=high", "expected a number; got 'high'"),
        ("recall_at=5", "expected a list"),
        ("setting=sgcls", "setting"),
        ("several_truths=2", "expected true or false"),
    ],
)
def test_a_field_or_value_that_does_not_exist_is_named(
    roadaware: Command, chaos: Path, change: str, message: str
) -> None:
    done = roadaware(*words(chaos, "relations"), "--set", change)
    assert done.code == 2
    assert message in done.err


def test_bars_are_fractions_and_undefined_misses(roadaware: Command, chaos: Path) -> None:
    ask = words(chaos, "actions")
    assert roadaware(*ask, "--fail-under", "map@0.5=0.01").code == 0
    done = roadaware(*ask, "--fail-under", "map@0.5=0.999")
    assert done.code == 1
    assert "below --fail-under: map@0.5 is 0." in done.err
    for bar, message in (
        ("map@0.5=40", "bars are fractions; write 0.4"),
        ("map@0.5=x", "not a number from 0 to 1"),
        ("map=0.4", "Did you mean map@0.5"),
        ("map", "needs METRIC=VALUE"),
    ):
        done = roadaware(*ask, "--fail-under", bar)
        assert done.code == 2
        assert message in done.err


def test_a_page_is_written_without_a_run_folder(roadaware: Command, chaos: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert roadaware(*words(chaos, "grounding"), "--html", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "Content-Security-Policy" in text
    assert "Sentences, the worst and the best" in text
    assert str(chaos) not in text


def test_equal_seeds_give_equal_json(roadaware: Command, chaos: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        words_ = [*words(chaos, "sound"), "--resamples", "30", "--seed", "7", "--json", tmp_path / name]
        assert roadaware(*words_).code == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert json.loads((tmp_path / "a").read_text())["run"]["seed"] == 7


def test_options_reach_the_reader(roadaware: Command, chaos: Path) -> None:
    ask = [*words(chaos, "grounding"), "--json"]
    assert roadaware(*ask).data["facts"]["first_frame"] == 1
    assert roadaware(*ask, "--option", "first_frame=0").data["facts"]["first_frame"] == 0


def test_moments_left_aside_count_for_saved_tables_too(
    roadaware: Command, chaos: Path, tmp_path: Path
) -> None:
    root = chaos / "actions"
    assert roadaware("read", "ava", root / "gt.csv", "-o", tmp_path / "saved").code == 0
    ask = ["evaluate", "actions", "--predictions", root / "pred.csv", "--exclude", root / "excluded.csv"]
    saved = roadaware(*ask, "--truth", tmp_path / "saved", "--json").data
    native = roadaware(*ask, "--truth", root / "gt.csv", "--json").data
    assert saved["facts"]["frames_excluded"] == 1
    assert saved["summary"] == native["summary"]


def test_a_list_of_labels_chooses_and_names_actions_of_saved_tables_too(
    roadaware: Command, chaos: Path, tmp_path: Path
) -> None:
    root, some = chaos / "actions", tmp_path / "some.csv"
    ids = sorted({int(line.split(",")[6]) for line in (root / "gt.csv").read_text().split()})
    some.write_text("id,name\n" + "".join(f"{number},deed {number}\n" for number in ids[:3]))
    assert roadaware("read", "ava", root / "gt.csv", "-o", tmp_path / "bare").code == 0
    ask = ["evaluate", "actions", "--predictions", root / "pred.csv", "--json"]
    for labels in (some, root / "action_list.pbtxt"):
        native = roadaware(*ask, "--truth", root / "gt.csv", "--labels", labels).data
        saved = roadaware(*ask, "--truth", tmp_path / "bare", "--labels", labels).data
        for part in ("summary", "per_class", "facts"):
            assert saved[part] == native[part]
    named = [*ask, "--truth", tmp_path / "named", "--labels", some]
    assert roadaware("read", "ava", root / "gt.csv", "--option", f"labels={some}", "-o", named[-3]).code == 0
    assert set(roadaware(*named).data["per_class"]) == {f"deed {number}" for number in ids[:3]}


CHAOTIC = "video_uid,frame_id,x1,y1,x2,y2,action_id,person_id,frame_start,frame_end,time_current\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "some",
    [
        pytest.param("13,extinguishing fire\n50,waving hands\n", id="numbered as its own list"),
        pytest.param("0,aiming\n12,extinguishing fire\n49,waving\n", id="numbered as the csv"),
        pytest.param("12,extinguishing fire\n", id="numbered as names tell"),
    ],
)
def test_chaotic_world_takes_a_list_of_labels(roadaware: Command, tmp_path: Path, some: str) -> None:
    names = [line.split(",")[1] for line in some.split("\n") if line]
    rows = [f"ADCCAWWD,{25 * s + 1},0.1,0.2,0.5,0.9,{a},3,1,50,{s}.0" for s in (1, 2) for a in (12, 48, 49)]
    (tmp_path / "truth.csv").write_text(CHAOTIC + "\n".join(rows) + "\n")
    predictions = [",".join([*row.split(",")[:7], "0.5"]) for row in rows]
    (tmp_path / "predictions.csv").write_text("\n".join(predictions) + "\n")
    (tmp_path / "some.csv").write_text(some)
    assert roadaware("read", "chaotic_world", tmp_path / "truth.csv", "-o", tmp_path / "saved").code == 0
    for truth in (tmp_path / "truth.csv", tmp_path / "saved"):
        ask = [
            "evaluate",
            "actions",
            "--truth",
            truth,
            "--predictions",
            tmp_path / "predictions.csv",
            "--json",
        ]
        found = roadaware(*ask, "--labels", tmp_path / "some.csv")
        assert found.code == 0, found.err
        assert set(found.data["per_class"]) == set(names)
        assert found.data["summary"] == {"map@0.5": 1.0}
        assert found.data["per_class"]["extinguishing fire"] == {"ap@0.5": 1.0}


def test_chaotic_world_is_read_with_its_header_and_moments_left_aside(
    roadaware: Command, tmp_path: Path
) -> None:
    head = "video_uid,frame_id,x1,y1,x2,y2,action_id,person_id,frame_start,frame_end,time_current"
    rows = [f"ADCCAWWD,{25 * s + 1},0.1,0.2,0.5,0.9,{a},3,1,50,{s}.0" for s in (1, 2) for a in (12, 49)]
    (tmp_path / "truth.csv").write_text("\n".join([head, *rows]) + "\n")
    predictions = [f"ADCCAWWD,{25 * s + 1},0.1,0.2,0.5,0.9,{a},0.{s}" for s in (1, 2) for a in (12, 49)]
    (tmp_path / "predictions.csv").write_text("\n".join(predictions) + "\n")
    (tmp_path / "aside.csv").write_text("ADCCAWWD,51\n")
    ask = [
        "evaluate",
        "actions",
        "--truth",
        tmp_path / "truth.csv",
        "--predictions",
        tmp_path / "predictions.csv",
    ]
    found = roadaware(*ask, "--json")
    assert found.code == 0, found.err
    assert found.data["summary"] == {"map@0.5": 1.0}
    assert set(found.data["per_class"]) >= {"waving hands", "extinguishing fire"}
    assert found.data["facts"]["frames_judged"] == 2
    aside = roadaware(*ask, "--exclude", tmp_path / "aside.csv", "--json").data
    assert aside["facts"]["frames_judged"] == 1
    assert aside["facts"]["frames_excluded"] == 1


def test_a_folder_and_a_file_inside_the_layout_of_chaotic_world_are_truth(
    roadaware: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "AR_ava_format" / "annotation"
    folder.mkdir(parents=True)
    predictions = []
    for video in ("ADCCAWWD", "BDCCAWWQ"):
        rows = [f"{video},{25 * s + 1},0.1,0.2,0.5,0.9,12,3,1,50,{s}.0" for s in (1, 2)]
        (folder / f"{video}.csv").write_text(CHAOTIC + "\n".join(rows) + "\n")
        predictions += [",".join([*row.split(",")[:7], "0.5"]) for row in rows]
    (tmp_path / "predictions.csv").write_text("\n".join(predictions) + "\n")
    for truth, frames in ((folder, 4), (folder / "BDCCAWWQ.csv", 2), (tmp_path / "AR_ava_format", 4)):
        ask = [
            "evaluate",
            "actions",
            "--truth",
            truth,
            "--predictions",
            tmp_path / "predictions.csv",
            "--json",
        ]
        found = roadaware(*ask)
        assert found.code == 0, found.err
        assert found.data["summary"] == {"map@0.5": 1.0}
        assert found.data["facts"]["frames_judged"] == frames
