"""Entry: one trained model of the catalogue's table."""

from __future__ import annotations

import difflib
import functools
import json
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from roadaware.errors import DiskError, InputError, UsageError
from roadaware.io.files import build_disk_error, list_folder_names, make_temporary_path, read_regular
from roadaware.places import get_cache_folder

Task = Literal["objects", "zero-shot", "segmentation", "image-text", "pose", "training"]
TABLE = Path(__file__).with_name("models.toml")
BUNDLED = {
    "compact-road": "people and vehicles of synthetic roads, what they do and where; what `watch` takes",
    "crowd-people": "people of synthetic crowds, a third of the image high; what `watch --crowd` takes",
}
"""The detectors that came with roadaware, by name, and what each finds; their cards lie beside them."""
_BUNDLED_FOLDER = Path(__file__).resolve().parents[2] / "weights"


@dataclass(frozen=True)
class NpmSource:
    """An archive of the npm registry.

    Args:
        package, version: of the archive.
        integrity: of all its bytes, as the registry writes it: `sha512-` and the digest in base 64.
        bytes: its size.
    """

    package: str
    version: str
    integrity: str
    bytes: int


@dataclass(frozen=True)
class HubSource:
    """A repository of the hub of huggingface.co.

    Args:
        repository: OWNER/NAME.
        revision: a commit, or a branch where none is pinned.
    """

    repository: str
    revision: str = "main"


@dataclass(frozen=True)
class FileSource:
    """A file or folder that the user has.

    Args:
        form: what it is, in words.
    """

    form: str


@dataclass(frozen=True)
class GraphFacts:
    """Which part of a graph model is wanted.

    Args:
        model, weights: its files in the archive.
        picture: the node that takes images.
        outputs: nodes that are wanted, by what they mean.
        decoder: what makes sense of the outputs.
        labels: which list of names its channels have.
        sha256: of each file.
        advice: how its predictions are used.
    """

    model: str
    weights: tuple[str, ...]
    picture: str
    outputs: Mapping[str, str]
    decoder: str
    labels: str
    sha256: Mapping[str, str]
    advice: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """One model of the catalogue.

    Args:
        name: by which commands take it.
        task: what it is for.
        about: what it is, in a line.
        classes: what it distinguishes, in words.
        size_mb: megabytes that it takes once it is installed, about.
        licence: of the weights, in words; `licence_from` says where that stands.
        published: what its authors report; empty where nothing fits.
        measured: what was measured here.
        coco_ap: average precision on COCO as published, of detectors of objects; 0 where unknown.
        cost: of an image, relative to others.
        source: where it comes from.
        graph: of a graph model alone.
    """

    name: str
    task: Task
    about: str
    classes: str
    size_mb: float
    licence: str
    licence_from: str
    source: NpmSource | HubSource | FileSource
    published: str = ""
    measured: str = ""
    coco_ap: float = 0.0
    cost: int = 0
    graph: GraphFacts | None = None


_SOURCES: Mapping[str, Any] = {"npm": NpmSource, "hub": HubSource, "file": FileSource}


@functools.cache
def read_catalogue() -> dict[str, Entry]:
    """Every entry by its name, in the order of the table."""
    said = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {name: _entry(name, dict(fields)) for name, fields in said.items()}


def _entry(name: str, fields: dict[str, Any]) -> Entry:
    source = dict(fields.pop("source"))
    graph = fields.pop("graph", None)
    if graph is not None:
        graph = GraphFacts(**{**graph, "weights": tuple(graph["weights"])})
    return Entry(name=name, source=_SOURCES[source.pop("kind")](**source), graph=graph, **fields)


def find_entry(name: str) -> Entry:
    """The entry of a name.

    Raises:
        UsageError: if there is none; names the nearest.
    """
    entries = read_catalogue()
    if find_bundled_path(name):
        raise UsageError(f"{name} came with roadaware: it is always there, and neither fetched nor removed")
    if name not in entries:
        near = difflib.get_close_matches(name, entries, n=1)
        meant = f"; did you mean '{near[0]}'?" if near else ""
        raise UsageError(
            f"no model of the catalogue is called {name[:60]!r}{meant}; `roadaware models list` shows all"
        )
    return entries[name]


# What of the catalogue is installed, and the one place where a name becomes a path.

RECORD = "catalogue.json"
"""In the folder of an installed model: where it came from, and what was checked."""
WEIGHTS = "model.safetensors"
_LIMIT = 1 << 20


def get_models_folder() -> Path:
    """Folder of installed models: `models/` in the cache folder."""
    return get_cache_folder() / "models"


def find_installed_folder(entry: Entry) -> Path | None:
    """The folder of an installed model; None where it is not installed."""
    folder = get_models_folder() / entry.name
    return folder if read_record(folder) is not None else None


def find_installed_path(entry: Entry) -> Path | None:
    """Path that commands open for an installed model: a file of ours, or a folder of transformers."""
    folder = find_installed_folder(entry)
    if folder is None:
        return None
    return folder if (folder / "config.json").is_file() else folder / WEIGHTS


def read_record(folder: Path) -> dict[str, Any] | None:
    """The record of an installed model; None where there is none."""
    try:
        found = json.loads(read_regular(folder / RECORD, limit=_LIMIT))
    except (InputError, OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def find_bundled_path(name: str) -> Path | None:
    """Path of a detector that came with roadaware; None for another name, or where it did not come along.

    Args:
        name: of `BUNDLED`.
    """
    path = _BUNDLED_FOLDER / f"{name}.safetensors"
    return path if name in BUNDLED and path.is_file() else None


def resolve_weights(given: Path, tasks: Sequence[str] = ()) -> Path:
    """The path of weights that were named on a command line: a path, a name of the catalogue, or of a bundled detector.

    What exists under the path is meant first; `./NAME` is never a name of the catalogue.

    Args:
        given: as it was typed.
        tasks: what the command can use; none for anything.

    Raises:
        UsageError: if the name is one of the catalogue and not installed, or of a model for something else; or if it
            is the folder of a training; says what of it is meant.
    """
    name = str(given)
    entries = read_catalogue()
    if given.is_dir() and not (given / "config.json").exists():
        for trained in (given / "model", given / WEIGHTS):
            if trained.exists():
                raise UsageError(f"{name} is a folder around a model: name the model itself, {trained}")
    if given.exists() or name not in entries:
        bundled = None if given.exists() else find_bundled_path(name)
        if bundled is None:
            _refuse_typo(given, [*entries, *BUNDLED])
        return bundled or given
    entry = entries[name]
    if tasks and entry.task not in tasks:
        raise UsageError(
            f"{name} is a model for {entry.task}, and needed is one for {' or '.join(tasks)}; "
            "`roadaware models list` says what each is for"
        )
    found = find_installed_path(entry)
    if found is None:
        raise UsageError(f"{name} is not installed: `roadaware models get {name}` fetches it")
    return found


def _refuse_typo(given: Path, entries: Sequence[str]) -> None:
    """Refuse what is neither there nor a path, and looks like a name of the catalogue."""
    name = str(given)
    if given.exists() or given.suffix or "/" in name:
        return
    near = difflib.get_close_matches(name, entries, n=1)
    if near:
        raise UsageError(f"there is no file or folder {name!r}; did you mean the model '{near[0]}'?")


def remove_model(name: str) -> int:
    """Remove an installed model, whole; the bytes that it took, 0 where it was not there.

    Raises:
        UsageError: if there is no such name.
        DiskError: if it cannot be removed.
    """
    folder = get_models_folder() / find_entry(name).name
    if not folder.is_dir():
        return 0
    size = measure_folder_size(folder)
    gone = make_temporary_path(folder)
    try:
        folder.rename(gone)  # at once: nobody opens half of it
        if gone.is_symlink():
            gone.unlink()  # what it led to lies where somebody put it
        else:
            shutil.rmtree(gone)
    except OSError as error:
        raise DiskError(f"{folder} cannot be removed: {error.strerror}") from error
    return size


def measure_folder_size(folder: Path) -> int:
    """Bytes of the files of an installed model."""
    return sum((folder / name).lstat().st_size for name in list_folder_names(folder))


def replace_folder(made: Path, folder: Path) -> None:
    """Put a whole folder in the place of another, or of nothing.

    Args:
        made: is whole, beside `folder`.
        folder: where it goes.

    Raises:
        DiskError: if the disk refuses.
    """
    old = make_temporary_path(folder)
    # Two renames: for a moment nothing is there, but never half a model.
    try:
        if folder.exists():
            folder.rename(old)
        made.rename(folder)
    except OSError as error:
        raise build_disk_error(folder, 0, error) from error
    shutil.rmtree(old, ignore_errors=True)


# Names of what the channels of published models stand for.

COCO = (
    "person", "bicycle", "car", "motorcycle", "airplane", "bus", "train", "truck", "boat", "traffic light",
    "fire hydrant", "stop sign", "parking meter", "bench", "bird", "cat", "dog", "horse", "sheep", "cow",
    "elephant", "bear", "zebra", "giraffe", "backpack", "umbrella", "handbag", "tie", "suitcase", "frisbee",
    "skis", "snowboard", "sports ball", "kite", "baseball bat", "baseball glove", "skateboard", "surfboard",
    "tennis racket", "bottle", "wine glass", "cup", "fork", "knife", "spoon", "bowl", "banana", "apple",
    "sandwich", "orange", "broccoli", "carrot", "hot dog", "pizza", "donut", "cake", "chair", "couch",
    "potted plant", "bed", "dining table", "toilet", "tv", "laptop", "mouse", "remote", "keyboard",
    "cell phone", "microwave", "oven", "toaster", "sink", "refrigerator", "book", "clock", "vase", "scissors",
    "teddy bear", "hair drier", "toothbrush",
)  # fmt: skip
JOINTS = (
    "nose", "left eye", "right eye", "left ear", "right ear", "left shoulder", "right shoulder", "left elbow",
    "right elbow", "left wrist", "right wrist", "left hip", "right hip", "left knee", "right knee",
    "left ankle", "right ankle",
)  # fmt: skip
LISTS: Mapping[str, tuple[str, ...]] = {"coco": COCO, "joints": JOINTS}


def describe_entry(entry: Entry) -> dict[str, Any]:
    """What is known of an entry, JSON-ready; `installed` is its folder, `record` what was noted there, or None."""
    folder = find_installed_folder(entry)
    plain = asdict(entry)
    plain.pop("graph")
    source = plain.pop("source")
    kind = type(entry.source).__name__.removesuffix("Source").lower()
    return {
        **plain,
        "source": {"kind": kind, **source},
        "installed": str(folder) if folder else None,
        "record": read_record(folder) if folder else None,
    }
