"""What `evaluate` of the tasks on scenes refuses, with which exit code, and what it says to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from small_files import Command

from roadaware.analysis.scene_tasks import TASKS

TRUTH = {"actions": "gt.csv", "relations": "truth", "grounding": "test_proc.json", "sound": "vggss.json"}
PREDICTIONS = {"actions": "pred.csv", "relations": "pred.json", "grounding": "pred.json", "sound": "maps.npz"}


def ask(task: str, truth: Path, predictions: Path, *more: object) -> list[object]:
    return ["evaluate", task, "--truth", truth, "--predictions", predictions, *more]


@pytest.mark.parametrize("task", TASKS)
def test_a_path_that_is_not_there_ends_with_3(roadaware: Command, chaos: Path, task: str) -> None:
    there = (chaos / task / TRUTH[task], chaos / task / PREDICTIONS[task])
    for truth, predictions in ((chaos / "nothing", there[1]), (there[0], chaos / "nothing")):
        done = roadaware(*ask(task, truth, predictions))
        assert done.code == 3
        assert "there is no such file or folder" in done.err
        assert "nothing" in done.err


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("content", ["", "{}", "[]", "\0\1\2", "no,such,thing\n", '{"a": [1'])
def test_a_truth_that_is_none_is_refused(
    roadaware: Command, chaos: Path, tmp_path: Path, task: str, content: str
) -> None:
    truth = tmp_path / "truth.any"
    truth.write_text(content)
    done = roadaware(*ask(task, truth, chaos / task / PREDICTIONS[task]))
    assert done.code == 3
    assert "truth.any" in done.err
    assert not done.out


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("content", ["[]", "\0\1\2", "video", '{"a": {"b": 1}}'])
def test_predictions_that_are_none_are_refused(
    roadaware: Command, chaos: Path, tmp_path: Path, task: str, content: str
) -> None:
    predictions = tmp_path / ("predictions.csv" if task == "actions" else "predictions.json")
    predictions.write_text(content)
    done = roadaware(*ask(task, chaos / task / TRUTH[task], predictions))
    assert done.code == 3
    assert "predictions." in done.err


def test_errors_of_a_metric_name_both_files(roadaware: Command, chaos: Path, tmp_path: Path) -> None:
    spans = json.loads((chaos / "grounding" / "pred.json").read_text())
    first, *others = sorted(spans["video_predictions"])
    spans["video_predictions"] = {first: spans["video_predictions"][first]}
    spans["predictions"] = {}
    (tmp_path / "pred.json").write_text(json.dumps(spans))
    with np.load(chaos / "sound" / "maps.npz") as held:
        name, *more = held
        np.savez(tmp_path / "maps.npz", **{name: held[name]})
    for task, lost, what in (("grounding", others, "sentences"), ("sound", more, "sounds")):
        truth, predictions = chaos / task / TRUTH[task], tmp_path / PREDICTIONS[task]
        done = roadaware(*ask(task, truth, predictions, "--set", "missing_prediction=error"))
        assert done.code == 3
        assert f"{predictions}, judged by {truth}: {len(lost)} of {len(lost) + 1} {what} have no" in done.err


def test_a_truth_without_what_its_format_is_known_by_says_how_to_learn_what_it_lacks(
    roadaware: Command, chaos: Path, tmp_path: Path
) -> None:
    listed = json.loads((chaos / "sound" / TRUTH["sound"]).read_text())
    truth = tmp_path / "vggss.json"
    truth.write_text(json.dumps([{"file": each["file"], "bbox": each["bbox"]} for each in listed]))
    words = ask("sound", truth, chaos / "sound" / PREDICTIONS["sound"])
    done = roadaware(*words)
    assert done.code == 3
    assert "sound takes vggss, flickr_soundnet" in done.err
    assert "--reader NAME" in done.err
    done = roadaware(*words, "--reader", "vggss")
    assert f"the first, {listed[0]['file']}: 'class' should be a text and is null" in done.err


EMPTY = {
    "actions": {"nothing.csv": "", "blank.csv": "\ufeff\n \n"},
    "relations": {"none.json": "{}", "no_results.json": '{"results": {}}'},
    "grounding": {"none.json": "{}", "no_spans.json": '{"predictions": {}, "video_predictions": {}}'},
    "sound": {"none.json": "{}", "none.npz": None, "folder": None},
}


@pytest.mark.slow
@pytest.mark.parametrize(("task", "name"), [(task, name) for task, held in EMPTY.items() for name in held])
def test_predictions_that_are_empty_score_0_everywhere_and_are_a_finding(
    roadaware: Command, chaos: Path, tmp_path: Path, task: str, name: str
) -> None:
    predictions, content = tmp_path / name, EMPTY[task][name]
    if content is not None:
        predictions.write_text(content, encoding="utf-8")
    elif predictions.suffix:
        np.savez(predictions)
    else:
        predictions.mkdir()
    truth = chaos / task / TRUTH[task]
    done = roadaware(*ask(task, truth, predictions, "--json"))
    assert done.code == 0, done.err
    assert set(done.data["summary"].values()) == {0}
    assert "predict nothing" in str(done.data["run"]["findings"])
    assert roadaware(*ask(task, truth, predictions, "--strict")).code == 1


def test_predictions_of_nothing_but_actions_that_the_truth_lacks_are_refused(
    roadaware: Command, chaos: Path, tmp_path: Path
) -> None:
    root, predictions = chaos / "actions", tmp_path / "predictions.csv"
    rows = [line.split(",") for line in (root / "pred.csv").read_text().split()]
    predictions.write_text("".join(",".join([*row[:6], "999", row[7]]) + "\n" for row in rows))
    done = roadaware(*ask("actions", root / "gt.csv", predictions, "--json"))
    assert done.code == 3
    assert "the action 999 is not in the label map" in done.err


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_predictions_all_of_which_are_refused_end_with_3_and_the_usual_reason(
    roadaware: Command, chaos: Path, tmp_path: Path, task: str
) -> None:
    root = chaos / task
    predictions = tmp_path / PREDICTIONS[task]
    if task == "actions":
        rows = [line.split(",") for line in (root / "pred.csv").read_text().split()]
        predictions.write_text("".join(",".join([*row[:7], "much"]) + "\n" for row in rows))
    elif task == "sound":
        held = np.load(root / "maps.npz")
        np.savez(predictions, **{name: np.full_like(held[name], np.nan) for name in held})
    else:
        data = json.loads((root / "pred.json").read_text())
        for each in data["results"].values() if task == "relations" else ():
            for prediction in each:
                prediction["duration"] = prediction["duration"][::-1]
        for prediction in data["video_predictions"].values() if task == "grounding" else ():
            prediction["sted"] = [frame / 24 + 0.01 for frame in prediction["sted"]]
        predictions.write_text(json.dumps(data))
    done = roadaware(*ask(task, root / TRUTH[task], predictions))
    assert done.code == 3
    reasons = {
        "actions": "the score should be a number",
        "relations": "ends before it has begun",
        "grounding": "no pair of whole frame numbers, are these seconds?",
        "sound": "hold NaN",
    }
    assert reasons[task] in done.err
    assert f"{predictions}: all" in done.err


@pytest.mark.slow
def test_scores_of_another_scale_are_named_with_their_range_and_remedy(
    roadaware: Command, chaos: Path, tmp_path: Path
) -> None:
    root, predictions = chaos / "actions", tmp_path / "predictions.csv"
    rows = [line.split(",") for line in (root / "pred.csv").read_text().split()]

    def scored(scale: float, shift: float, some: int) -> list[object]:
        lines = [[*row[:7], str(float(row[7]) * scale + shift)] for row in rows[:some]] + rows[some:]
        predictions.write_text("".join(",".join(line) + "\n" for line in lines))
        return ask("actions", root / "gt.csv", predictions)

    percent = roadaware(*scored(100, 0, len(rows)))
    assert percent.code == 3
    assert "scores lie outside [0, 1]; they run from" in percent.err
    assert "divide each by 100" in percent.err
    logits = roadaware(*scored(10, -5, len(rows)))
    assert logits.code == 3
    assert "write the sigmoid of each" in logits.err
    single = roadaware(*scored(0, 3.5, 1), "--json")
    assert single.code == 0
    assert single.data["run"]["findings"]


def test_an_empty_file_of_exclusions_excludes_nothing(
    roadaware: Command, chaos: Path, tmp_path: Path
) -> None:
    root, aside = chaos / "actions", tmp_path / "excluded.csv"
    aside.write_text("\n")
    asked = ask("actions", root / "gt.csv", root / "pred.csv", "--json")
    done = roadaware(*asked, "--exclude", aside)
    assert done.code == 0, done.err
    assert done.data["summary"] == roadaware(*asked).data["summary"]


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("other", TASKS)
def test_files_of_another_task_are_named(roadaware: Command, chaos: Path, task: str, other: str) -> None:
    if task == other:
        return
    done = roadaware(*ask(task, chaos / other / TRUTH[other], chaos / task / PREDICTIONS[task]))
    assert done.code == 3
    assert f"that is for `evaluate {other}`" in done.err
    done = roadaware(*ask(task, chaos / task / TRUTH[task], chaos / other / PREDICTIONS[other]))
    assert done.code == 3


def test_predictions_given_as_truth_are_recognised(roadaware: Command, chaos: Path) -> None:
    for task, words in (("relations", "predicted relations"), ("grounding", "predicted spans")):
        predictions = chaos / task / PREDICTIONS[task]
        done = roadaware(*ask(task, predictions, predictions))
        assert done.code == 3
        assert words in done.err


def test_predictions_about_other_videos_say_which_names_differ(
    roadaware: Command, chaos: Path, tmp_path: Path
) -> None:
    text = (chaos / "actions" / "pred.csv").read_text().replace("crowd-", "other-")
    (tmp_path / "pred.csv").write_text(text)
    done = roadaware(*ask("actions", chaos / "actions" / "gt.csv", tmp_path / "pred.csv"))
    assert done.code == 3
    assert "other-" in done.err
    assert "crowd-" in done.err
    found = json.loads((chaos / "relations" / "pred.json").read_text())
    found["results"] = {f"x{video}": held for video, held in found["results"].items()}
    (tmp_path / "pred.json").write_text(json.dumps(found))
    done = roadaware(*ask("relations", chaos / "relations" / "truth", tmp_path / "pred.json"))
    assert done.code == 3
    assert "xcrowd-" in done.err


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ava_official", "did you mean ava-official?"),
        ("vidvrd", "that one is for `evaluate relations`"),
        ("x", "is one of default, ava-official"),
    ],
)
def test_a_config_of_another_name_is_refused(
    roadaware: Command, chaos: Path, name: str, message: str
) -> None:
    root = chaos / "actions"
    done = roadaware(*ask("actions", root / "gt.csv", root / "pred.csv", "--config", name))
    assert done.code == 2
    assert message in done.err


def test_a_reader_is_named_in_its_place(roadaware: Command, chaos: Path, tmp_path: Path) -> None:
    root = chaos / "actions"
    for name, message in (("avaa", "did you mean ava?"), ("vidvrd", "is one of ava, chaotic_world")):
        done = roadaware(*ask("actions", root / "gt.csv", root / "pred.csv", "--reader", name))
        assert done.code == 2
        assert message in done.err
    assert roadaware(*ask("actions", root / "gt.csv", root / "pred.csv", "--reader", "ava")).code == 0
    assert roadaware("read", "ava", root / "gt.csv", "-o", tmp_path / "saved").code == 0
    done = roadaware(*ask("actions", tmp_path / "saved", root / "pred.csv", "--reader", "ava"))
    assert done.code == 2
    assert "holds tables that were read already" in done.err


def test_a_header_on_annotations_of_ava_is_named(roadaware: Command, chaos: Path, tmp_path: Path) -> None:
    root, truth = chaos / "actions", tmp_path / "gt.csv"
    truth.write_text("video,t,x1,y1,x2,y2,label,person\n" + (root / "gt.csv").read_text())
    labels = ("--labels", root / "action_list.pbtxt")
    done = roadaware(*ask("actions", truth, root / "pred.csv", *labels))
    assert done.code == 3
    assert "the header video,t,x1,y1" in done.err
    assert "delete the header" in done.err


def test_what_is_refused_or_odd_turns_strict_into_1(roadaware: Command, chaos: Path, tmp_path: Path) -> None:
    root = chaos / "actions"
    rows = (root / "gt.csv").read_text()
    (tmp_path / "gt.csv").write_text(f"{rows}crowd-01,0905,0.9,0.1,0.2,0.5,79,1\n")
    words = ask("actions", tmp_path / "gt.csv", root / "pred.csv")
    lenient = roadaware(*words)
    assert lenient.code == 0
    assert "of the truth refused" in lenient.out
    done = roadaware(*words, "--strict")
    assert done.code == 1
    assert "--strict: 1 rows or files of the truth refused" in done.err


def test_outputs_stay_out_of_inputs(roadaware: Command, chaos: Path, tmp_path: Path) -> None:
    root = shutil.copytree(chaos / "sound", tmp_path / "sound")
    words = ask("sound", root / "vggss.json", root / "maps.npz")
    for more in (["--json", root / "maps.npz"], ["--html", root / "vggss.json"]):
        done = roadaware(*words, *more)
        assert done.code == 2
        assert "would be written over the input" in done.err
    done = roadaware(*words, "-o", root)
    assert done.code == 2
    assert "holds other things" in done.err


@pytest.mark.slow
def test_an_empty_truth_of_the_right_kind_says_that_there_is_nothing(
    roadaware: Command, chaos: Path, tmp_path: Path
) -> None:
    path = tmp_path / "truth"
    shutil.copytree(chaos / "relations" / "truth", path)
    for file in path.iterdir():
        found = json.loads(file.read_text())
        found["relation_instances"] = []
        file.write_text(json.dumps(found))
    done = roadaware(*ask("relations", path, chaos / "relations" / "pred.json"))
    assert done.code == 3
    assert "no relations" in done.err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("first_frame", "needs OPTION=VALUE"),
        ("frst_frame=0", "did you mean first_frame?"),
        ("first_frame=7", "first_frame"),
        ("fps=25", "it has first_frame"),
    ],
)
def test_an_option_that_the_reader_lacks_is_refused(
    roadaware: Command, chaos: Path, option: str, message: str
) -> None:
    root = chaos / "grounding"
    done = roadaware(*ask("grounding", root / "test_proc.json", root / "pred.json", "--option", option))
    assert done.code == 2
    assert message in done.err
    done = roadaware("read", "hcstvg", root / "test_proc.json", "--option", option)
    assert done.code == 2
