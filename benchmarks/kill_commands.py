"""The commands that are killed, on inputs that are as small as they can be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import roadaware

_ROOT = Path(__file__).resolve().parents[1]
_WEIGHTS = Path(roadaware.__file__).parent / "weights" / "compact-road.safetensors"


@dataclass(frozen=True)
class Command:
    """One command.

    Args:
        name: what the table calls it.
        words: behind `roadaware`; it writes into `out` below the folder where it runs.
        again: more words where something is in that folder.
    """

    name: str
    words: list[str]
    again: tuple[str, ...] = ()


def make_inputs(folder: Path, names: Sequence[str]) -> Path:
    """What the named commands read, made by commands.

    Args:
        folder: new.
        names: of the commands.
    """
    folder.mkdir(parents=True, exist_ok=True)
    needed = {name.partition(" ")[0] for name in names}
    streets, corners, town = folder / "streets", folder / "corners", folder / "town"
    if "poses" in needed:
        _save_tiny_poses(folder / "poses.safetensors")
    if needed & {"watch", "predict", "train", "evaluate", "poses", "convert"}:
        _made("simulate", "--scenes", 3, "--seconds", 1, "--size", "128x96", "--fps", 6, "--out", streets)
    if needed & {"propose", "label"}:
        corner = ("--preset", "corner-cases", "--scenes", 4, "--seconds", 2, "--size", "96x64", "--fps", 9)
        _made("simulate", *corner, "--no-sound", "--out", corners)
    if "cross" in needed or any("predictors" in name for name in names):
        town_of = ("--preset", "crossing@1", "--scenes", 12, "--seconds", 12, "--tables-only")
        _made("simulate", *town_of, "--out", town)
        _made("read", "simulator", town, "-o", folder / "saved-town")
    if "evaluate" in needed:
        _made("predict", _WEIGHTS, "--videos", streets, "--out", folder / "found")
        _made("link", folder / "found" / "predictions", "--out", folder / "tubes")
    if "label" in needed:
        _made("propose", corners, "--out", folder / "proposals")
        export = ("--videos", corners, "--as", "coco", "--classes", "dog")
        _made("label", "export", folder / "proposals", *export, "--out", folder / "tasks")
    (folder / "detector.json").write_text(json.dumps(_recipe(streets)))
    return folder


def _made(*words: object) -> None:
    target = Path(str(words[-1]))
    if target.exists():
        return
    one = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, "-m", "roadaware", *map(str, words), "-q"], check=True, env=one, stdout=-3
    )


def _save_tiny_poses(path: Path) -> None:
    """A reader of joints of some thousand weights, which the tests have."""
    sys.path.append(str(_ROOT / "tests"))
    from tiny_poses import save_tiny_poses  # type: ignore[import-not-found, unused-ignore]

    save_tiny_poses(path)


def _recipe(streets: Path) -> dict[str, object]:
    return {
        "name": "tiny",
        "model": {"name": "retinanet3d-compact", "base": "compact", "likeliest": 16},
        "data": {"reader": "simulator", "roots": [str(streets)]},
        "clips": {"frames": 2, "stride": 2, "batch": 2},
        "schedule": {"epochs": 2, "optimizer": "adamw", "lr": 0.001, "ema": 0.9, "clip_norm": 10},
        "validation": {"every_steps": 5, "videos": 1},
        "machine": {
            "accelerator": "cpu",
            "workers": 0,
            "log_steps": 1,
            "threads": 1,
            "checkpoint_minutes": 0.005,
            "tensorboard": False,
        },
    }


def _predictors(inputs: Path) -> list[str]:
    recipes = _ROOT / "configs" / "pedestrians"
    words = ["train", str(recipes / "steady-jaad.yaml"), "--on", str(recipes / "on" / "simulator.yaml")]
    samples = ["--set", f"samples.root={inputs / 'town'}", "network.inputs=[centre,motion,traffic]"]
    return [*words, *samples, "seeds=[0,1]", "schedule.epochs=2", "threads=1", "--out", "out"]


def _cross(inputs: Path, *more: str) -> list[str]:
    domains = f"crossing@1={inputs / 'saved-town'}"
    words = [
        "cross",
        "--models",
        "steady,boosting",
        "--domains",
        domains,
        "--seeds",
        "1",
        "--resamples",
        "10",
    ]
    return [*words, "--set", "learning.updates=4", "--out", "out", *more]


def _simulate(*more: str) -> list[str]:
    size = ["--seconds", "0.5", "--size", "64x48", "--fps", "4", "--out", "out"]
    return ["simulate", "--preset", "road", "--scenes", "3", *size, *more]


def _label(inputs: Path, verb: str) -> list[str]:
    proposals, corners, tasks = str(inputs / "proposals"), str(inputs / "corners"), inputs / "tasks"
    forms = ["--as", "labelstudio", "coco", "parquet", "--classes", "dog", "debris"]
    return {
        "select": ["label", "select", proposals, "--videos", corners, "--resamples", "20", "-o", "out"],
        "export": ["label", "export", proposals, "--videos", corners, *forms, "--out", "out"],
        "import": ["label", "import", str(tasks), str(tasks / "tasks.coco.json"), "-o", "out"],
    }[verb]


def _commands(inputs: Path) -> dict[str, Command]:
    film = str(inputs / "streets" / "scenes" / "road-0000" / "video.mp4")
    streets, tubes = str(inputs / "streets"), str(inputs / "tubes")
    evaluate = [
        "evaluate",
        "road",
        "--truth",
        streets,
        "--predictions",
        tubes,
        "--resamples",
        "20",
        "-o",
        "out",
    ]
    convert = ["convert", streets, "--lossy", "-o", "out", "--to"]
    found = [
        Command("simulate", _simulate("--processes", "1")),
        Command("simulate tables", _simulate("--tables-only", "--processes", "1")),
        Command("simulate by two", _simulate("--processes", "2")),
        Command("watch", ["watch", film, "--threads", "1", "--out", "out"], ("--overwrite",)),
        Command("predict", ["predict", str(_WEIGHTS), "--videos", streets, "--out", "out"]),
        Command("train", ["train", str(inputs / "detector.json"), "--out", "out"], ("--resume",)),
        Command("train predictors", _predictors(inputs)),
        Command("poses", ["poses", str(inputs / "poses.safetensors"), "--videos", streets, "--out", "out"]),
        Command("propose", ["propose", str(inputs / "corners"), "--out", "out"]),
        Command("label select", _label(inputs, "select")),
        Command("label export", _label(inputs, "export")),
        Command("label import", _label(inputs, "import")),
        Command("cross", _cross(inputs)),
        Command("cross by two", _cross(inputs, "--jobs", "2")),
        Command("evaluate", evaluate),
        # Both leave the whole tables beside; the road form is also read again before it stands.
        Command("convert to yolo", [*convert, "yolo", "--embed"], ("--overwrite",)),
        Command("convert to road", [*convert, "road"]),
    ]
    return {each.name: each for each in found}


def _named(name: str) -> Callable[[Path], Command]:
    return lambda inputs: _commands(inputs)[name]


COMMANDS = {name: _named(name) for name in _commands(Path("inputs"))}
"""Name to what makes the command from the folder of its inputs."""
