"""`roadaware label export`: proposals as tasks of Label Studio, COCO or Parquet, with their pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from roadaware.cli import console, outputs, text
from roadaware.cli.label_inputs import SENT, dataset, listed, pictures_of, proposals
from roadaware.cli.options import USUAL, Common, Outcome, OutPlace, Overwrite, Several, Switch
from roadaware.errors import InputError, UsageError

if TYPE_CHECKING:
    import polars as pl

    from roadaware.scenes.predictions import Predictions
    from roadaware.scenes.tables import Scenes

Form = Literal["labelstudio", "coco", "parquet"]
TASKS, CONFIG, COCO, PARQUET = "tasks.json", "labelling.xml", "tasks.coco.json", "tasks.parquet"
_PROPOSALS = "What `propose` wrote, or saved predictions with boxes."
_VIDEOS = "The dataset that they are of: one of `propose`, or saved tables beside their pictures."
_ROOT = "The folder that paths in saved tables start at; the one above them unless told."
_OUT = "A new or empty folder; it is what `label import` asks for later."
_AS = "What people work with; several may follow."
_LIST = "Only the pictures of this list, in its order: list.csv of `label select`, or its folder."
_MOST = "The first so many pictures."
_ALL = "Also pictures without a proposal, where something may have been missed."
_SERVED = (
    "The folder that Label Studio serves (LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT); paths start there. "
    "That of the dataset unless told, or --out where pictures are written there."
)
_COPY = "Copy stills into --out, so that it holds all that is needed."
_CLASSES = "Classes that people choose from; those of CODA unless told. Those of pre-labels are added."
_KIND = "The kind of label that pre-labels are."


def export(
    path: Annotated[Path, Parameter(help=_PROPOSALS)],
    /,
    *,
    videos: Annotated[Path, Parameter(help=_VIDEOS)],
    out: Annotated[Path, OutPlace, Parameter(help=_OUT), outputs.TASKS],
    as_: Annotated[tuple[Form, ...], Parameter(name="--as", help=_AS), Several] = ("labelstudio",),
    pictures: Annotated[Path | None, Parameter(name="--list", help=_LIST)] = None,
    most: Annotated[int | None, Parameter(help=_MOST)] = None,
    all_pictures: Annotated[bool, Parameter(name="--all", help=_ALL), Switch] = False,
    root: Annotated[Path | None, Parameter(help=_ROOT)] = None,
    served: Annotated[Path | None, Parameter(help=_SERVED)] = None,
    copy: Annotated[bool, Parameter(help=_COPY), Switch] = False,
    classes: Annotated[tuple[str, ...], Parameter(help=_CLASSES), Several] = (),
    kind: Annotated[str, Parameter(help=_KIND)] = "corner",
    overwrite: Overwrite = False,
    common: Common = USUAL,
) -> Outcome:
    """Write proposals as tasks for people who keep, correct, delete and add boxes.

    Pictures with a proposal are written, those with the best proposal first, each proposal with its score and
    its pre-label as class. Frames of films become pictures in --out; interrupted, the same command goes on
    with them. --out keeps what was sent, so that `label import` can say what became of each proposal.

    For example:

        roadaware label export runs/streets/proposals --videos runs/streets/scenes --out runs/tasks \\
            --as labelstudio coco parquet --classes traffic_cone dog debris barrier

        roadaware label export proposals --videos KITTI --list runs/list --most 500 --served KITTI --out tasks
    """
    from roadaware.scenes.formats.proposal_tasks import sent_out

    if not as_:
        raise UsageError("--as names at least one of labelstudio, coco and parquet")
    if most is not None and most < 1:
        raise UsageError(f"--most is a number of pictures from 1 on, not {most}")
    claims = proposals(path)
    scenes, base = dataset(videos, root)
    places = _places(claims, scenes, pictures, all_pictures=all_pictures)[:most]
    frames, bad = _framed(scenes, base, places, out, served, copy=copy)
    sent, left_out = sent_out(claims, frames, classes or _coda(), kind=kind)
    left_out |= bad
    written = _write(sent, out, as_)
    console.note(f"wrote {out}")
    return Outcome(_text(sent, out, written, left_out), _data(sent, out, written, left_out))


def _places(
    claims: Predictions, scenes: Scenes, listing: Path | None, *, all_pictures: bool
) -> list[tuple[str, int]]:
    """The pictures that are sent out, in the order of the work.

    Raises:
        UsageError: if a listed picture is not of the set, or no picture is left.
    """
    import polars as pl

    known = set(pictures_of(scenes).rows())
    score = pl.col("score").max() if "score" in claims.boxes.columns else pl.len()
    ranked = claims.boxes.group_by(pl.col("video").cast(pl.String), "frame").agg(best=score)
    ranked = ranked.sort(["best", "video", "frame"], descending=[True, False, False])
    own = ranked.select("video", "frame").rows()
    held = set(own)
    if listing is not None:
        wanted = list(dict.fromkeys(listed(listing)))
    else:
        wanted = own + (sorted(known - held) if all_pictures else [])
    lost = [place for place in wanted if place not in known]
    chosen = [place for place in wanted if all_pictures or place in held]
    if lost:
        video, frame = lost[0]
        raise UsageError(
            f"{len(lost)} pictures are not of the set that --videos names, first {video}, frame {frame}"
        )
    if not chosen:
        raise UsageError("no picture has a proposal; --all sends pictures without one, too")
    return chosen


def _framed(
    scenes: Scenes, base: Path, places: list[tuple[str, int]], out: Path, served: Path | None, *, copy: bool
) -> tuple[pl.DataFrame, dict[str, int]]:
    """The files of the pictures, and how many have none, by reason.

    Raises:
        InputError: if none can be read.
    """
    from roadaware.scenes.task_pictures import task_pictures

    bad: dict[str, int] = {}

    def refused(_: tuple[str, int], error: InputError) -> None:
        what = f"pictures: {error.message}"
        bad[what] = bad.get(what, 0) + 1

    with console.progress("pictures") as shown:
        frames = task_pictures(
            scenes, base, places, out, served=served, copy=copy, refused=refused, progress=shown
        )
    if frames.is_empty():
        raise InputError(f"none of {len(places)} pictures can be read; {next(iter(bad))}", where=str(base))
    return frames, bad


def _coda() -> tuple[str, ...]:
    from roadaware.protocols.coda import object_classes

    return tuple(each.label for each in object_classes())


def _write(sent: Predictions, out: Path, forms: tuple[Form, ...]) -> list[str]:
    """Write the tasks, then what was sent, with which an export is whole; the names of the tasks' files.

    An earlier export goes first, so that no task ever stands beside what was not sent with it; one that was
    interrupted holds nothing that was sent, so that the same command goes on.
    """
    import shutil

    from roadaware.cli.output import make_folder
    from roadaware.scenes.disk import atomic_write
    from roadaware.scenes.formats import proposal_tasks as tasks
    from roadaware.scenes.store import save

    files: dict[str, bytes] = {}
    if "labelstudio" in forms:
        files |= {TASKS: tasks.label_studio_tasks(sent), CONFIG: tasks.label_studio_config(sent)}
    if "coco" in forms:
        files[COCO] = tasks.coco_annotations(sent)
    if "parquet" in forms:
        files[PARQUET] = tasks.parquet_rows(sent)
    make_folder(out)
    shutil.rmtree(out / SENT, ignore_errors=True)
    for name in (TASKS, CONFIG, COCO, PARQUET):
        (out / name).unlink(missing_ok=True)
    for name, data in files.items():
        atomic_write(out / name, data)
    save(sent, out / SENT, overwrite=True)
    return list(files)


def _text(sent: Predictions, out: Path, written: list[str], left_out: dict[str, int]) -> str:
    words = sent.meta.vocabularies["corner"]
    shown = text.cell(str(out))
    lines = [
        f"{len(sent.frames):,} pictures with {len(sent.boxes):,} proposals, {len(sent.labels):,} of them "
        f"with a class, {len(words)} classes to choose from",
        *(f"left out: {count:,} {text.cell(what)}" for what, count in left_out.items()),
        *(f"  {shown}/{name}" for name in written),
    ]
    if TASKS in written:
        lines += [
            f"Label Studio: paste {CONFIG} into the labelling interface, import {TASKS}, and serve the "
            "pictures with LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED=true; export as JSON"
        ]
    lines.append(f"next: roadaware label import {shown} CORRECTED.json -o LABELS")
    return "\n".join(lines)


def _data(sent: Predictions, out: Path, written: list[str], left_out: dict[str, int]) -> dict[str, Any]:
    return {
        "folder": str(out),
        "pictures": len(sent.frames),
        "proposals": len(sent.boxes),
        "classes": list(sent.meta.vocabularies["corner"]),
        "files": written,
        "left_out": left_out,
    }
