"""What the viewer is given, opened: tables, films, evaluations, and findings with their places."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from roadaware.analysis.scene_tasks import TASKS, read_predictions
from roadaware.datasets.detect_format import detect_dataset_format, detect_reader, find_root
from roadaware.datasets.loading import SYNTHETIC, read_release, require_path
from roadaware.datasets.simulator import is_simulation
from roadaware.errors import DamagedError, InputError, RoadawareError, UsageError
from roadaware.formats.coda import read_corner_cases
from roadaware.io.files import read_regular
from roadaware.io.folders import FORMAT, MARKER, digest, read_marker
from roadaware.io.json import decode, parse
from roadaware.io.parquet import read_parquet
from roadaware.io.sources import resolve_inside
from roadaware.online.events import CROSSING, EVENTS, SUMMARY
from roadaware.reports import runs
from roadaware.scenes.schema import create_empty_table
from roadaware.scenes.store import is_saved, scan_tables
from roadaware.scenes.tables import Meta, Predictions, Scenes, TableSet
from roadaware.steps import log_step
from roadaware.tasks.poses import RECORD, TABLE

if TYPE_CHECKING:
    from roadaware.analysis.evaluation.runs import EventRun, Run, SceneRun

    AnyRun = EventRun | Run | SceneRun


_ITEMS = "items.parquet"
_LIMIT = 1 << 28
_MOST = 2_000
_MOST_TEXT = 2_000
_FRAME = re.compile(r"\bframes?:? *['\"]?([0-9]{1,9})\b", re.ASCII)
_WORD = re.compile(r"[^\s,;:'\"()\[\]{}<>|=]+")


def hold_findings(path: Path) -> bool:
    """Whether a path is what `audit --json` or `doctor --json` printed, or the folder of a `check`."""
    if path.is_file():
        return path.suffix.lower() == ".json" and _tells_findings(path)
    found = read_marker(path / MARKER, FORMAT)
    return found is not None and isinstance(found.get("files"), dict) and _ITEMS in found["files"]


def _tells_findings(path: Path) -> bool:
    """Whether a file of JSON begins as those of an audit or a doctor."""
    try:
        with path.open("rb") as file:
            start = file.read(1 << 16)
    except OSError:
        return False
    return b'"diagnoses"' in start or (b'"findings"' in start and b'"protocol"' in start)


def read_findings(path: Path) -> list[dict[str, Any]]:
    """Findings in a file or a folder, up to 2,000.

    Returns:
        each with `title` (what it is an instance of), `rank` (how grave it is, in a word), `words`, and as far as
        it says so `video`, `track`, `frame` and `corners` (of a box).

    Raises:
        InputError: if it is something else.
        DamagedError: if a file is not the one that was written.
    """
    if path.is_dir():
        return list(_read_check(path))
    data = parse(decode(read_regular(path, limit=_LIMIT), str(path)), str(path))
    try:
        if "findings" in data:
            rows = (row for finding in data["findings"] for row in _read_finding(finding))
            return list(itertools.islice(rows, _MOST))
        return [
            {
                "title": _text(each["code"]),
                "rank": _text(each["severity"]),
                "words": _join(each["says"], each["evidence"], each["remedy"]),
            }
            for each in itertools.islice(data["diagnoses"], _MOST)
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise InputError(
            f"expected what `audit --json` or `doctor --json` writes, found another form ({error})",
            where=str(path),
        ) from error


def _read_finding(finding: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    title, rank = _text(finding["name"]), _text(finding["severity"])
    yield {"title": title, "rank": rank, "words": _join(finding["sentence"], finding["advice"])}
    for example in finding["examples"]:
        frame = example["frame"]
        yield {
            "title": title,
            "rank": rank,
            "words": _text(example["note"] or ""),
            "video": None if example["video"] is None else _text(example["video"]),
            "track": None if example["pedestrian"] is None else _text(example["pedestrian"]),
            "frame": frame if type(frame) is int and 0 <= frame < 1 << 40 else None,
        }


def _read_check(folder: Path) -> Iterator[dict[str, Any]]:
    """The items that did not pass, those in dispute first."""
    marker = read_marker(folder / MARKER, FORMAT) or {}
    data = read_regular(folder / _ITEMS, limit=_LIMIT)
    if digest(data) != marker["files"][_ITEMS]:
        raise DamagedError(
            "this is not the file that was written", where=str(folder / _ITEMS), hint="Check again."
        )
    try:
        table = read_parquet(data).filter(pl.col("status") != "pass")
        rows = table.sort(pl.col("status") != "disputed", maintain_order=True).head(_MOST)
        held = rows.columns
        edges = [
            pl.coalesce(
                f"{file}_{edge}" for file in ("round2", "round1", "original") if f"{file}_{edge}" in held
            )
            for edge in ("x1", "y1", "x2", "y2")
        ]
        start = pl.coalesce(
            f"{file}_start" for file in ("round2", "round1", "original") if f"{file}_start" in held
        )
        columns = rows.select(
            "what",
            "video",
            "name",
            "status",
            pl.coalesce(pl.col("frame"), start.cast(pl.Int64, strict=False)).alias("frame"),
            pl.col("reasons").list.join("; ").alias("words"),
            pl.concat_list(edges).alias("corners"),
        )
    except (pl.exceptions.PolarsError, ValueError) as error:
        raise DamagedError(
            f"expected the items of a check, found: {error}", where=str(folder / _ITEMS)
        ) from error
    for row in columns.iter_rows(named=True):
        corners = row["corners"]
        yield {
            "title": row["what"],
            "rank": row["status"],
            "words": _text(row["words"]),
            "video": row["video"],
            "track": row["name"],
            "frame": row["frame"],
            "corners": None if corners is None or None in corners else corners,
        }


def find_place(text: str, videos: Mapping[str, int]) -> tuple[int | None, int | None]:
    """The number of the video that a text names, and the frame; None where it names none.

    A video is named by its name alone, or by a file that is called so: `video_0003_attributes.xml` names
    `video_0003` where no longer name fits.

    Args:
        text: of a person, a reader or a file.
        videos: name to number.
    """
    frame = _FRAME.search(text)
    number = int(frame[1]) if frame else None
    for word in _WORD.findall(text[:_MOST_TEXT]):
        for part in (word.rstrip("."), *reversed(word.rstrip(".").split("/"))):
            stem = part.rpartition(".")[0] or part
            while stem:
                if part in videos or stem in videos:
                    return videos[part if part in videos else stem], number
                stem = stem.rpartition("_")[0]
    return None, number


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, found {type(value).__name__}")
    return value[:_MOST_TEXT]


def _join(*parts: Any) -> str:
    return " ".join(_text(part) for part in parts if part)


TRUTH = "truth"
"""The side of what is true; predictions are the sides `a`, `b`, `c` ... in the order in which they are given."""
FILMS = (".mp4", ".mov", ".m4v", ".mkv", ".webm")
_INNER = ("predictions", "proposals", "sent", "labels")
"""Where commands save tables in a folder of theirs: watch and predict, propose, label export, label import."""
_MOST_SIDES = 5
_DEEPEST = 2
"""Folders of folders that are looked into: `runs/baselines/model` is found from `runs` on."""
_MOST_NAMED = 12
_MOST_TEXTS = 100
"""JSON files of a folder of runs; where there are more they are the annotations of a dataset."""


@dataclass(frozen=True, eq=False)
class TableSource:
    """One set of tables.

    Args:
        name: for people.
        predicted: whether it is Predictions.
        meta: of the set.
        tables: by name, those with rows.
        folder: what was named, beside whose files verdicts are kept; None where nothing can be written there.
        root: the folder that paths in the tables start at.
        digest: changes when the set does; what is said of one set is not said of another in its place.
        watch: the folder of the watch that made it, if one did.
        summary: of that watch.
        tables_folder: where the files of the tables lie, of sets that were saved.
    """

    name: str
    predicted: bool
    meta: Meta
    tables: dict[str, pl.LazyFrame]
    folder: Path | None
    root: Path
    digest: str = ""
    watch: Path | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    tables_folder: Path | None = None

    def scan(self, table: str) -> pl.LazyFrame:
        """A table; without rows where the set has none."""
        found = self.tables.get(table)
        return create_empty_table(table).lazy() if found is None else found

    @property
    def events(self) -> Path | None:
        """The events of the watch, where there are some."""
        path = None if self.watch is None else self.watch / EVENTS
        return path if path is not None and path.is_file() else None

    @property
    def crossing(self) -> Path | None:
        """The forecasts of the watch, where there are some."""
        path = None if self.watch is None else self.watch / CROSSING
        return path if path is not None and path.is_file() else None


@dataclass(frozen=True, eq=False)
class Opened:
    """All that was named.

    Args:
        sides: `truth`, `a`, `b` ... to their sets, in this order.
        evaluations: of any kind, with the folders that hold them.
        media: folders and files in which films are looked for.
        findings: of `audit`, `doctor` and `check`, by where they lie; see `findings.read_findings`.
        poses: files of joints.
    """

    sides: dict[str, TableSource]
    evaluations: tuple[tuple[Path, AnyRun], ...]
    media: tuple[Path, ...]
    findings: tuple[tuple[Path, list[dict[str, Any]]], ...] = ()
    poses: tuple[Path, ...] = ()

    @property
    def truth(self) -> TableSource | None:
        """What is true, where it was named."""
        return self.sides.get(TRUTH)

    def list_videos(self) -> list[str]:
        """Names of the videos that the sets list, those of the ground truth first."""
        names = [
            source.scan("videos").select(pl.col("video").cast(pl.String)) for source in self.sides.values()
        ]
        return list(dict.fromkeys(name for each in names for name in each.collect()["video"].to_list()))

    @property
    def predicted(self) -> dict[str, TableSource]:
        """The sides of predictions."""
        return {side: source for side, source in self.sides.items() if side != TRUTH}


def open_paths(paths: Sequence[Path], media: Sequence[Path] = (), reader: str | None = None) -> Opened:
    """Runs, datasets and saved tables opened, each as what it is; of a folder of such all that it holds.

    Args:
        paths: folders of runs, saved tables, datasets, or folders that hold some; films stand for `media`.
        media: folders and files in which films are looked for.
        reader: of a dataset as it was released; told by its content where None.

    Raises:
        UsageError: if nothing was named, or two sets of ground truth, or more predictions than can be told apart.
        InputError: if something is none of these, or cannot be read.
    """
    if not paths:
        raise UsageError("name what to look at: the folder of a run, saved tables or a dataset")
    for path in (*paths, *media):
        require_path(path)
    if reader is None:
        paths = list(dict.fromkeys(held for path in paths for held in _spread(path)))
    films = [path for path in paths if path.is_file() and path.suffix.lower() in FILMS]
    poses = [found for path in paths if (found := find_poses(path)) is not None]
    sources: list[TableSource] = []
    evaluations: list[tuple[Path, AnyRun]] = []
    findings: list[tuple[Path, list[dict[str, Any]]]] = []
    native: list[Path] = []
    for path in paths:
        if path in films or find_poses(path) is not None:
            continue
        if hold_findings(path):
            findings.append((path, read_findings(path)))
        elif runs.is_run(path):
            from roadaware.reports.run_kinds import (
                KINDS,  # all figures: a second, of which boxes have no need
            )

            with log_step(f"opening {path}"):
                run: AnyRun = runs.load_runs(KINDS[runs.describe_kind(path)].load, path)[0]
            evaluations.append((path, run))
        elif _is_native(path, reader):
            native.append(path)
        else:
            sources.append(_open_tables(path, reader))
    truth = next((source for source in sources if not source.predicted), None)
    sides = _arrange([*sources, *(_open_native(path, truth) for path in native)])
    if not sources:
        raise UsageError(
            "an evaluation or a list of findings holds no boxes: name its ground truth and predictions too, as in\n"
            "  roadaware view RUN TRUTH PREDICTIONS"
        )
    return Opened(sides, tuple(evaluations), (*media, *films), tuple(findings), tuple(poses))


def _spread(path: Path) -> list[Path]:
    """What a folder of runs holds, or the path itself; so that of a dataset with runs in it."""
    held = list_held(path)
    if held:
        with suppress(RoadawareError):
            detect_reader(path)
            return [path]
    return held or [path]


def list_held(folder: Path, deepest: int = _DEEPEST) -> list[Path]:
    """Runs, saved tables, joints and findings in a folder that is none of these itself, by name; else nothing.

    Links are not followed: they may lead out of what was named.

    Args:
        folder: such as the `runs` in which commands put theirs, or what `baseline` wrote.
        deepest: how many folders of folders are looked into.
    """
    if not folder.is_dir() or _is_one(folder) or is_simulation(folder):
        return []
    try:
        with os.scandir(folder) as entries:
            inside = sorted(
                (each for each in entries if not each.name.startswith(".")), key=lambda each: each.name
            )
    except OSError as error:
        raise InputError(
            f"expected a folder that can be read: {error.strerror}", where=str(folder)
        ) from error
    texts = [each for each in inside if each.name.lower().endswith(".json")]
    found: list[Path] = []
    for each in inside:
        if each.is_dir(follow_symlinks=False):
            found += [folder / each.name] if _is_one(folder / each.name) else []
            if deepest > 1:
                found += list_held(folder / each.name, deepest - 1)
        elif len(texts) <= _MOST_TEXTS and each in texts and each.is_file(follow_symlinks=False):
            found += [folder / each.name] if _is_one(folder / each.name) else []
    return found


def _is_one(path: Path) -> bool:
    """Whether a path is something that roadaware wrote and that is shown by itself."""
    if path.is_file():
        return hold_findings(path)
    saved = any(is_saved(folder) for folder in (path, *(path / name for name in _INNER)))
    unfinished = (path / "predictions.parts").is_dir()
    return saved or unfinished or runs.is_run(path) or find_poses(path) is not None or hold_findings(path)


def _arrange(sources: Sequence[TableSource]) -> dict[str, TableSource]:
    """The sets by side: what is true, and predictions in the order in which they are given."""
    true = [source for source in sources if not source.predicted]
    predicted = [source for source in sources if source.predicted]
    if len(true) > 1:
        raise UsageError(
            f"one set of ground truth can be looked at, these are {len(true)}: {_join_names(true)}; name the one"
        )
    if len(predicted) > _MOST_SIDES:
        raise UsageError(
            f"{_MOST_SIDES} predictions can stand side by side, not {len(predicted)}; name some of {_join_names(predicted)}"
        )
    return dict(zip([TRUTH] * len(true) + list("abcdefgh"), [*true, *predicted], strict=False))


def _join_names(sources: Sequence[TableSource]) -> str:
    """What was opened, as it can be named."""
    names = [source.name if source.folder is None else str(source.folder) for source in sources]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def open_sets(sets: Sequence[TableSet], media: Sequence[Path] = ()) -> Opened:
    """Scenes and Predictions in memory, as what is looked at; nothing is written of them.

    Args:
        sets: at most one of Scenes, and some of Predictions.
        media: folders and files in which films are looked for; paths in the tables start at the first folder.

    Raises:
        UsageError: if there are two sets of Scenes, or too many.
        InputError: if a path of `media` is not there.
    """
    for path in media:
        require_path(path)
    root = next((path.absolute() for path in media if path.is_dir()), Path(os.devnull))
    sources = []
    for held in sets:
        predicted = isinstance(held, Predictions)
        sources.append(
            TableSource(
                name=held.meta.dataset or ("predictions" if predicted else "scenes"),
                predicted=predicted,
                meta=held.meta,
                tables={name: frame.lazy() for name, frame in held.filled().items()},
                folder=None,
                root=root,
            )
        )
    return Opened(_arrange(sources), (), tuple(media))


def _is_native(path: Path, reader: str | None) -> bool:
    """Whether a path is predicted relations or maps of sounds in the form in which they are published."""
    maps = path.is_dir() and not is_saved(path) and any(path.glob("*.npy"))
    if reader is not None or not (maps or path.suffix.lower() in (".json", ".npz")) or _tells_coco(path):
        return False
    try:
        detect_dataset_format(path)
    except InputError:
        return True
    return False


def _open_native(path: Path, truth: TableSource | None) -> TableSource:
    """Predicted relations, or maps of sounds, whose words and names are those of the ground truth.

    Raises:
        InputError: if they cannot be read, or no ground truth with relations or sounds was named.
    """
    tasks = []
    if truth is not None:
        tables = {"relations": "relations", "sound": "sounds"}
        tasks = [name for name, table in tables.items() if table in truth.tables]
        tasks = [name for name in tasks if name == "sound" or path.suffix.lower() == ".json"]
    if truth is None or not tasks:
        raise InputError(
            "no dataset, and no predictions that go with what else was named",
            where=str(path),
            hint="Predicted relations and maps of sounds need a ground truth with relations or sounds beside them.",
        )
    scenes = load_tables(
        truth, ("videos", "frames", "boxes", "tubes", "tube_labels", "relations", "sounds"), Scenes
    )
    for name in tasks:
        try:
            with log_step(f"reading {path}"):
                found = read_predictions(TASKS[name], path, scenes)
        except InputError:
            if name == tasks[-1]:
                raise
        else:
            break
    return TableSource(
        name=path.name,
        predicted=True,
        meta=found.meta,
        tables={name: frame.lazy() for name, frame in found.filled().items()},
        folder=None,
        root=path.absolute().parent,
    )


def find_poses(path: Path) -> Path | None:
    """The table of joints of a folder that `poses` wrote; None where it is no such folder.

    Raises:
        InputError: if the folder's joints lie elsewhere, or are not whole yet.
    """
    if not (path / RECORD).is_file() or is_saved(path):
        return None
    if not (path / TABLE).exists():
        raise InputError("`poses` has not ended here: its joints are still in parts", where=str(path))
    return resolve_inside(Path(os.path.realpath(path)), TABLE)


def _open_tables(path: Path, reader: str | None) -> TableSource:
    """Saved tables, the folder of a command that holds some, or a dataset."""
    for folder in (path, *(path / name for name in _INNER)):
        if not is_saved(folder):
            continue
        with log_step(f"opening {folder}"):
            kind, meta, tables = scan_tables(folder)
            stated = read_regular(folder / "meta.json", limit=1 << 28)
        watched = folder != path and (path / EVENTS).is_file() and (path / SUMMARY).is_file()
        return TableSource(
            name=path.name or str(path),
            predicted=kind == "Predictions",
            meta=meta,
            tables=tables,
            folder=path,
            root=path if folder != path else path.absolute().parent,
            digest=hashlib.blake2b(stated, digest_size=8).hexdigest(),
            watch=path if watched else None,
            summary=_read_summary(path) if watched else {},
            tables_folder=folder,
        )
    if path.is_dir() and (path / "predictions.parts").is_dir():
        raise InputError(
            "this watch has not ended: its tables are still in parts",
            where=str(path),
            hint="Let it end, or give it again.",
        )
    found, scenes = _read_dataset(path, reader)
    return TableSource(
        name=path.name or str(path),
        predicted=False,
        meta=scenes.meta,
        tables={name: frame.lazy() for name, frame in scenes.filled().items()},
        folder=None,
        root=_find_root(found, path),
    )


def _read_summary(path: Path) -> dict[str, Any]:
    from roadaware.reports.watch_page import read_summary  # figures, too

    return read_summary(path)


def _find_root(reader: str, path: Path) -> Path:
    """The folder that paths in the tables of a release start at."""
    if not path.is_dir():
        return path.absolute().parent
    with suppress(RoadawareError):
        return find_root(reader, path)
    return path.absolute()


def _detect_reader(path: Path) -> str:
    """The reader of a dataset: told by the content of its files, else, of sets with sweeps, by its folders."""
    try:
        return detect_dataset_format(path)
    except InputError as error:
        try:
            return detect_reader(path)
        except InputError:
            raise error from None


def _read_dataset(path: Path, reader: str | None) -> tuple[str, Scenes]:
    """A dataset as it was released and its reader; COCO annotations, which no reader takes, as corner cases."""
    if reader is None and is_simulation(path):
        reader = SYNTHETIC
    try:
        found = reader or _detect_reader(path)
        return found, read_release(found, path)
    except InputError:
        if reader is not None or not _tells_coco(path):
            raise
    with log_step(f"reading {path}"):
        scenes = read_corner_cases(path)
    frames = scenes.frames
    if "file_name" in frames.columns and "path" not in frames.columns:
        scenes = scenes.with_tables(frames=frames.with_columns(path=pl.col("file_name").cast(pl.String)))
    return "", scenes


def _tells_coco(path: Path) -> bool:
    """Whether a file of JSON has the keys of COCO annotations at its beginning or end."""
    if not path.is_file() or path.suffix.lower() != ".json":
        return False
    with path.open("rb") as file:
        start = file.read(1 << 20)
        file.seek(max(0, path.stat().st_size - (1 << 20)))
        text = start + file.read(1 << 20)
    return all(key in text for key in (b'"images"', b'"annotations"', b'"categories"'))


def load_tables(
    source: TableSource, names: Iterable[str], kind: type[TableSet], *, dense: bool = False
) -> Any:
    """Some tables of a set as checked Scenes or Predictions, boxes without their dense scores and sounds.

    Args:
        source: of them.
        names: of the tables.
        kind: Scenes or Predictions.
        dense: whether boxes have their dense scores, too.

    Raises:
        InputError: if a table breaks a law.
    """
    held: dict[str, Any] = {}
    for name in names:
        if name in source.tables:
            left = () if name != "boxes" else ("sound",) if dense else ("scores", "sound")
            held[name] = source.tables[name].select(pl.exclude(*left) if left else pl.all()).collect()
    notes = {key: value for key, value in source.meta.notes.items() if dense or key != "dense_scores"}
    meta = Meta(
        dataset=source.meta.dataset,
        vocabularies=dict(source.meta.vocabularies),
        composites=dict(source.meta.composites),
        notes=notes,
    )
    return kind(**held, meta=meta)
