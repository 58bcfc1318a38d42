"""Run folders: what they hold, that they are old or new and whole, and what is made from them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_files import Command, Files, write_files

from roadaware.cli import main
from roadaware.errors import DiskError, UsageError
from roadaware.io import folders
from roadaware.reports import runs


def make(roadaware: Command, files: Files, folder: Path, *more: object) -> int:
    words = ["evaluate", "pedestrians", "--scores", files.scores, "--samples", files.samples]
    return roadaware(*words, "--task", "action", "--resamples", "50", "-o", folder, *more).code


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that `make` makes of `files`; nobody writes into it."""
    root = tmp_path_factory.mktemp("finished")
    files = write_files(root)
    words = ["evaluate", "pedestrians", "--scores", str(files.scores), "--samples", str(files.samples)]
    assert main([*words, "--task", "action", "--resamples", "50", "-o", str(root / "run")]) == 0
    return root / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A finished run that a test may change."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def test_a_run_holds_settings_results_rows_and_report(
    roadaware: Command, files: Files, tmp_path: Path
) -> None:
    folder = tmp_path / "runs" / "mine"
    assert make(roadaware, files, folder) == 0
    names = {"config.json", "results.json", "per_sample.parquet", "per_pedestrian.parquet", "report.html"}
    assert {path.name for path in folder.iterdir()} == names
    assert [path.name for path in folder.parent.iterdir()] == ["mine"]
    results = json.loads((folder / "results.json").read_text())
    expected = {
        "schema",
        "protocol",
        "config_digest",
        "data_digest",
        "version",
        "seed",
        "resamples",
        "metrics",
    }
    assert expected < set(results)
    rows = pl.read_parquet(folder / "per_sample.parquet")
    assert len(rows) == 210
    assert rows["scores"].to_numpy()[:, 0].tolist() == files.values[:, 0].tolist()
    assert len(pl.read_parquet(folder / "per_pedestrian.parquet")) == 30
    assert str(tmp_path) not in (folder / "report.html").read_text()


def test_a_run_is_made_again_from_its_rows(run: Path) -> None:
    loaded = runs.summarize_run(runs.load(run))
    written = json.loads((run / "results.json").read_text())
    same = ("metrics", "intervals", "data_digest", "config_digest", "resamples", "seed", "name")
    assert {name: loaded[name] for name in same} == {name: written[name] for name in same}


def test_a_run_is_not_replaced_unless_asked(
    roadaware: Command, files: Files, run: Path, tmp_path: Path
) -> None:
    folder = run
    before = (folder / "results.json").read_bytes()
    assert make(roadaware, files, folder, "--seed", "1") == 2
    assert (folder / "results.json").read_bytes() == before
    assert make(roadaware, files, folder, "--seed", "1", "--overwrite") == 0
    assert (folder / "results.json").read_bytes() != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["action.csv", "action_samples.csv", "run"]


def test_other_peoples_folders_are_never_replaced(roadaware: Command, files: Files, tmp_path: Path) -> None:
    folder = tmp_path / "thesis"
    folder.mkdir()
    (folder / "chapter.tex").write_text("dear")
    assert make(roadaware, files, folder, "--overwrite") == 2
    assert (folder / "chapter.tex").read_text() == "dear"


@pytest.mark.parametrize("marker", ['{"mine": 1}', '{"schema": 1, "files": {"precious.txt": ""}}', "no json"])
def test_a_strangers_results_are_not_a_run(
    roadaware: Command, files: Files, tmp_path: Path, marker: str
) -> None:
    folder = tmp_path / "thesis"
    (folder / "sub").mkdir(parents=True)
    (folder / "results.json").write_text(marker)
    (folder / "precious.txt").write_text("dear")
    assert make(roadaware, files, folder, "--overwrite") == 2
    assert {path.name for path in folder.iterdir()} == {"sub", "results.json", "precious.txt"}
    assert (folder / "results.json").read_text() == marker


def test_only_what_a_run_lists_is_replaced(
    roadaware: Command, files: Files, run: Path, tmp_path: Path
) -> None:
    folder = run
    (folder / "notes.txt").write_text("dear")
    (folder / "pictures").mkdir()
    (folder / "pictures" / "report.html").write_text("mine")
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("nowhere")
    before = (folder / "results.json").read_bytes()
    assert make(roadaware, files, folder, "--seed", "1", "--overwrite") == 0
    assert (folder / "results.json").read_bytes() != before
    assert (folder / "notes.txt").read_text() == "dear"
    assert (folder / "pictures" / "report.html").read_text() == "mine"
    assert (folder / "empty").is_dir()
    assert (folder / "link").readlink() == Path("nowhere")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_what_a_run_does_not_list_cannot_be_in_the_way(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folders.write_result_folder(folder, folders.add_marker({"old": b"1"}, {}), overwrite=False)
    (folder / "new").write_text("mine")
    for name in ("new", "new/inside"):
        with pytest.raises(UsageError, match="not ours"):
            folders.write_result_folder(folder, folders.add_marker({name: b"2"}, {}), overwrite=True)
    assert (folder / "new").read_text() == "mine"
    assert (folder / "old").read_bytes() == b"1"


def test_a_link_to_a_run_stays_a_link(tmp_path: Path) -> None:
    folder, link = tmp_path / "run", tmp_path / "link"
    folders.write_result_folder(folder, folders.add_marker({"a": b"1"}, {}), overwrite=False)
    link.symlink_to(folder)
    folders.write_result_folder(link, folders.add_marker({"a": b"2"}, {}), overwrite=True)
    assert link.is_symlink()
    assert (folder / "a").read_bytes() == b"2"


@pytest.mark.slow
def test_equal_runs_are_equal_folders(
    roadaware: Command, files: Files, finished: Path, tmp_path: Path
) -> None:
    assert make(roadaware, files, tmp_path / "again") == 0
    for path in finished.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def test_a_failing_disk_leaves_the_old_run(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for fails_at in range(5):
        steps = iter(range(100))

        def put(path: Path, data: bytes, fails_at: int = fails_at, steps: object = steps) -> None:
            if next(steps) == fails_at:  # type: ignore[call-overload]
                raise OSError(28, "No space left on device")
            path.write_bytes(data)

        monkeypatch.setattr("roadaware.io.folders.write_and_rename", put)
        with pytest.raises(DiskError, match="No space left"):
            folders.write_result_folder(folder, {str(k): b"x" for k in range(5)}, overwrite=True)
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_folders_are_swapped_without_an_exchange_too(
    roadaware: Command, files: Files, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = run
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: object())
    assert make(roadaware, files, folder, "--seed", "3", "--overwrite") == 0
    assert json.loads((folder / "results.json").read_text())["seed"] == 3
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_what_killed_processes_left_is_swept(roadaware: Command, files: Files, tmp_path: Path) -> None:
    left = tmp_path / ".roadaware-run-999999999-0123abcd.tmp"
    left.mkdir()
    (left / "half").write_text("half")
    assert make(roadaware, files, tmp_path / "run") == 0
    assert not left.exists()


SIDES = ["per_sample.parquet", "results.json", "config.json", "per_pedestrian.parquet"]


@pytest.mark.parametrize("name", SIDES)
def test_a_damaged_run_is_named(roadaware: Command, run: Path, tmp_path: Path, name: str) -> None:
    folder = run
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 0xFF
    (folder / name).write_bytes(bytes(data))
    done = roadaware("report", folder, "-o", tmp_path / "report.html")
    assert done.code == 3
    assert name in done.err
    assert "again" in done.err
    assert not (tmp_path / "report.html").exists()
    assert roadaware("compare", folder, folder).code == 3
    (folder / name).unlink()
    done = roadaware("compare", folder, folder)
    assert done.code == 3
    assert f"{folder / name}: expected" in done.err
    assert "evaluate -o RUN" in done.err


def test_a_page_that_is_gone_can_be_made_again(roadaware: Command, run: Path, tmp_path: Path) -> None:
    (run / "report.html").unlink()
    assert roadaware("report", run, "-o", tmp_path / "page.html").code == 0


@pytest.mark.slow
def test_report_of_two_runs_compares_them(roadaware: Command, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files = write_files(tmp_path / name, seed=0)
        if name == "two":
            values = (files.values + files.truth[:, None]) / 2
            files.scores.write_text("".join(f"{value}\n" for value in values[:, 0]))
        files.scores.rename(tmp_path / name / f"{name}.csv")
        words = ["evaluate", "pedestrians", "--scores", tmp_path / name / f"{name}.csv"]
        words += ["--samples", files.samples, "--task", "action", "-o", tmp_path / name / "run"]
        assert roadaware(*words).code == 0
    page = tmp_path / "page.html"
    done = roadaware("report", tmp_path / "one" / "run", tmp_path / "two" / "run", "-o", page)
    assert done.code == 0
    assert "One against two" in page.read_text()
    compared = roadaware("compare", tmp_path / "two" / "run", tmp_path / "one" / "run", "--json", "-")
    assert compared.code == 0


@pytest.mark.parametrize("words", [["report"], ["report", "absent"], ["report", "."]])
def test_report_needs_runs(
    roadaware: Command, words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = roadaware(*words)
    assert done.code in (2, 3)
    assert "run folder" in done.err
    assert list(tmp_path.iterdir()) == []


def test_compare_says_in_words_what_is_not_different(
    roadaware: Command, files: Files, tmp_path: Path
) -> None:
    other = tmp_path / "other.csv"
    rng = np.random.default_rng(0)
    noisy = (files.values[:, 0] + rng.normal(0, 0.001, len(files.values))).clip(0, 1)
    other.write_text("".join(f"{value}\n" for value in noisy))
    words = [
        "compare",
        files.scores,
        other,
        "--samples",
        files.samples,
        "--task",
        "action",
        "--resamples",
        "100",
    ]
    done = roadaware(*words, "--html", tmp_path / "page.html")
    assert done.code == 0
    assert "not different" in done.out
    assert (tmp_path / "page.html").is_file()
    found = roadaware(*words, "--json").data["metrics"]["auc"]
    assert found["verdict"] == "not different"
    assert found["difference"] == pytest.approx(found["a"] - found["b"])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda words: [w for w in words if w not in ("--task", "action")], "--task"),
        (lambda words: [*words, "--resamples", "0"], "1 or more"),
    ],
)
def test_compare_needs_samples_and_draws(roadaware: Command, files: Files, change: object, says: str) -> None:
    words = ["compare", files.scores, files.scores, "--samples", files.samples, "--task", "action"]
    done = roadaware(*change(words))  # type: ignore[operator]
    assert done.code == 2
    assert says in done.err


def test_compare_says_which_of_the_two_is_not_there(roadaware: Command, files: Files, tmp_path: Path) -> None:
    assert make(roadaware, files, tmp_path / "run") == 0
    for words in ([tmp_path / "run", tmp_path / "nope"], [tmp_path / "nope", files.scores]):
        done = roadaware("compare", *words)
        assert done.code == 3
        assert f"{tmp_path / 'nope'}: there is no such file or folder" in done.err
    assert roadaware("compare", tmp_path / "run", tmp_path).code == 3
    assert roadaware("compare", tmp_path / "run", files.scores).code == 2


@pytest.mark.slow
@pytest.mark.parametrize("option", [["--config", "reference"], ["--task", "action"], ["--samples", "s.csv"]])
def test_compare_takes_no_options_that_runs_would_ignore(
    roadaware: Command, files: Files, tmp_path: Path, option: list[str]
) -> None:
    assert make(roadaware, files, tmp_path / "run") == 0
    done = roadaware("compare", tmp_path / "run", tmp_path / "run", *option)
    assert done.code == 2
    assert option[0] in done.err


WRITER = """
import sys
from pathlib import Path
from roadaware.io.folders import write_result_folder, add_marker
print("started", flush=True)
for version in range(10**9):
    text = str(version % 10).encode() * 20_000
    write_result_folder(Path(sys.argv[1]), add_marker({"a": text, "in/b": text}, {}), overwrite=True)
"""


@pytest.mark.parametrize("trials", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_a_killed_writer_leaves_one_whole_run(tmp_path: Path, trials: int) -> None:
    folder = tmp_path / "run"
    rng = np.random.default_rng(trials)
    for _ in range(trials):
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        process.communicate()
        if folder.exists():
            contents = {path.read_bytes() for path in (folder / "a", folder / "in" / "b")}
            assert len(contents) == 1
            assert len(held := contents.pop()) == 20_000
            marker = json.loads((folder / folders.MARKER).read_text())
            assert marker["files"] == dict.fromkeys(("a", "in/b"), folders.digest(held))
    assert folder.exists()
    folders.write_result_folder(folder, folders.add_marker({}, {}), overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert [path.name for path in folder.iterdir()] == [folders.MARKER]
