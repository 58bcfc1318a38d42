"""What the commands of `label` take: proposals, the pictures they are on, lists, labels of several people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, datasets
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    import polars as pl

    from roadaware.analysis.labelling.labour import Labour
    from roadaware.scenes.predictions import Predictions
    from roadaware.scenes.tables import Scenes

SENT, LABELS = "sent", "labels"
"""Folders inside results: what was sent out, and what came back."""
_LIMIT = 1 << 28


@Parameter(name="*")
@dataclass(frozen=True)
class Seconds:
    """What work costs: one person's seconds, assumptions to be replaced by what you measure."""

    look: Annotated[float, Parameter(name="--look-s")] = 10.0
    """Seconds to look a picture over."""
    judge: Annotated[float, Parameter(name="--judge-s")] = 2.0
    """Seconds to keep or delete a proposal."""
    correct: Annotated[float, Parameter(name="--correct-s")] = 10.0
    """Seconds to bring a proposal's edges to the object."""
    draw: Annotated[float, Parameter(name="--draw-s")] = 35.0
    """Seconds to draw and name a box; 35 is what a box of ILSVRC took."""

    def labour(self) -> Labour:
        """The model of labour.

        Raises:
            UsageError: if a number makes no sense.
        """
        from roadaware.analysis.labelling.labour import Labour

        return Labour(self.look, self.judge, self.correct, self.draw)


USUAL_SECONDS = Seconds()


def proposals(path: Path) -> Predictions:
    """Saved proposals: the folder that `propose` wrote, or the one in it.

    Raises:
        InputError: if there are none.
    """
    from roadaware.scenes.store import open_predictions

    inner = path / "proposals"
    with console.working(f"opening {path}"):
        return open_predictions(inner if datasets.is_saved(inner) and not datasets.is_saved(path) else path)


def dataset(path: Path, root: Path | None) -> tuple[Scenes, Path]:
    """A set with its pictures: a dataset, or saved tables beside them; and the folder its paths start at.

    Args:
        path: of the set.
        root: the folder that paths start at; the dataset's own, or that above saved tables, unless told.

    Raises:
        DatasetNotFoundError: if it is no dataset that is known.
        UsageError: if it is an archive.
    """
    from roadaware.cli.propose import kind_of, root_of
    from roadaware.scenes.readers import read
    from roadaware.scenes.store import open_scenes

    if datasets.is_saved(path):
        with console.working(f"opening {path}"):
            return open_scenes(path), root or path.absolute().parent
    name = kind_of(path)
    base = root_of(name, path)
    with console.progress(f"reading {name}") as shown:
        return read(name, base, progress=shown), root or base


def pictures_of(scenes: Scenes) -> pl.DataFrame:
    """video and frame of all pictures of a set.

    Raises:
        InputError: if its tables do not say.
    """
    import polars as pl

    frames = scenes.frames.select(pl.col("video").cast(pl.String), "frame")
    rest = scenes.videos.with_columns(pl.col("video").cast(pl.String)).join(frames, on="video", how="anti")
    if "n_frames" in rest.columns and len(rest):
        counted = rest.drop_nulls("n_frames").select(
            "video", frame=pl.int_ranges(pl.col("n_frames"), dtype=pl.Int64)
        )
        frames = pl.concat([frames, counted.explode("frame").drop_nulls()])
    if frames.is_empty():
        raise InputError("the tables name no pictures", where=scenes.meta.dataset or None)
    return frames


def listed(path: Path) -> list[tuple[str, int]]:
    """The pictures of a list that `label select` wrote, in its order: csv or JSON, or the folder with both.

    Raises:
        InputError: if it cannot be read, or is none.
    """
    import polars as pl

    from roadaware.scenes.csv_text import from_sheets
    from roadaware.scenes.disk import read_regular
    from roadaware.scenes.readers.json import decode, parse

    where = path / "list.csv" if path.is_dir() else path
    try:
        data = read_regular(where, limit=_LIMIT)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError("there is no such list", where=str(where), hint="Check the path.") from error
    try:
        if where.suffix == ".json":
            content = parse(decode(data, str(where)), str(where))
            table = pl.DataFrame(content["pictures"] if isinstance(content, dict) else content)
        else:
            table = pl.read_csv(
                data, infer_schema_length=None, schema_overrides={"video": pl.String}
            ).with_columns(from_sheets(pl.col("video")))
        rows = table.select(pl.col("video").cast(pl.String), pl.col("frame").cast(pl.Int64)).rows()
    except (pl.exceptions.PolarsError, KeyError, TypeError, ValueError) as error:
        message = f"expected a list with the columns video and frame: {str(error).splitlines()[0]}"
        raise InputError(message, where=str(where), hint="`roadaware label select` writes one.") from error
    if not rows:
        raise InputError("the list is empty", where=str(where))
    return rows


def labels(path: Path) -> Scenes:
    """What several annotators left: a folder that `label import` wrote, or saved tables.

    Raises:
        InputError: if there is none.
    """
    from roadaware.scenes.store import open_scenes

    inner = path / LABELS
    with console.working(f"opening {path}"):
        return open_scenes(inner if datasets.is_saved(inner) else path)


def sent_from(path: Path) -> Predictions:
    """What an export sent out.

    Raises:
        UsageError: if the folder is no export.
    """
    from roadaware.scenes.store import open_predictions

    if not datasets.is_saved(path / SENT):
        raise UsageError(
            f"{path} is no folder that `roadaware label export` wrote: there is no "
            f"{SENT} in it; give an export that was interrupted again"
        )
    return open_predictions(path / SENT)


def saved_files(tables: Any, folder: str) -> dict[str, bytes]:
    """A saved set as files of a result folder.

    Args:
        tables: Scenes or Predictions.
        folder: inside the result.
    """
    from roadaware.scenes.store import encode

    files, meta = encode(tables)
    return {f"{folder}/{name}": data for name, data in {**files, "meta.json": meta}.items()}
