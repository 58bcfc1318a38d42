"""Results by what happens in a video as a whole, which a file of the user's says."""

import json
from pathlib import Path

import pytest

from roadaware.cli import main
from roadaware.demo_data.chaos import write_chaos


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("crowd")
    write_chaos(root, seed=1, videos=5)
    return root


FILES = {
    "relations": ("relations/truth", "relations/pred.json"),
    "grounding": ("grounding/test_proc.json", "grounding/pred.json"),
    "sound": ("sound/vggss.json", "sound/maps.npz"),
}


def scored(chaos: Path, task: str, *more: str) -> int:
    truth, predictions = (str(chaos / name) for name in FILES[task])
    return main(["evaluate", task, "--truth", truth, "--predictions", predictions, "-q", *more])


@pytest.mark.parametrize("task", FILES)
def test_every_category_is_a_group(chaos: Path, task: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = chaos / "categories.csv"
    assert scored(chaos, task, "--categories", str(file), "--by", "category", "--json=-") == 0
    groups = json.loads(capsys.readouterr().out)["groups"]
    rows = [line.split(",") for line in file.read_text().splitlines()[1:]]
    here = {category for video, category in rows if ("_" in video) == (task == "sound")}
    assert {name.removeprefix("category: ") for name in groups} == here


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("crowd-01\n", "expected a video and a category"),
        ("crowd-01,fight\ncrowd-01,flood\n", "stands there twice"),
        ("other,fight\n", "no video of the truth is named"),
        ("", "no video of the truth is named"),
    ],
)
def test_files_that_say_nothing_are_refused(
    chaos: Path, tmp_path: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "categories.csv"
    file.write_text(text)
    assert scored(chaos, "relations", "--categories", str(file), "--by", "category") == 3
    assert says in capsys.readouterr().err
