"""`evaluate`: strict JSON that agrees with scikit-learn, and one clear message for every bad file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk
from small_files import Command, Files, write_files

from roadaware.demo_data import DemoFacts
from roadaware.metrics.pedestrians import METRIC_NAMES

WEIGHTED = [f"{prefix}_{name}" for prefix in ("weighted", "soft", "hard") for name in METRIC_NAMES[:5]]


def evaluate(roadaware: Command, files: Files, *more: object, task: str = "action") -> Any:
    return roadaware(
        "evaluate", "pedestrians", "--scores", files.scores, "--samples", files.samples, "--task", task, *more
    )


def test_base_metrics_are_those_of_scikit_learn(roadaware: Command, files: Files) -> None:
    found = evaluate(roadaware, files, "--config", "reference", "--json").data["metrics"]
    score = files.values[:, 0]
    decided = np.round(score).astype(int)
    expected = {
        "accuracy": sk.accuracy_score(files.truth, decided),
        "balanced_accuracy": sk.balanced_accuracy_score(files.truth, decided),
        "precision": sk.precision_score(files.truth, decided),
        "recall": sk.recall_score(files.truth, decided),
        "f1": sk.f1_score(files.truth, decided),
        "average_precision": sk.average_precision_score(files.truth, score),
        "auc": sk.roc_auc_score(files.truth, score),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-12)
    assert set(WEIGHTED) < set(found)
    assert {"confidence_delta_max", "confidence_delta_mean"} < set(found)


@pytest.mark.parametrize("task", ["intention", "risk"])
def test_several_classes(roadaware: Command, tmp_path: Path, task: str) -> None:
    files = write_files(tmp_path, task)
    found = evaluate(roadaware, files, "--config", "reference", "--json", task=task).data["metrics"]
    decided = files.values.argmax(axis=1)
    assert found["accuracy"] == pytest.approx(sk.accuracy_score(files.truth, decided))
    assert found["auc"] == pytest.approx(sk.roc_auc_score(files.truth, files.values, multi_class="ovr"))


def test_text_goes_out_and_json_to_a_file(roadaware: Command, files: Files, tmp_path: Path) -> None:
    target = tmp_path / "new" / "result.json"
    done = evaluate(roadaware, files, "--json", target, "--resamples", "50")
    assert done.code == 0
    assert "balanced_accuracy" in done.out
    assert "95 % by video" in done.out
    found = json.loads(target.read_text())
    low, high = found["intervals"]["auc"]["pedestrian"]
    assert 0 <= low <= found["metrics"]["auc"] <= high <= 1
    assert found["samples"] == 210
    assert found["config"]["type"] == "PedestrianConfig"


def test_equal_runs_give_equal_bytes(roadaware: Command, files: Files) -> None:
    first, second = (evaluate(roadaware, files, "--json", "-", "--resamples", "30").out for _ in range(2))
    assert first == second != ""
    assert evaluate(roadaware, files, "--json", "-", "--resamples", "30", "--seed", "1").out != first


def test_what_is_undefined_is_null_and_said(roadaware: Command, tmp_path: Path) -> None:
    files = write_files(tmp_path)
    files.samples.write_text(files.samples.read_text().replace("\n1,", "\n0,"))
    done = evaluate(roadaware, files, "--json")
    assert done.code == 0
    assert done.data["metrics"]["auc"] is None
    assert "auc" in done.data["undefined"]
    assert "undefined:" in evaluate(roadaware, files).out


@pytest.mark.slow
def test_clipped_scores_are_counted(roadaware: Command, files: Files, tmp_path: Path) -> None:
    lines = files.scores.read_text().splitlines()
    files.scores.write_text("\n".join(["1.0000005", "-0.0000001", *lines[2:]]) + "\n")
    done = evaluate(roadaware, files)
    assert done.code == 0
    assert "2 scores outside [0, 1] by no more than 1e-6 were clipped" in done.out
    assert evaluate(roadaware, files, "--json").data["clipped"] == 2
    assert evaluate(roadaware, files, "-o", tmp_path / "run").code == 0
    assert roadaware("report", tmp_path / "run", "-o", tmp_path / "again.html").code == 0
    for page in (tmp_path / "run" / "report.html", tmp_path / "again.html"):
        told = "2 scores outside [0, 1] by no more than 1e-6 were clipped"
        assert told in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("bars", "code", "says"),
    [
        (["auc=0.5"], 0, ""),
        (["auc=0.5", "f1=0.1"], 0, ""),
        (["auc=0.5", "f1=1.01"], 1, "f1 is 0."),
        (["nonsense=1"], 2, "no metric 'nonsense'"),
        (["acuracy=1"], 2, "Did you mean accuracy?"),
        (["auc"], 2, "METRIC=VALUE"),
        (["auc=high"], 2, "finite"),
        (["auc=nan"], 2, "finite"),
        (["confidence_delta_max=0.1"], 2, "lower is better"),
    ],
)
def test_fail_under(roadaware: Command, files: Files, bars: list[str], code: int, says: str) -> None:
    done = evaluate(roadaware, files, "--fail-under", *bars)
    assert done.code == code
    assert says in done.err


def test_an_undefined_metric_misses_its_bar(roadaware: Command, files: Files) -> None:
    files.samples.write_text(files.samples.read_text().replace("\n1,", "\n0,"))
    done = evaluate(roadaware, files, "--fail-under", "auc=0.1")
    assert done.code == 1
    assert "auc is undefined" in done.err


@pytest.mark.parametrize(
    ("scores", "samples", "says"),
    [
        ("0.5\n", None, "expected 210 rows, one for each sample of action_samples.csv, found 1"),
        ("0.5,0.5\n" * 210, None, "expected 1 number in a row, found 2"),
        ("0.5\n" * 209 + "nan\n", None, ":210: expected a finite number"),
        ("0.5\n" * 209 + "\n", None, "found 209"),
        ("p\n" + "0.5\n" * 210, None, "delete the line"),
        ("", None, "empty file"),
        (None, "", "empty file"),
        (None, "truth,pedestrian,tte_frames\n", "found none"),
        (None, "truth,pedestrian,tte_frames\n3,a,1\n", "class 0..1"),
        ("0.\x1b[2J5\n", None, "'0.\\x1b[2J5'"),
    ],
)
def test_bad_files_end_with_3_and_leave_nothing(
    roadaware: Command, files: Files, tmp_path: Path, scores: str | None, samples: str | None, says: str
) -> None:
    if scores is not None:
        files.scores.write_text(scores)
    if samples is not None:
        files.samples.write_text(samples)
    out, run = tmp_path / "out.json", tmp_path / "run"
    done = evaluate(roadaware, files, "--json", out, "-o", run)
    assert done.code == 3
    assert says in done.err
    assert str(tmp_path) in done.err
    assert "\x1b" not in done.err
    assert done.out == ""
    assert not out.exists()
    assert not run.exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--scores", "a.csv"], "--samples"),
        (["--scores", "a.csv", "--samples", "b.csv"], "--task"),
        (["--scores", "a.csv", "--protocol", "jaad-action@iv2024"], "--data"),
        (["--scores", "a.csv", "--protocol", "jaad-acton@iv2024", "--data", "x"], "did you mean"),
        (
            ["--scores", "a.csv", "--protocol", "jaad-action@iv2024", "--task", "risk", "--data", "x"],
            "leave one",
        ),
        (["--scores", "a.csv", "--samples", "b.csv", "--task", "actoin"], "Did you mean"),
        (["--scores", "a.csv", "--samples", "b.csv", "--task", "action", "--resamples", "-1"], "0 or more"),
        (["--scroes", "a.csv"], "Did you mean"),
    ],
)
def test_wrong_requests_end_with_2(roadaware: Command, words: list[str], says: str) -> None:
    done = roadaware("evaluate", "pedestrians", *words)
    assert done.code == 2
    assert says in done.err


def test_eval_is_evaluate(roadaware: Command, files: Files) -> None:
    done = roadaware(
        "eval", "pedestrians", "--scores", files.scores, "--samples", files.samples, "--task", "action"
    )
    assert done.code == 0


def test_a_protocol_gives_the_samples(roadaware: Command, demo_set: Any, tmp_path: Path) -> None:
    from roadaware.datasets import read
    from roadaware.scenes.sampling import get_protocol, sample, split_samples

    root, _ = demo_set
    protocol = "jaad-action@iv2024"
    held = split_samples(sample(read("jaad", root), get_protocol(protocol)), "val").samples
    scores = tmp_path / "scores.csv"
    scores.write_text("".join(f"{0.2 + 0.6 * label}\n" for label in held["label"]))
    words = ["evaluate", "pedestrians", "--scores", scores, "--protocol", protocol, "--data", root]
    done = roadaware(*words, "--split", "val", "--config", "reference", "--json", "-")
    assert done.data["metrics"]["auc"] == 1
    assert done.data["protocol"] == protocol
    other = roadaware(*words, "--config", "reference")
    assert other.code == 3
    assert f"one for each sample of split test as {protocol} with --config reference cuts it" in other.err


@pytest.mark.slow
def test_scenarios_are_sets_of_their_own(roadaware: Command, demo_set: Any, tmp_path: Path) -> None:
    from roadaware.datasets import read
    from roadaware.scenes.sampling import get_protocol, sample, split_samples

    protocol = "jaad-action@iv2024"
    held = split_samples(sample(read("jaad", demo_set[0]), get_protocol(protocol)), "test").samples
    scores = tmp_path / "scores.csv"
    scores.write_text("".join(f"{(k * 37 % 100) / 100}\n" for k in range(len(held))))
    words = ["evaluate", "pedestrians", "--scores", scores, "--protocol", protocol, "--data", demo_set[0]]
    words += ["--config", "reference", "--by", "scale"]
    done = roadaware(*words, "-o", tmp_path / "run")
    found = json.loads((tmp_path / "run" / "results.json").read_text())
    assert sum(group["samples"] for group in found["groups"].values()) == len(held)
    correct = sum(g["samples"] * g["metrics"]["accuracy"] for g in found["groups"].values())
    assert correct / len(held) == pytest.approx(found["metrics"]["accuracy"])
    assert done.out.index("scale=80-100") < done.out.index("scale=100-150")
    assert roadaware("report", tmp_path / "run", "-o", tmp_path / "page.html").code == 0
    assert "100-150" in (tmp_path / "page.html").read_text()
    assert roadaware(*words[:-1], "scael").code == 2


def test_scenarios_need_the_dataset(roadaware: Command, files: Files) -> None:
    done = evaluate(roadaware, files, "--by", "scale")
    assert done.code == 2
    assert "--protocol" in done.err


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("ROADAWARE_DATA_DIR"), reason="ROADAWARE_DATA_DIR is not set")
def test_released_scores_on_real_samples(roadaware: Command) -> None:
    data = Path(os.environ["ROADAWARE_DATA_DIR"])
    done = roadaware(
        *("evaluate", "pedestrians", "--scores", data / "pie" / "pf_action_jaad.csv"),
        *("--protocol", "jaad-action@iv2024", "--data", data / "jaad", "--config", "reference", "--json"),
    )
    assert done.data["metrics"]["auc"] == pytest.approx(0.866, abs=0.0005)
    assert done.data["metrics"]["hard_f1"] == pytest.approx(0.315, abs=0.0005)


def test_a_pedestrian_in_two_videos_is_named_with_its_line(roadaware: Command, files: Files) -> None:
    lines = files.samples.read_text().splitlines()
    lines[3] = lines[3].replace("video_0000", "video_0009")
    files.samples.write_text("\n".join(lines) + "\n")
    done = evaluate(roadaware, files)
    assert done.code == 3
    assert f"{files.samples}:4: expected pedestrian '0_0_0b' in video 'video_0000' as in line 2" in done.err
    assert "VIDEO/NAME" in done.err


def test_a_line_break_in_a_name_stays_on_its_line(roadaware: Command, files: Files, tmp_path: Path) -> None:
    missing = tmp_path / "no\n  such\x1b[2J.csv"
    words = ["evaluate", "pedestrians", "--samples", files.samples, "--task", "action"]
    done = roadaware(*words, "--scores", missing)
    assert done.code == 3
    assert "no\\n  such\\x1b[2J.csv" in done.err
    (tmp_path / "a\nfolder").mkdir()
    done = roadaware(*words, "--scores", files.scores, "--json", tmp_path / "a\nfolder")
    assert done.code == 2
    assert "a\\nfolder is a folder" in done.err


@pytest.mark.slow
def test_the_page_of_a_protocol_shows_how_it_samples(
    roadaware: Command, demo_set: tuple[Path, DemoFacts], tmp_path: Path
) -> None:
    root, folder = demo_set[0], tmp_path / "runs"
    words = ["baseline", "jaad", root, "--model", "logistic", "--resamples", "0", "-o", folder]
    assert roadaware(*words).code == 0
    assert roadaware(*words).code == 2
    assert roadaware(*words, "--overwrite").code == 0
    run = folder / "logistic"
    config = json.loads((run / "config.json").read_text())
    assert config["sampling"]["observation_frames"] == 15
    assert roadaware("report", run, "-o", tmp_path / "page.html").code == 0
    for page in (folder / "report.html", run / "report.html", tmp_path / "page.html"):
        assert "Sampling protocol" in page.read_text()


def test_the_page_alone_is_written_without_a_run_folder(
    roadaware: Command, files: Files, tmp_path: Path
) -> None:
    done = evaluate(roadaware, files, "--html", tmp_path / "page.html")
    assert done.code == 0, done.err
    assert f"wrote {tmp_path / 'page.html'}" in done.err
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Content-Security-Policy" in text
    assert "balanced accuracy" in text.lower()
    assert not list(tmp_path.glob("*.parquet"))
