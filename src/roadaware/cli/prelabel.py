"""`roadaware prelabel`: what proposals may be, as CLIP says it of what their boxes show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import polars as pl
from cyclopts import Parameter

from roadaware.cli import console, datasets, outputs
from roadaware.cli.devices import Device, Precision, select_device
from roadaware.cli.options import USUAL, Common, Outcome, Output, Overwrite, Several, Switch, validate_range
from roadaware.cli.predict import split_texts
from roadaware.cli.predict_videos import ALL_VIDEOS, VideoSource
from roadaware.errors import InputError, Terminated
from roadaware.io.sources import digest, read_file
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.models.open_vocabulary.crops import CropRule, crop
from roadaware.protocols.coda import load_object_classes
from roadaware.reports import terminal
from roadaware.scenes.store import open_predictions, save
from roadaware.tasks.prelabels import PREDICTIONS, PrelabelRun, build_prelabels

if TYPE_CHECKING:
    from roadaware.models.open_vocabulary.clip import CropNamer
    from roadaware.scenes.tables import Predictions
    from roadaware.training.footage import Film

_PROPOSALS = "Saved predictions, such as the folder `proposals` that `propose` wrote."
_CLIP = "A name of `models list`, or the folder of a CLIP of transformers, with its tokenizer.json."
_VIDEOS = (
    "The images of the proposals: KITTI, nuScenes, ONCE, synthetic scenes, saved tables, another set with "
    "--reader, or videos and folders of videos."
)
_OUT = "Where the result goes: a new or empty folder, or one of the same command, which is continued."
_TEXTS = "Labels to choose from, such as tyre,dog. [default: the classes of CODA that are known by name]"
_TEMPLATE = "Sentence around a label, with {} for it; several are averaged. [default: three usual ones]"
_MARGIN = "Of a box's longer side, added around it before it is cut out."
_SHOWN = 10
_WORDS = {"suitcace": "suitcase", "misc": "object"}
"""Words for labels of CODA that are none."""


def prelabel(
    proposals: Annotated[Path, Parameter(help=_PROPOSALS)],
    /,
    *,
    clip: Annotated[Path, Parameter(help=_CLIP)],
    videos: Annotated[list[Path], Parameter(help=_VIDEOS), Several],
    out: Annotated[Path, Output, Parameter(help=_OUT), outputs.PRELABELS],
    source: VideoSource = ALL_VIDEOS,
    texts: Annotated[tuple[str, ...], Parameter(help=_TEXTS, show_default=False), Several] = (),
    template: Annotated[tuple[str, ...], Parameter(help=_TEMPLATE, show_default=False), Several] = (),
    top: Annotated[int, Parameter(help="Labels that are kept.", validator=validate_range(1, 100))] = 3,
    margin: Annotated[float, Parameter(help=_MARGIN)] = 0.1,
    batch: Annotated[int, Parameter(help="Boxes at a time.", validator=validate_range(1, 4096))] = 16,
    device: Device = "auto",
    precision: Precision = "fp32",
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 if a box has no pre-label."), Switch] = False,
    common: Common = USUAL,
) -> Outcome:
    """Name proposals with CLIP: columns `prelabel` and `prelabel_score`, and the best few of both.

    For each box the image is cut around it, and the labels are ranked by how well they fit: a help for
    those who label, not a result. Scores are probabilities among the given labels. Nothing is downloaded.
    After Ctrl-C or a crash the same command goes on. Boxes whose image is not there are counted and stay
    without.

    For example:

        roadaware prelabel proposals/proposals --clip CLIP-VIT-B-32 --videos KITTI --output prelabelled

        roadaware evaluate corner-cases --truth TRUTH --predictions prelabelled/predictions --trained-on coda
    """
    from roadaware.models.open_vocabulary.clip import TEMPLATES

    labels, words = select_prelabels(texts)
    rule, templates = CropRule(margin), template or TEMPLATES
    claims = _open_proposals(proposals)
    found = _films(claims, videos, source)
    namer, weights = _namer(clip, words, templates, batch, select_device(device, precision))
    settings: dict[str, Any] = {"proposals": _digest(proposals), "clip": weights, "labels": labels}
    settings |= {"words": words, "templates": templates, "top": top, "margin": margin, "precision": precision}
    run = PrelabelRun(out, settings, claims, overwrite=overwrite)
    _label_parts(run, namer, found, labels, rule, top)
    result, gone = run.finish(labels, settings)
    save(result, out / PREDICTIONS, overwrite=True)
    data = _data(out / PREDICTIONS, result, gone)
    failed = f"--strict: {data['without']} boxes have no pre-label" if strict and gone else None
    return Outcome(_text(data), data, failed)


def select_prelabels(texts: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Labels to choose from, and the words that a model is asked for.

    Args:
        texts: of the command line; the classes of CODA that are known by name where there are none.

    Raises:
        UsageError: if one is empty, or two are the same.
    """

    if texts:
        found = split_texts(texts)
        return found, found
    labels = tuple(each.label for each in load_object_classes())
    return labels, tuple(_WORDS.get(label, label.replace("_", " ")) for label in labels)


def _open_proposals(path: Path) -> Predictions:

    if not datasets.is_saved(path):
        hint = "name the folder `proposals` inside it" if (path / "proposals").is_dir() else None
        raise InputError("expected saved predictions with meta.json", where=str(path), hint=hint)
    return open_predictions(path)


def _digest(path: Path) -> str:

    return digest(read_file(path / "meta.json"))


def _namer(
    folder: Path, words: Sequence[str], templates: Sequence[str], batch: int, place: tuple[Any, Any]
) -> tuple[CropNamer, str]:
    from roadaware.models.loading import digest_model_files
    from roadaware.models.open_vocabulary.clip import open_namer

    folder = resolve_weights(folder, ("image-text",))
    with console.log_step("opening CLIP"):
        found = open_namer(folder, words, templates=templates, batch=batch, device=place[0], dtype=place[1])
        return found, digest_model_files(folder)


def _films(claims: Predictions, videos: list[Path], source: VideoSource) -> dict[str, Film]:
    """Video to its images.

    Raises:
        InputError: if none of the proposals' videos is there.
    """

    with console.log_step("opening the images"):
        asked = source.collect(videos)
    wanted = claims.boxes["video"].cast(pl.String).unique(maintain_order=True).to_list()
    found = {film.video: film for film in asked.films}
    if wanted and not found.keys() & set(wanted):
        raise InputError(
            f"the proposals are about {len(wanted)} videos ({', '.join(wanted[:3])}, ...), none of which is "
            f"among the {len(asked.order)} that are given ({', '.join(asked.order[:3])}, ...)",
            hint="name the dataset that the proposals were made for",
        )
    return found


def _label_parts(
    run: PrelabelRun,
    namer: CropNamer,
    films: dict[str, Film],
    labels: Sequence[str],
    rule: CropRule,
    top: int,
) -> None:
    """Do the parts that are still to be done.

    Raises:
        KeyboardInterrupt, Terminated: if it was stopped; parts that are done are kept.
    """

    due = run.due()
    done = sum(len(part) for number, part in enumerate(run.parts) if number not in due)
    total = len(run.claims.boxes)
    try:
        with console.show_progress("naming") as progress:
            for number in due:
                boxes, crops, gone = _crops(run.parts[number], films, rule)
                run.keep(number, build_prelabels(boxes, namer.scores(crops), labels, top), gone)
                done += len(run.parts[number])
                progress(done, total, "boxes")
    except (KeyboardInterrupt, Terminated):
        console.print_note(f"{done} of {total} boxes are named; the same command goes on")
        raise


def _crops(
    part: pl.DataFrame, films: dict[str, Film], rule: CropRule
) -> tuple[list[int], list[Any], dict[str, int]]:
    """Numbers of boxes with what they show, and how many others cannot be looked at, by reason."""
    from roadaware.training.footage import iterate_shots

    boxes: list[int] = []
    crops: list[Any] = []
    gone: dict[str, int] = {}
    for video, rows in ((str(key[0]), rows) for key, rows in part.group_by("video", maintain_order=True)):
        if video not in films:
            reason = "its video is not among those that are given, or cannot be opened"
            gone[reason] = gone.get(reason, 0) + len(rows)
            continue
        held = {int(str(k[0])): each for k, each in rows.group_by("frame", maintain_order=True)}
        for shot in iterate_shots(films[video], held):
            some = held[shot.frame]
            if shot.picture is None:
                gone[shot.fault] = gone.get(shot.fault, 0) + len(some)
                continue
            boxes += some["box"].to_list()
            edges = some.select("x1_px", "y1_px", "x2_px", "y2_px").to_numpy()
            crops += [crop(shot.picture, box, rule) for box in edges]
    return boxes, crops, gone


def _data(target: Path, result: Predictions, gone: dict[str, int]) -> dict[str, Any]:
    counts = result.boxes["prelabel"].drop_nulls().value_counts(sort=True)
    return {
        "folder": str(target),
        "boxes": len(result.boxes),
        "without": int(result.boxes["prelabel"].null_count()),
        "gone": dict(list(gone.items())[:_SHOWN]),
        "prelabels": dict(counts.iter_rows()),
    }


def _text(data: dict[str, Any]) -> str:
    rows = [
        (terminal.format_cell(name), f"{count:,}") for name, count in list(data["prelabels"].items())[:_SHOWN]
    ]
    lines = [f"{data['boxes'] - data['without']:,} of {data['boxes']:,} boxes are named"]
    lines.append(terminal.format_table(["pre-label", "boxes"], rows))
    if data["gone"]:
        lines.append(f"{data['without']:,} boxes are without, and are tried again by the same command:")
        lines.append(
            terminal.format_bullets(
                f"{count:,}: {terminal.format_cell(why)}" for why, count in data["gone"].items()
            )
        )
    return "\n".join([*lines, f"wrote {terminal.format_cell(data['folder'])}"])
