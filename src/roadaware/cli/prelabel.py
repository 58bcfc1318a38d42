"""`roadaware prelabel`: what proposals may be, as CLIP says it of what their boxes show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from roadaware.cli import console, outputs
from roadaware.cli.networks import (
    ALL_VIDEOS,
    Device,
    Precision,
    VideoSource,
    open_saved,
    select_device,
    show_resumable,
)
from roadaware.cli.options import (
    USUAL,
    Common,
    Outcome,
    Output,
    Overwrite,
    Several,
    Stated,
    Switch,
    validate_range,
)
from roadaware.cli.predict import split_texts
from roadaware.io.sources import digest, read_file
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.models.crops import CropRule
from roadaware.protocols.coda import load_object_classes
from roadaware.reports import terminal
from roadaware.scenes.store import save
from roadaware.tasks.prelabels import PREDICTIONS, PrelabelRun, select_films

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
    texts: Annotated[tuple[str, ...], Parameter(help=_TEXTS), Several, Stated] = (),
    template: Annotated[tuple[str, ...], Parameter(help=_TEMPLATE), Several, Stated] = (),
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
    from roadaware.models.loading import digest_model_files
    from roadaware.models.open_vocabulary import TEMPLATES, open_namer

    labels, words = select_prelabels(texts)
    rule, templates = CropRule(margin), template or TEMPLATES
    predictions = open_saved(proposals, "proposals")
    films = select_films(predictions, source.collect(videos, "the images"))
    place, folder = select_device(device, precision), resolve_weights(clip, ("image-text",))
    with console.log_step("opening CLIP"):
        namer = open_namer(folder, words, templates=templates, batch=batch, device=place[0], dtype=place[1])
        weights = digest_model_files(folder)
    settings: dict[str, Any] = {"proposals": digest(read_file(proposals / "meta.json")), "clip": weights}
    settings |= {"labels": labels, "words": words, "templates": templates}
    settings |= {"top": top, "margin": margin, "precision": precision}
    run, total = PrelabelRun(out, settings, predictions, overwrite=overwrite), len(predictions.boxes)
    with show_resumable("naming", lambda: f"{run.named} of {total} boxes are named") as shown:
        run.name(namer, films, labels, rule=rule, top=top, progress=shown)
    result, gone = run.finish(labels, settings)
    save(result, out / PREDICTIONS, overwrite=True)
    counts = result.boxes["prelabel"].drop_nulls().value_counts(sort=True)
    data = {
        "folder": str(out / PREDICTIONS),
        "boxes": len(result.boxes),
        "without": int(result.boxes["prelabel"].null_count()),
        "gone": dict(list(gone.items())[:_SHOWN]),
        "prelabels": dict(counts.iter_rows()),
    }
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
