"""Every output of every command: declared, and refused before anything is loaded or read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from small_files import Command

import torchless
from command_cases import CASES, SERVING, commands, words_for
from roadaware.cli import outputs
from roadaware.cli.app import build_app
from roadaware.errors import DiskError, UsageError

WRITTEN = {"--json", "--html", "--out", "--output", "-o"}
REFUSALS = """
import json, sys
sys.path[:0] = sys.argv[1:3]
from roadaware.cli import main
import contextlib, io
found = []
for words in json.loads(sys.argv[3]):
    err = io.StringIO()
    with contextlib.redirect_stderr(err):
        found.append([main(words), err.getvalue()])
heavy = ("torch", "transformers", "lightning", "numba", "matplotlib", "scipy")
loaded = [name for name in heavy if name in sys.modules]
print(json.dumps([found, loaded]))
"""


def test_every_command_has_a_case_and_every_case_a_command() -> None:
    assert set(commands()) == set(CASES) | SERVING


def _arguments(name: tuple[str, ...]) -> Any:
    command = build_app("*")
    for word in name:
        command = command[word]
    return command, command.assemble_argument_collection()


@pytest.mark.parametrize("name", CASES, ids="-".join)
def test_every_option_that_writes_says_so(name: tuple[str, ...]) -> None:
    command, arguments = _arguments(name)
    options = [option for each in arguments for option in each.names if option in WRITTEN]
    marked = _marks(outputs.get_type_hints(command.default_command, include_extras=True))
    assert marked >= {option.lstrip("-") for option in options if option in ("--json", "--html")}
    # One place of results, and that of `triage` for watches, which it goes on from.
    others = marked - {"json", "html"} - ({"watches"} if name == ("triage",) else set())
    assert len(others) == bool(set(options) - {"--json", "--html"} or name[-1] == "example")


def _marks(hints: dict[str, Any]) -> set[str]:
    found = set()
    for name, hint in hints.items():
        if outputs._mark(hint) is not None:
            found.add(name)
        inner = getattr(hint, "__origin__", hint)
        if outputs.is_dataclass(inner) and name != "return":
            found |= _marks(outputs.get_type_hints(inner, include_extras=True))
    return found


def _refused(tmp_path: Path, place: Path | str, kind: str) -> list[tuple[tuple[str, ...], list[str]]]:
    """Commands whose first output is of a kind, with inputs that are not there and the output at a place."""
    return [
        (name, words_for(name, tmp_path / "nothing", place))
        for name, case in CASES.items()
        if case.outputs and case.outputs[0][1] == kind
    ]


def test_impossible_outputs_are_refused_before_anything_is_loaded_or_read(tmp_path: Path) -> None:
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("x")
    folder.mkdir()
    (folder / "somebody's").write_text("y")
    os.mkfifo(pipe := tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    asked = []
    for place, kind, code, says in (
        (file, "folder", 2, "is a file; name a folder"),
        (folder, "file", 2, "is a folder; name the file"),
        (file / "below", "folder", 4, "is not a folder"),
        (file / "below", "file", 4, "is not a folder"),
        (tmp_path / "new" / ("x" * 256), "folder", 4, "too long"),
        (tmp_path / "new" / ("x" * 256), "file", 4, "too long"),
        ("/dev/null", "folder", 2, "is a device, a pipe"),
        (pipe, "folder", 2, "is a device, a pipe"),
        (Path("/proc/none/out"), "folder", 4, "cannot be made"),
        (Path("/proc/none/out"), "file", 4, "cannot be made"),
    ):
        asked += [(words, code, says) for _, words in _refused(tmp_path, place, kind)]
    here = str(Path(__file__).resolve().parents[1])
    done = torchless.run(REFUSALS, here, here, json.dumps([words for words, *_ in asked]), folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found, loaded = json.loads(done.stdout)
    for (words, code, says), (came, said) in zip(asked, found, strict=True):
        assert (came, says in said) == (code, True), (words, came, said)
    assert loaded == []
    assert sorted(tmp_path.rglob("*")) == before


ADDS = {("draw",), ("train",), ("cross-dataset",)}
"""Commands that add to a folder, whatever is in it, where it is no result of another command."""


@pytest.mark.parametrize("name", CASES, ids="-".join)
def test_what_somebody_else_put_into_a_folder_stays(
    roadaware: Command, tmp_path: Path, name: tuple[str, ...]
) -> None:
    if not CASES[name].outputs or CASES[name].outputs[0][1] == "file":
        pytest.skip("writes no folder")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "thing").write_text("y")
    if name in ADDS:
        marker = {"format": "roadaware-run", "files": {}}
        (folder / "results.json").write_text(json.dumps(marker))
    before = sorted(tmp_path.rglob("*"))
    done = roadaware(*words_for(name, tmp_path / "nothing", folder))
    assert done.code == 2, done.err
    assert "holds" in done.err
    assert sorted(tmp_path.rglob("*")) == before


def test_only_pages_and_plain_data_go_into_devices_and_pipes(roadaware: Command, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for place in ("/dev/null", "/dev/stdout", tmp_path / "pipe"):
        for model in (outputs.NEW_FILE, outputs.MODEL, outputs.FOLDER):
            with pytest.raises(UsageError, match="is a device, a pipe or an open descriptor"):
                model.check(Path(place), overwrite=True)
        outputs.FILE.check(Path(place))
    done = roadaware("export", tmp_path / "none.safetensors", "--out", "/dev/null", "--overwrite")
    assert (done.code, "name a file to write" in done.err) == (2, True)


def test_an_onnx_file_is_replaced_only_when_asked(roadaware: Command, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_text("x")
    done = roadaware("export", tmp_path / "none.safetensors", "--out", tmp_path / "model.onnx")
    assert done.code == 2
    assert "is there already" in done.err
    outputs.NEW_FILE.check(tmp_path / "model.onnx", overwrite=True)


def test_folders_are_known_by_what_their_writers_put_there(tmp_path: Path) -> None:
    from roadaware.cli.train import _LAST
    from roadaware.corner_cases import runner
    from roadaware.demo import command
    from roadaware.formats import proposal_tasks
    from roadaware.online import run_folder
    from roadaware.protocols import copg_ablation
    from roadaware.simulator import generate
    from roadaware.tasks import prediction_runs, prelabels
    from roadaware.training.checkpoints import LAST

    for output, name, form in (
        (outputs.DEMO, command.MARKER, command.FORMAT),
        (outputs.SIMULATION, generate.MAIN, generate.FORMAT),
        (outputs.PROPOSALS, runner.MAIN, runner.FORMAT),
        (outputs.ABLATION, copg_ablation.MAIN, copg_ablation.FORMAT),
        (outputs.MASKS, prediction_runs.MASK_RECORD, prediction_runs.MASK_FORMAT),
        (outputs.PRELABELS, prelabels.RECORD, prelabels.FORMAT),
        (outputs.PREDICTIONS, prediction_runs.RECORD, prediction_runs.FORMAT),
    ):
        folder = tmp_path / form
        folder.mkdir()
        (folder / name).write_text(json.dumps({"format": form}))
        output.check(folder)
        (folder / name).write_text(json.dumps({"format": "another"}))
        with pytest.raises(UsageError, match="other things"):
            output.check(folder)
    for output, names in (
        (outputs.WATCH, run_folder._OURS),
        (
            outputs.TASKS,
            (proposal_tasks.SENT, proposal_tasks.TASKS, proposal_tasks.COCO, proposal_tasks.PARQUET),
        ),
    ):
        folder = tmp_path / names[0]
        folder.mkdir()
        for name in names:
            (folder / name).touch()
        if proposal_tasks.SENT in names:
            output.check(folder)  # an export that was interrupted goes on
            (folder / proposal_tasks.SENT).unlink()
            (folder / proposal_tasks.SENT).mkdir()
            (folder / proposal_tasks.SENT / "meta.json").touch()
        output.check(folder, overwrite=True)
        with pytest.raises(UsageError, match="--overwrite"):
            output.check(folder)
    assert _LAST == LAST


def test_a_folder_that_cannot_be_looked_into_is_a_disk_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(DiskError, match="looked into"):
        outputs.WATCH.check(tmp_path)


def test_an_option_for_several_values_that_has_none_is_refused(roadaware: Command, tmp_path: Path) -> None:
    done = roadaware("predict", "weights", "--videos", "--out", tmp_path / "out")
    assert done.code == 2
    assert "--videos takes one value or several" in done.err
