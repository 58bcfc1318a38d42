"""What a run leaves: checkpoints, each whole or not there, and losses and times of each step."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from roadaware import __version__
from roadaware.config import to_dict
from roadaware.errors import DamagedError, DiskError, InputError, UsageError
from roadaware.io.files import build_disk_error, write_atomically
from roadaware.models.tensor_files import ARITHMETIC, read_pickled
from roadaware.tasks.road_events import Classes
from roadaware.training.crowd.recipe import CrowdRecipe
from roadaware.training.recipe import DataRecipe, Recipe, SourceRecipe

FORMAT, VERSION = "roadaware-training", 1
LAST = "last.ckpt"
_TORN = "It was cut off or changed; take another, or begin again in another folder."
_MAY_CHANGE = ("name", "machine", "validation")


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """The state of a run behind a step.

    Args:
        step: steps done.
        network: its state.
        average: running mean of that, or None.
        optimizer: its state.
        chance: state of torch's generator.
    """

    step: int
    network: dict[str, Tensor]
    average: dict[str, Tensor] | None
    optimizer: dict[str, Any]
    chance: Tensor


def save_checkpoint(
    path: Path,
    checkpoint: Checkpoint,
    recipe: Recipe | CrowdRecipe,
    config: Mapping[str, Any],
    classes: Classes,
) -> None:
    """Write a checkpoint with the identity of its run; the previous one is kept until then.

    Args:
        path: the file; its folder must exist.
        checkpoint: the state.
        recipe, classes: of the run.
        config: of its network, as plain data.

    Raises:
        DiskError: if it cannot be written; what stood there before still stands.
    """
    data = {
        "format": FORMAT,
        "version": VERSION,
        "code": __version__,
        "recipe": to_dict(recipe),
        "clips_of_all_devices": True,
        "config": dict(config),
        "kinds": {kind: list(labels) for kind, labels in classes.kinds.items()},
        "av_labels": list(classes.av_labels),
        **checkpoint.__dict__,
    }
    file = io.BytesIO()
    torch.save(_alone(data), file)
    write_atomically(path, file.getvalue())


def _alone(value: Any) -> Any:
    """The same value, of which no two parts are one object but for equal texts and tensors.

    A pickle says of an object that it met before where that was, so that the same state has other bytes where
    it came out of a checkpoint.
    """
    if isinstance(value, Mapping):
        return {_alone(key): _alone(held) for key, held in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_alone(held) for held in value)
    return sys.intern(value) if type(value) is str else value


def open_checkpoint(
    path: Path, recipe: Recipe | CrowdRecipe, config: Mapping[str, Any], classes: Classes
) -> tuple[Checkpoint, list[str]]:
    """The state of a run that goes on, and which parts of its recipe have changed since.

    Args:
        path: the file.
        recipe, config, classes: of the run as it is now, as of `save_checkpoint`.

    Raises:
        InputError: if it is no checkpoint of ours (DamagedError if it is broken).
        UsageError: if it is of another network or other labels.
    """
    try:
        data = read_pickled(path)
    except InputError as error:
        message = f"is no whole checkpoint ({error.message})"
        raise DamagedError(message, where=str(path), hint=_TORN) from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise InputError(
            "is no checkpoint of a training run",
            where=str(path),
            hint="Weights to begin with go into `model.weights` of the recipe.",
        )
    if data.get("version") != VERSION:
        raise InputError(f"has version {data.get('version')}; this program reads {VERSION}", where=str(path))
    with blame_checkpoint(path):
        # Which parts of a recipe have changed since a checkpoint.
        text = f"{path} belongs to another run"
        ways = (
            "Name another folder with --out, or the recipe of that run (it stands in recipe.json beside it)."
        )
        if differ := sorted(k for k in {*config, *data["config"]} if config.get(k) != data["config"].get(k)):
            was = ", ".join(f"{k}={data['config'].get(k)!r} (now {config.get(k)!r})" for k in differ[:3])
            raise UsageError(f"{text}: its network has {was}.\n  {ways}")
        labels = {kind: list(held) for kind, held in classes.kinds.items()}
        if data["kinds"] != labels or list(data["kinds"]) != list(labels):
            raise UsageError(f"{text}: {_differing(data['kinds'], labels)}.\n  {ways}")
        if data["av_labels"] != list(classes.av_labels):
            raise UsageError(f"{text}: its actions of the own vehicle are {data['av_labels']}.\n  {ways}")
        usual = CrowdRecipe(data=SourceRecipe(roots=("any",))) if isinstance(recipe, CrowdRecipe) else _USUAL
        changed = _list_changes(data["recipe"], to_dict(recipe), to_dict(usual))
        machine = data["recipe"].get("machine") or {}
        if not data.get("clips_of_all_devices") and (machine.get("devices", 1), machine.get("nodes", 1)) != (
            1,
            1,
        ):
            # Of older versions: as many clips for each device.
            changed.append("clips.batch, which now counts the clips of all devices")
        found = Checkpoint(**{name: data[name] for name in Checkpoint.__dataclass_fields__})
        if type(found.step) is not int or found.step < 0:
            raise ValueError("steps are counted from 0 on")
        if found.chance is not None:
            torch.Generator().set_state(found.chance)
    return found, changed


@contextmanager
def blame_checkpoint(path: Path) -> Iterator[None]:
    """Within: values that do not go together are those of a checkpoint.

    Raises:
        DamagedError: in their place.
    """
    try:
        yield
    except ARITHMETIC as error:
        raise DamagedError("is no whole checkpoint", where=str(path), hint=_TORN) from error


def _differing(was: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> str:
    """What differs between two vocabularies, in words."""
    if list(was) != list(now):
        return f"its kinds of labels are {', '.join(was)}, not {', '.join(now)}"
    kind = next(kind for kind in was if was[kind] != now[kind])
    only = [label for label in was[kind] if label not in now[kind]]
    extra = [label for label in now[kind] if label not in was[kind]]
    return f"its labels of {kind} differ (only there: {only[:3]}; only here: {extra[:3]}; or their order)"


_USUAL = Recipe(data=DataRecipe(roots=("any",)))


def _list_changes(was: Mapping[str, Any], now: Mapping[str, Any], usual: Mapping[str, Any]) -> list[str]:
    """Fields that differ, but for those that do not change what is learnt.

    Args:
        was, now: recipes.
        usual: what fields said before there were any.
    """
    found = []
    for part in now:
        if part in _MAY_CHANGE or was.get(part) == now[part]:
            continue
        if not isinstance(now[part], dict):
            found.append(part)
            continue
        held = {**usual[part], **(was.get(part) or {})}
        found += [f"{part}.{key}" for key in now[part] if held.get(key) != now[part][key]]
    return found


LOG, TIMING = "log.jsonl", "timing.jsonl"
"""What a step came to, the same for each run of a recipe; and what its time was, which never is."""
_log = logging.getLogger("roadaware")


def read_log(folder: Path, name: str = LOG) -> list[dict[str, Any]]:
    """The lines of a run's log; one that was cut off, or says no step, is left out.

    Args:
        folder: of the run.
        name: of the log; default: that of losses and metrics.
    """
    path = folder / name
    found = []
    if path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and type(record.get("step")) is int:
                found.append(record)
    return found


class Journal:
    """Writes lines behind those up to a step; a full disk is reported once and does not end the run.

    `seconds` is how long the steps took that are behind it.

    Args:
        folder: of the run; it must exist.
        step: lines of later steps, of a run that was cut off, are taken out.
        tensorboard: also write its event files.

    Raises:
        DiskError: if the log cannot be begun.
    """

    def __init__(self, folder: Path, step: int, *, tensorboard: bool) -> None:
        self.folder = folder
        for name in (LOG, TIMING):
            kept = [line for line in read_log(folder, name) if line["step"] <= step]
            write_atomically(folder / name, "".join(json.dumps(line) + "\n" for line in kept).encode())
        self.seconds = float(kept[-1].get("seconds", 0.0)) if kept else 0.0
        self._failed = False
        self._board: Any = None
        if tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            try:
                self._board = SummaryWriter(str(folder / "tensorboard"), purge_step=step + 1)
            except UnicodeEncodeError:
                _log.warning("no tensorboard: its writer takes folders with names in UTF-8 alone")

    def write(
        self,
        step: int,
        values: Mapping[str, Any],
        timing: Mapping[str, float],
        *,
        scalars: Mapping[str, float],
    ) -> None:
        """Add a line to both logs, and numbers to the board.

        Args:
            step: steps done.
            values: of the line, JSON-ready.
            timing: what the clock says of it.
            scalars: for the board.
        """
        try:
            for name, line in ((LOG, values), (TIMING, timing)):
                with (self.folder / name).open("a", encoding="utf-8") as file:
                    file.write(json.dumps({"step": step, **line}) + "\n")
            if self._board is not None:
                for name, value in scalars.items():
                    self._board.add_scalar(name, value, step)
        except OSError as error:
            if not self._failed:
                failure: DiskError = build_disk_error(self.folder / LOG, 1, error)
                _log.warning("the log is not complete: %s", failure)
            self._failed = True

    def close(self) -> None:
        """Write out buffered lines."""
        if self._board is not None:
            self._board.close()
