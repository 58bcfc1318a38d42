"""What networks say of images: `roadaware poses` finds joints, `segment` makes masks, `prelabel` names boxes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
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
    show_resumable,
)
from roadaware.cli.options import (
    CONTINUED,
    LOCAL,
    Outcome,
    Output,
    Overwrite,
    Several,
    Spread,
    Stated,
    Switch,
    describe_strict,
    validate_range,
)
from roadaware.cli.predict import split_texts
from roadaware.errors import UsageError
from roadaware.io.sources import digest, read_file
from roadaware.models.catalogue.entries import resolve_weights
from roadaware.models.crops import CropRule
from roadaware.protocols.coda import load_object_classes
from roadaware.reports import terminal
from roadaware.reports.drawing import draw_poses
from roadaware.reports.prediction_text import SHOWN, format_masks, format_poses, format_prelabels
from roadaware.scenes.store import save
from roadaware.tasks.poses import TABLE, PoseRun, people_in
from roadaware.tasks.prediction_runs import MaskRun
from roadaware.tasks.prelabels import PREDICTIONS, PrelabelRun, select_films

_VIDEOS = "Where people are seen: a dataset, or videos and folders of videos with --boxes."
_BOXES = "Whose joints: saved predictions, best the tubes of `link`. [default: the people of the dataset]"
_WEIGHTS = "A name of `models list`, or the file of such a model."
_DRAW = "Draw the joints into the first so many images with people, as PNG in the folder."


def poses(
    weights: Annotated[Path, Parameter(help=_WEIGHTS)] = Path("pose-small"),
    /,
    *,
    videos: Annotated[list[Path], Parameter(help=_VIDEOS), Several],
    out: Annotated[Path, Output, Parameter(help=CONTINUED), outputs.POSES],
    boxes: Annotated[Path | None, Parameter(help=_BOXES)] = None,
    source: VideoSource = ALL_VIDEOS,
    threshold: Annotated[float, Parameter(help="Joints of a lower score count as not seen.")] = 0.2,
    draw: Annotated[int, Parameter(help=_DRAW, validator=validate_range(0, 1000))] = 0,
    spread: Spread = LOCAL,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 if an image cannot be read."), Switch] = False,
) -> Outcome:
    """Find the 17 joints of each person in a box: a table that predictors of pedestrians read.

    A square around each box is processed by itself. Joints are in pixels of the image, in COCO's order,
    each with a score; one that is hardly seen stands at 0. A video is kept as soon as it is whole; after
    Ctrl-C or a crash the same command goes on with the next one.

    For example:

        roadaware poses --videos JAAD-JAAD_2.0.zip --reader jaad --media JAAD \\
            --films "JAAD_clips/{video}.mp4" --output poses

        roadaware train trouspi-net-jaad-poses --set samples.root=JAAD-JAAD_2.0.zip \\
            samples.poses=poses/poses.parquet

        roadaware poses --videos drive.mp4 --boxes runs/street/tubes --output poses --draw 8
    """
    from roadaware.models.graphs.movenet import open_poses
    from roadaware.models.loading import digest_model_files

    workers = spread.gather()
    path = resolve_weights(weights, ("pose",))
    with console.log_step("opening the model"):
        looker = open_poses(path)
    asked = source.collect(videos)
    if boxes is not None:
        people = people_in(open_saved(boxes, "predictions"))
    elif asked.scenes is not None:
        people = people_in(asked.scenes)
    else:
        raise UsageError(
            "videos do not say where people are: --boxes names tables that do, such as those of "
            "`roadaware predict --videos VIDEO --output RUN` and `roadaware link RUN/predictions --output TUBES`"
        )
    run = PoseRun(out, {"weights": digest_model_files(path)}, people, threshold, overwrite=overwrite)
    run.gone += [f"{video}: {reason}" for video, reason in asked.refused.items()]
    films = run.select_films(asked.films)
    with show_resumable("joints", lambda: f"{len(run.kept)} of {len(films)} videos are kept") as shown:
        table = run.read(
            looker, films, open_reader=partial(open_poses, path), workers=workers, progress=shown
        )
    data = {
        "file": str(run.folder / TABLE),
        "videos": table["video"].n_unique(),
        "people": table.select("video", "name").n_unique(),
        "boxes": len(table),
        "joints_seen": float(table["seen"].mean()) if len(table) else 0.0,  # type: ignore[arg-type]
        "without": int((table["seen"] == 0).sum()),
        "drawn": draw_poses(table, asked, out, draw) if draw else 0,
        "gone": run.gone,
    }
    failed = describe_strict(strict, len(run.gone), "images or videos cannot be read")
    return Outcome(format_poses(data), data, failed)


# `roadaware segment`: what each pixel of images shows, as masks that `propose` reads.

_FOLDER = (
    "A name of `models list`, or the folder of a segmenter of transformers: SegFormer, UperNet, Mask2Former "
    "or MaskFormer."
)
_SEGMENT_VIDEOS = (
    "The images: KITTI, nuScenes, ONCE, synthetic scenes, saved tables, another set with --reader, or videos "
    "and folders of videos."
)


def segment(
    folder: Annotated[Path, Parameter(help=_FOLDER)],
    /,
    *,
    videos: Annotated[list[Path], Parameter(help=_SEGMENT_VIDEOS), Several],
    out: Annotated[Path, Output, Parameter(help=CONTINUED), outputs.MASKS],
    source: VideoSource = ALL_VIDEOS,
    batch: Annotated[int, Parameter(help="Images at a time.", validator=validate_range(1, 4096))] = 1,
    device: Device = "auto",
    precision: Precision = "fp32",
    spread: Spread = LOCAL,
    overwrite: Overwrite = False,
    strict: Annotated[bool, Parameter(help="Exit with 1 if an image cannot be read."), Switch] = False,
) -> Outcome:
    """Segment images: a grey PNG of classes for each, as `propose --semantics` reads them.

    The folder is one of transformers, on the disk: config.json, model.safetensors and
    preprocessor_config.json. Nothing is downloaded. A mask is kept as soon as it is whole; after Ctrl-C or a
    crash the same command goes on with the next image. An image that cannot be read is counted and left
    out, and tried again the next time.

    For example:

        roadaware segment SEGFORMER-CITYSCAPES --videos KITTI --output masks

        roadaware propose KITTI --semantics masks --output proposals
    """
    from roadaware.models.devices import select_device
    from roadaware.models.loading import digest_model_files
    from roadaware.models.object_detectors import open_segmenter

    workers = spread.gather()
    place, folder = select_device(device, precision), resolve_weights(folder, ("segmentation",))
    open_again = partial(open_segmenter, folder, device=place[0], dtype=place[1])
    with console.log_step("opening the segmenter"):
        segmenter = open_again()
    asked = source.collect(videos)
    settings = {"weights": digest_model_files(folder), "precision": precision}
    run = MaskRun(out, settings, segmenter.labels, overwrite=overwrite)
    for video, reason in asked.refused.items():
        console.print_error(f"{terminal.format_cell(video)} is left out: {reason}")
    total = sum(len(film.frames) for film in asked.films)
    with show_resumable(
        "segmenting", lambda: f"{run.written + run.before} of {total} masks are kept"
    ) as shown:
        run.segment(
            segmenter, asked.films, batch=batch, open_segmenter=open_again, workers=workers, progress=shown
        )
    whole = int(run.pixels.sum())
    share = {label: n / whole for label, n in zip(run.labels, run.pixels.tolist(), strict=True) if n}
    data = {
        "folder": str(out),
        "labels": list(run.labels),
        "bits": run.bits,
        "written": run.written,
        "there_already": run.before,
        "gone": len(run.gone),
        "gone_first": run.gone[:SHOWN],
        "refused": dict(asked.refused),
        "share_of_pixels": dict(sorted(share.items(), key=lambda item: -item[1])),
    }
    gone = len(run.gone) + len(asked.refused)
    failed = describe_strict(strict, gone, "images or videos cannot be read")
    return Outcome(format_masks(data, run), data, failed)


# `roadaware prelabel`: what proposals may be, as CLIP says it of what their boxes show.

_PROPOSALS = "Saved predictions, such as the folder `proposals` that `propose` wrote."
_CLIP = "A name of `models list`, or the folder of a CLIP of transformers, with its tokenizer.json."
_PRELABEL_VIDEOS = (
    "The images of the proposals: KITTI, nuScenes, ONCE, synthetic scenes, saved tables, another set with "
    "--reader, or videos and folders of videos."
)
_TEXTS = "Labels to choose from, such as tyre,dog. [default: the classes of CODA that are known by name]"
_TEMPLATE = "Sentence around a label, with {} for it; several are averaged. [default: three usual ones]"
_MARGIN = "Of a box's longer side, added around it before it is cut out."
_WORDS = {"suitcace": "suitcase", "misc": "object"}
"""Words for labels of CODA that are none."""


def prelabel(
    proposals: Annotated[Path, Parameter(help=_PROPOSALS)],
    /,
    *,
    clip: Annotated[Path, Parameter(help=_CLIP)],
    videos: Annotated[list[Path], Parameter(help=_PRELABEL_VIDEOS), Several],
    out: Annotated[Path, Output, Parameter(help=CONTINUED), outputs.PRELABELS],
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
    from roadaware.models.devices import select_device
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
        "gone": dict(list(gone.items())[:SHOWN]),
        "prelabels": dict(counts.iter_rows()),
    }
    failed = f"--strict: {data['without']} boxes have no pre-label" if strict and gone else None
    return Outcome(format_prelabels(data), data, failed)


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
