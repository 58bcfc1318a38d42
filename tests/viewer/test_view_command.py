"""`roadaware view` says where it serves, ends as it is asked to, and refuses what it cannot show."""

from __future__ import annotations

import shlex
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from numbered import make_predictions, make_truth
from swept import write_swept_kitti

from roadaware.analysis.evaluation.runs import Run
from roadaware.cli import main
from roadaware.cli.results import format_view_command
from roadaware.errors import UsageError
from roadaware.io.folders import write_result_folder
from roadaware.metrics.pedestrians import PedestrianConfig, evaluate_samples
from roadaware.metrics.scores import SampleScores
from roadaware.reports.run_pages import build_baseline_files
from roadaware.scenes.store import save
from roadaware.viewer.films import FilmFinder
from roadaware.viewer.opening import list_held, open_paths


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_serves_until_it_is_interrupted(sets: Path, number: signal.Signals, code: int) -> None:
    command = [
        sys.executable,
        "-m",
        "roadaware",
        "view",
        str(sets / "truth"),
        str(sets / "found"),
        "--no-browser",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        address = running.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=30) as page:  # noqa: S310, the address was printed by us
            assert b"<h1>roadaware</h1>" in page.read()
        running.send_signal(number)
        assert running.wait(60) == code
        said = running.stderr.read() if running.stderr else ""
    assert "Traceback" not in said


def test_what_it_cannot_do_is_said(sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = [
            ([], 2, "name what to look at"),
            ([tmp_path / "nothing"], 3, "no such file"),
            ([sets / "truth", "--port", port], 2, "cannot be used"),
            ([sets / "truth", "--annotator", "x" * 101], 2, "--annotator"),
        ]
        for words, code, said in cases:
            assert main(["view", *map(str, words), "--no-browser"]) == code
            assert said in capsys.readouterr().err


@pytest.mark.slow
def test_an_evaluation_alone_says_what_to_name_beside_it(
    judged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(judged / "run"), "--no-browser"]) == 2
    assert "name its ground truth and predictions" in capsys.readouterr().err


@pytest.mark.slow
def test_an_evaluation_ends_with_the_line_that_opens_it(
    sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(sets)
    words = ["evaluate", "road", "--truth", "truth", "--predictions", "found", "--resamples", "0"]
    assert main([*words, "-o", "my run"]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "to look at it: roadaware view 'my run' truth found"
    opened = open_paths([Path(word) for word in shlex.split(last.partition("view ")[2])])
    assert (list(opened.sides), len(opened.evaluations)) == (["truth", "a"], 1)
    assert main([*words, "-o", "./-run"]) == 0
    assert "roadaware view ./-run truth found" in capsys.readouterr().err
    for quiet in (["-q"], ["--json"]):
        assert main([*words, "-o", f"run{quiet[0]}", *quiet]) == 0
        assert "roadaware view" not in "".join(capsys.readouterr())
    assert main(words) == 0
    assert "roadaware view" not in "".join(capsys.readouterr())


def test_the_line_names_what_can_be_opened(sets: Path, tmp_path: Path) -> None:
    (tmp_path / "run" / "predictions").mkdir(parents=True)
    save(make_predictions(), tmp_path / "run" / "predictions")
    run = tmp_path / "run"
    line = format_view_command(Path("r"), Path("it's.json"), run, tmp_path / "x.pkl", reader="road")
    assert shlex.split(line) == ["roadaware", "view", "r", "it's.json", str(run), "--reader", "road"]
    assert format_view_command(Path("r")) == "roadaware view r"


@pytest.mark.slow
def test_a_folder_of_runs_opens_all_that_it_holds(judged: Path, tmp_path: Path) -> None:
    opened = open_paths([judged])
    assert {side: source.name for side, source in opened.sides.items()} == {
        "truth": "truth", "a": "found", "b": "other",
    }  # fmt: skip
    assert [folder.name for folder, _ in opened.evaluations] == ["run"]
    assert FilmFinder(opened).film("one").state == "ready"
    # From one folder further up, too; what is named twice is one.
    assert list(open_paths([judged.parent, judged / "found"]).sides) == ["truth", "a", "b"]
    # Links lead elsewhere, and hidden folders are nobody's runs.
    (tmp_path / "runs" / ".old").mkdir(parents=True)
    save(make_truth(), tmp_path / "runs" / "mine")
    save(make_predictions(), tmp_path / "runs" / ".old" / "found")
    (tmp_path / "runs" / "far").symlink_to(judged / "found")
    assert list(open_paths([tmp_path / "runs"]).sides) == ["truth"]


def test_a_folder_that_holds_too_much_says_what_to_name(
    sets: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(make_truth(), sets / "again")
    assert main(["view", str(sets), "--no-browser"]) == 2
    assert "one set of ground truth" in capsys.readouterr().err
    with pytest.raises(UsageError) as caught:
        open_paths([sets])
    assert f"these are 2: {sets}/again, {sets}/truth; name the one" in str(caught.value)
    many = tmp_path / "many"
    for number in range(6):
        save(make_predictions(), many / f"run{number}")
    with pytest.raises(
        UsageError, match=r"5 predictions can stand side by side, not 6; name some of .*run0, .*run5"
    ):
        open_paths([many])
    assert len(open_paths([many / f"run{number}" for number in range(5)]).sides) == 5


@pytest.mark.slow
def test_baselines_are_opened_together_beside_their_dataset(tmp_path: Path) -> None:
    scenes = make_truth()
    save(scenes, tmp_path / "truth")
    state = SampleScores(
        np.array([0.9, 0.2, 0.4]), np.array([1, 0, 0]), ["one/t0", "one/t0", "two/t3"], ["one", "one", "two"],
        np.array([30, 10, 20]),
    )  # fmt: skip
    config = PedestrianConfig.default("action")
    found = [
        Run(name, state, config, evaluate_samples(state, config), 0, 0, "", {"config_name": "default"})
        for name in ("logistic-regression", "gradient-boosting")
    ]
    write_result_folder(tmp_path / "base", build_baseline_files(found, [], "Baselines"), overwrite=False)
    with pytest.raises(UsageError, match="holds no boxes"):
        open_paths([tmp_path / "base"])
    opened = open_paths([tmp_path / "base", tmp_path / "truth"])
    names = [folder.name for folder, _ in opened.evaluations]
    assert names == ["gradient-boosting", "logistic-regression"]


def test_a_dataset_with_runs_in_it_stays_a_dataset(tmp_path: Path) -> None:
    write_swept_kitti(tmp_path / "kitti")
    save(make_predictions(), tmp_path / "kitti" / "runs" / "found")
    assert [path.name for path in list_held(tmp_path / "kitti")] == ["found"]
    assert list(open_paths([tmp_path / "kitti"]).sides) == ["truth"]
