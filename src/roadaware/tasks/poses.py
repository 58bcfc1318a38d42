"""Joints of people in a folder: a part per video, kept as soon as it is whole, and one table in the end."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.io.files import remove_stale_files, write_atomically
from roadaware.io.parallel import HERE, OpenedPerWorker, Workers, run_parts
from roadaware.io.parquet import read_parquet
from roadaware.io.sources import is_outside, to_printable
from roadaware.scenes.dense_scores import convert_to_matrix, get_score_layout
from roadaware.scenes.schema import CORNERS, PEOPLE
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.prediction_runs import open_run_folder
from roadaware.tasks.videos import Film, iterate_shots

if TYPE_CHECKING:
    from roadaware.models.graphs.movenet import PoseReader

FORMAT, RECORD, PARTS, TABLE = "roadaware-poses", "poses.json", "parts", "poses.parquet"
AGENT, OBJECT = "agent", "object"
_SURE = 0.25
_SCHEMA: dict[str, pl.DataType] = {
    "video": pl.String(),
    "name": pl.String(),
    "frame": pl.Int64(),
    "joints_px": pl.List(pl.Float32),
    "seen": pl.Int64(),
    "score": pl.Float32(),
    **dict.fromkeys(CORNERS, pl.Float32()),
}


def people_in(tables: Scenes | Predictions) -> pl.DataFrame:
    """Boxes of people: `video`, `frame`, `name` and corners, in the order of the videos and frames.

    Of sets that distinguish agents they are those labelled as pedestrians, or whose best agent is one; sets
    that do not, such as JAAD and PIE, hold people alone. Of what a detector predicts, boxes without a tube are
    left out where others have one, else those of a score below .25. The name is that of the tube, else its
    number; a box without a tube is `box` and its number.

    Args:
        tables: ground truth, or what a detector predicts.

    Raises:
        InputError: if nobody is there.
    """
    words, objects = tables.meta.vocabularies.get(AGENT), tables.meta.vocabularies.get(OBJECT)
    if words is None and objects is not None:
        boxes = _select_objects(tables, tuple(objects))
    else:
        boxes = tables.boxes if words is None else _pedestrians(tables, tuple(words))
    if isinstance(tables, Predictions):
        # Predicted boxes with a sufficient score
        every = tables.boxes
        if "tube" in every.columns and every["tube"].null_count() < len(every):
            boxes = boxes.filter(pl.col("tube").is_not_null())
        else:
            boxes = boxes.filter(pl.col("score") >= _SURE) if "score" in boxes.columns else boxes
    if boxes.is_empty():
        raise InputError(
            f"none of {len(tables.boxes):,} boxes is around a person",
            hint="`predict` with a detector of agents makes such boxes, `link` gives them names",
        )
    names = pl.format("box{}", pl.col("box"))
    if "tube" in boxes.columns:
        of_tube = pl.col("tube").cast(pl.String)
        if "name" in tables.tubes.columns:
            known = tables.tubes.select("tube", known=pl.col("name").cast(pl.String))
            boxes = boxes.join(known, on="tube", how="left", maintain_order="left")
            of_tube = pl.coalesce("known", of_tube)
        names = pl.coalesce(of_tube, names)
    found = boxes.select(pl.col("video").cast(pl.String), "frame", names.alias("name"), *CORNERS)
    return found.sort("video", "frame", "name", maintain_order=True)


def _select_objects(tables: Scenes | Predictions, words: tuple[str, ...]) -> pl.DataFrame:
    """Boxes of sets about objects (KITTI, nuScenes, ONCE) that are people on foot."""
    people = [place for place, word in enumerate(words) if "pedestrian" in word.lower()]
    labels = tables.labels.filter((pl.col("kind").cast(pl.String) == OBJECT) & pl.col("label").is_in(people))
    return tables.boxes.join(labels.select("box").unique(), on="box", how="semi", maintain_order="left")


def _pedestrians(tables: Scenes | Predictions, words: tuple[str, ...]) -> pl.DataFrame:
    """Boxes whose agent is a pedestrian: by label, else by the best score."""
    people = [place for place, word in enumerate(words) if word.lower() in PEOPLE]
    if not people:
        raise InputError(f"agents are {', '.join(words)[:200]}; none of them is a person")
    boxes = tables.boxes
    if isinstance(tables, Predictions) and "scores" in boxes.columns:
        columns = get_score_layout(tables.meta, "boxes")
        if AGENT in columns.kinds and len(boxes):
            scores = convert_to_matrix(boxes["scores"], columns.width)[:, columns.columns(AGENT)]
            known = [place for place, word in enumerate(columns.kinds[AGENT]) if word.lower() in PEOPLE]
            return boxes.filter(pl.Series(np.isin(scores.argmax(axis=1), known)))
    labels = tables.labels.filter((pl.col("kind").cast(pl.String) == AGENT) & pl.col("label").is_in(people))
    return boxes.join(labels.select("box").unique(), on="box", how="semi", maintain_order="left")


class PoseRun:
    """The folder of a run: `poses.json`, `parts/` and, once it is over, `poses.parquet`.

    A part that is there and not older than its video stands. `kept` are the videos that are done, `gone` says
    why images of others cannot be read.

    Args:
        folder: new, empty, or of the same run.
        settings: JSON-ready; what the joints depend on.
        people: whose joints are wanted, as of `people_in`.
        threshold: joints of a lower score count as not seen.
        overwrite: begin anew where another run is.

    Raises:
        UsageError: if the folder holds other things, or a run with other settings.
        DiskError: if it cannot be written to.
    """

    def __init__(
        self,
        folder: Path,
        settings: Mapping[str, Any],
        people: pl.DataFrame,
        threshold: float,
        *,
        overwrite: bool = False,
    ) -> None:
        if not 0 <= threshold <= 1:
            raise UsageError(f"--threshold lies from 0 to 1, not {threshold:g}")
        self.folder, self.threshold = folder, threshold
        self.kept: list[str] = []
        self.gone: list[str] = []
        self._people = {str(key[0]): part for key, part in people.group_by("video", maintain_order=True)}
        # As text: the bytes of tables differ by whether a dataset was parsed or came from the cache.
        whose = hashlib.blake2b(people.write_csv().encode(), digest_size=12).hexdigest()
        settings = {**settings, "people": whose, "threshold": threshold}
        self._hold, goes_on = open_run_folder(folder, RECORD, FORMAT, settings, overwrite=overwrite)
        (folder / PARTS).mkdir(exist_ok=True)
        remove_stale_files(folder / PARTS)
        if not goes_on:
            (folder / TABLE).unlink(missing_ok=True)
            for path in (folder / PARTS).rglob("*.parquet"):
                path.unlink()

    def select_films(self, films: Sequence[Film]) -> list[Film]:
        """The videos that show somebody.

        Raises:
            InputError: if none of them does.
        """
        found = [film for film in films if film.video in self._people]
        if not found:
            first = to_printable(films[0].video) if films else "not there"
            raise InputError(
                f"the boxes are of {to_printable(next(iter(self._people)))}, and none of {len(films)} videos is: "
                f"the first is {first}"
            )
        return found

    def read(
        self,
        reader: PoseReader,
        films: Sequence[Film],
        *,
        open_reader: Callable[[], PoseReader] | None = None,
        workers: Workers = HERE,
        progress: Callable[[int, int, str], None] = lambda done, total, unit: None,
    ) -> pl.DataFrame:
        """Find the joints of the people in videos, and join all parts to one table, which is written, too.

        Args:
            reader: that finds them.
            films: as of `select_films`.
            open_reader: by which other processes open the same reader.
            workers: where videos are looked at, and how many at a time.
            progress: called with the people done and the total.

        Raises:
            FindingsError: if videos could not be looked at, once the others are.
            DiskError: if the disk refuses.
        """
        total, done = sum(len(self._people[film.video]) for film in films), 0
        due = []
        for film in films:
            if self.stands(film.video, film.picture(film.frames[0]) if film.is_pictures else Path(film.path)):
                self.kept.append(film.video)
                done += len(self._people[film.video])
            else:
                due.append((film, self._people[film.video], self.part(film.video)))
        faults: dict[str, list[str]] = {}

        def note(part: tuple[Film, pl.DataFrame, Path], found: list[str]) -> None:
            nonlocal done
            faults[part[0].video] = found
            done += len(part[1])
            self.kept.append(part[0].video)
            progress(done, total, "people")

        act = partial(find_film_joints, self.threshold)
        work = OpenedPerWorker(act, open_reader or (lambda: reader), reader)
        run_parts(
            work, due, workers, what="videos", name=lambda part: part[0].video, done=note, folder=self.folder,
            before=len(films) - len(due),
        )  # fmt: skip
        # In the order of the videos, whichever was done first.
        self.gone += [fault for film in films for fault in faults.get(film.video, ())]
        self.kept = [film.video for film in films if self.part(film.video).is_file()]
        return self.finish(self.kept)

    def part(self, video: str) -> Path:
        """Path of the joints of a video.

        Raises:
            InputError: if its name leads out of the folder.
        """
        if is_outside(f"{video}.parquet"):
            raise InputError("the name of the video leads out of the folder", where=to_printable(video))
        return self.folder / PARTS / f"{video}.parquet"

    def stands(self, video: str, film: Path) -> bool:
        """Whether the joints of a video are there, and not older than its video."""
        path = self.part(video)
        return path.is_file() and path.stat().st_mtime_ns >= film.stat().st_mtime_ns

    def finish(self, videos: list[str]) -> pl.DataFrame:
        """All joints as one table, which is written, too.

        Args:
            videos: whose parts are there, in order.
        """
        parts = [read_parquet(self.part(video)) for video in videos]
        table = pl.concat(parts) if parts else pl.DataFrame(schema=_SCHEMA)
        write_atomically(self.folder / TABLE, _bytes(table))
        return table


def find_film_joints(
    threshold: float, reader: PoseReader, part: tuple[Film, pl.DataFrame, Path]
) -> list[str]:
    """Find the joints of the people in a video, and write them; why images cannot be read.

    Args:
        threshold: joints of a lower score stand at 0.
        reader: that finds them.
        part: the video; its rows of `people_in`; where they go, if an image can be read.

    Raises:
        DiskError: if the disk refuses.
    """
    film, people, path = part
    of_frame = {int(str(key[0])): rows for key, rows in people.group_by("frame", maintain_order=True)}
    shown, found, faults = [people.clear()], [np.zeros((0, len(reader.joints), 3), np.float32)], list[str]()
    for shot in iterate_shots(film, sorted(of_frame)):
        if shot.picture is None:
            faults.append(shot.fault)
            continue
        rows = of_frame[shot.frame]
        shown.append(rows)
        found.append(reader.read(shot.picture, rows.select(CORNERS).to_numpy().astype(np.float64)))
    joints = np.concatenate(found)
    seen = joints[..., 2] >= threshold
    kept = np.where(seen[..., None], joints, np.float32(0)).astype(np.float32)
    table = (
        pl.concat(shown)
        .with_columns(
            joints_px=pl.Series(kept.reshape(len(kept), -1).tolist(), dtype=pl.List(pl.Float32)),
            seen=pl.Series(seen.sum(axis=1)),
            score=pl.Series(joints[..., 2].mean(axis=1)),
        )
        .select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())
    )
    path.unlink(missing_ok=True)
    if len(table):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, _bytes(table))
    return faults


def _bytes(table: pl.DataFrame) -> bytes:
    held = io.BytesIO()
    table.write_parquet(held)
    return held.getvalue()
