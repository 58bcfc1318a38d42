"""Proposals as work for people: images with boxes to correct, as Label Studio tasks, COCO or Parquet."""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import polars as pl

from roadaware.datasets.label_studio_tasks import VIDEO_NAME
from roadaware.errors import InputError, UsageError
from roadaware.formats.coda import KIND
from roadaware.formats.cuboid_labels import CUBOID
from roadaware.formats.label_studio import LOCAL_FILES, format_control, format_empty_tag
from roadaware.io.files import write_atomically
from roadaware.io.folders import make_folder
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import is_saved, open_predictions, save
from roadaware.scenes.tables import Meta, Predictions

UNNAMED = "unlabelled"
"""The class of a proposal that nobody has named."""
CONTROL, IMAGE, REGION = "corner", "image", "proposal-"
"""Names in a Label Studio project: the control of boxes, the image, and what identifiers begin with."""
ATTRIBUTES = ("n_returns", "distance_m", *CUBOID, "persistence", "speed_m_s", "moving", "carried")
"""Columns of proposals that an annotation of COCO has as `attributes`, where they are there."""
PICTURES = {
    "video": pl.String,
    "frame": pl.Int64,
    "picture": pl.String,
    "width_px": pl.Int64,
    "height_px": pl.Int64,
}
"""Columns of the images that are sent out; `picture` is the path by which people see it."""


def format_task_name(video: str, frame: int) -> str:
    """Name of an image in tasks.

    >>> format_task_name("town-0001", 12)
    'town-0001/000012'
    """
    return f"{video}/{frame:06d}"


def select_task_proposals(
    predictions: Predictions, images: pl.DataFrame, labels: Sequence[str], *, kind: str = KIND
) -> tuple[Predictions, dict[str, int]]:
    """The proposals of some images as they are sent out, and what was left out of them, by reason.

    Boxes are cut to their image; `frames` are the images in their order, with `task` (from 1), `picture`,
    `width_px` and `height_px`; labels are of the kind `corner`: the likeliest of each proposal.

    Args:
        predictions: proposals; labels of `kind`, where they have such, are what annotators see first.
        images: with the columns of `PICTURES`, in the order of the work.
        labels: classes that annotators choose from; those of the proposals are added.
        kind: of the predictions' labels.

    Raises:
        UsageError: if there are no images, one stands twice, or the size of one is not known.
    """
    frames = images.select(list(PICTURES)).cast(pl.Schema(PICTURES)).with_row_index("task", offset=1)
    _check(frames)
    boxes = predictions.boxes.with_columns(pl.col("video").cast(pl.String), pl.col(*CORNERS).cast(pl.Float64))
    held = boxes.join(frames.drop("picture"), on=["video", "frame"], how="inner", maintain_order="left")
    wide, high = pl.col("width_px").cast(pl.Float64), pl.col("height_px").cast(pl.Float64)
    cut = held.with_columns(
        *(pl.col(name).clip(0.0, side) for name, side in zip(CORNERS, (wide, high, wide, high), strict=True))
    )
    kept = cut.filter((pl.col("x1_px") < pl.col("x2_px")) & (pl.col("y1_px") < pl.col("y2_px")))
    counts = Counter(
        {
            "proposals on images that are not sent out": len(boxes) - len(held),
            "proposals without a width or height in the image": len(cut) - len(kept),
        }
    )
    named = _best(predictions, kind, kept)
    words = tuple(dict.fromkeys([*labels, *named["label"].sort().to_list()]))
    words = tuple(word for word in words if word != UNNAMED)
    kept = kept.drop("task", "width_px", "height_px").sort("box")
    # The table of videos; a size only where all images of one have it
    same = [
        pl.when(pl.col(name).n_unique() == 1).then(pl.col(name).first()).alias(name)
        for name in ("width_px", "height_px")
    ]
    sent = Predictions(
        videos=frames.group_by("video", maintain_order=True).agg(same),
        frames=frames.with_columns(pl.col("task").cast(pl.Int64)),
        boxes=kept,
        labels=named.with_columns(
            kind=pl.lit(KIND),
            label=pl.col("label").replace_strict(
                {word: place for place, word in enumerate(words)}, return_dtype=pl.Int64
            ),
        ),
        meta=Meta(
            dataset=predictions.meta.dataset, vocabularies={KIND: words}, notes=dict(predictions.meta.notes)
        ),
    )
    return sent, {what: count for what, count in counts.items() if count}


def label_studio_tasks(sent: Predictions, media: str = LOCAL_FILES) -> bytes:
    """Tasks that Label Studio imports: one per image, its proposals as predictions.

    Boxes are in hundredths of the image, unturned; identifiers are `proposal-<number>`, which an export
    keeps for boxes that were corrected.

    Args:
        sent: what `select_task_proposals` gave.
        media: where Label Studio finds an image; `{name}` is its path.

    Source: the task format of Label Studio.
    """
    tasks = []
    for row, held in _by_picture(sent):
        size = (row["width_px"], row["height_px"])
        result = [_region(each, size) for each in held]
        predicted: dict[str, Any] = {"model_version": "proposals", "result": result}
        if held:
            predicted["score"] = max(each["score"] for each in held)
        data = {
            IMAGE: media.format(name=quote(row["picture"])),
            VIDEO_NAME: format_task_name(row["video"], row["frame"]),
            "width": size[0],
            "height": size[1],
        }
        tasks.append({"id": row["task"], "data": data, "predictions": [predicted]})
    return json.dumps(tasks, allow_nan=False).encode()


def label_studio_config(sent: Predictions) -> bytes:
    """The labelling config that the tasks of `label_studio_tasks` fit, XML for a project's settings.

    Args:
        sent: what `select_task_proposals` gave.
    """
    words = (*sent.meta.vocabularies[KIND], UNNAMED)
    lines = [format_empty_tag("Image", name=IMAGE, value=f"${IMAGE}", zoom="true")]
    lines += format_control("RectangleLabels", CONTROL, IMAGE, words)
    # Proposals are upright boxes: a turned one could not be compared with them.
    lines[1] = lines[1].replace(">", ' canRotate="false">')
    return "\n".join(["<View>", *(f"  {line}" for line in lines), "</View>", ""]).encode()


def encode_coco_annotations(sent: Predictions) -> bytes:
    """A COCO annotation file: each proposal an annotation with its `score` and number (`proposal`).

    Images have `video` and `frame`; the last category is that of proposals without a class. `attributes` repeat the number
    of the proposal and `corner_case`, which CVAT and Datumaro keep nowhere else, and hold what is known of it besides
    (`ATTRIBUTES`: its returns, its cuboid, whether it moves). `segmentation` is the box as a polygon: tools that work with
    outlines show nothing without one.

    Args:
        sent: what `select_task_proposals` gave.
    """
    words = (*sent.meta.vocabularies[KIND], UNNAMED)
    number = {word: place for place, word in enumerate(words, 1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for row, held in _by_picture(sent):
        image = {"id": row["task"], "file_name": row["picture"]}
        images.append({**image, **{name: row[f"{name}_px"] for name in ("width", "height")}})
        images[-1] |= {"video": row["video"], "frame": row["frame"]}
        for each in held:
            left, top, right, bottom = (each[name] for name in CORNERS)
            bbox = [left, top, right - left, bottom - top]
            known = {name: each[name] for name in ATTRIBUTES if each.get(name) is not None}
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": row["task"],
                    "category_id": number[each["label"]],
                    "bbox": bbox,
                    "segmentation": [[left, top, right, top, right, bottom, left, bottom]],
                    "area": bbox[2] * bbox[3],
                    "iscrowd": 0,
                    "corner_case": True,
                    "score": each["score"],
                    "proposal": each["box"],
                    "attributes": {"proposal": each["box"], "corner_case": True, **known},
                }
            )
    categories = [{"id": place, "name": word} for word, place in number.items()]
    content = {"images": images, "categories": categories, "annotations": annotations}
    return json.dumps(content, allow_nan=False).encode()


def encode_proposal_parquet(sent: Predictions) -> bytes:
    """A Parquet table with a row per proposal; an image without one has a row without a box.

    Args:
        sent: what `select_task_proposals` gave.
    """
    held = add_class_names(sent).rename({"box": "proposal"}).drop("tube", strict=False)
    frames = sent.frames.select("task", *PICTURES)
    table = frames.join(held, on=["video", "frame"], how="left", maintain_order="left_right")
    stream = io.BytesIO()
    table.write_parquet(stream, compression="zstd")
    return stream.getvalue()


def add_class_names(sent: Predictions) -> pl.DataFrame:
    """The proposals with a column `label`, the name of the class; `UNNAMED` where they have none.

    Args:
        sent: what `select_task_proposals` gave.
    """
    words = dict(enumerate(sent.meta.vocabularies[KIND]))
    label = pl.col("label").replace_strict(words, default=None, return_dtype=pl.String)
    named = sent.labels.select("box", label=label) if len(sent.labels) else None
    boxes = sent.boxes.with_columns(pl.col("video").cast(pl.String))
    if "score" not in boxes.columns:
        boxes = boxes.with_columns(score=pl.lit(1.0))
    if named is None:
        return boxes.with_columns(label=pl.lit(UNNAMED))
    found = boxes.join(named, on="box", how="left", maintain_order="left")
    return found.with_columns(pl.col("label").fill_null(UNNAMED))


def _by_picture(sent: Predictions) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each image with its proposals, the likeliest first."""
    parts = add_class_names(sent).with_columns(pl.col("score").fill_null(1.0)).sort("score", descending=True)
    held = parts.partition_by("video", "frame", as_dict=True, include_key=False)
    for row in sent.frames.iter_rows(named=True):
        own = held.get((row["video"], row["frame"]))
        yield row, [] if own is None else own.to_dicts()


def _region(each: dict[str, Any], size: tuple[int, int]) -> dict[str, Any]:
    """One proposal as a result of Label Studio."""
    left, top, right, bottom = (each[name] for name in CORNERS)
    across, down = size[0] / 100, size[1] / 100
    value = {
        "x": left / across,
        "y": top / down,
        "width": (right - left) / across,
        "height": (bottom - top) / down,
        "rotation": 0,
        "rectanglelabels": [each["label"]],
    }
    return {
        "id": f"{REGION}{each['box']}",
        "from_name": CONTROL,
        "to_name": IMAGE,
        "type": "rectanglelabels",
        "original_width": size[0],
        "original_height": size[1],
        "image_rotation": 0,
        "score": each["score"],
        "value": value,
    }


def _best(predictions: Predictions, kind: str, kept: pl.DataFrame) -> pl.DataFrame:
    """box and label (its name): the likeliest label of a kind of each kept box that has one."""
    labels = predictions.labels.filter(pl.col("kind").cast(pl.String) == kind)
    if labels.is_empty():
        return pl.DataFrame(schema={"box": pl.Int64, "label": pl.String})
    if "score" in labels.columns:
        labels = labels.sort(pl.col("score").fill_null(0.0), descending=True, maintain_order=True)
    words = dict(enumerate(predictions.meta.vocabularies.get(kind, ())))
    named = labels.unique("box", keep="first", maintain_order=True).select(
        "box", label=pl.col("label").replace_strict(words, default=None, return_dtype=pl.String)
    )
    return named.filter(pl.col("label") != UNNAMED).join(kept.select("box"), on="box", how="semi").sort("box")


def _check(frames: pl.DataFrame) -> None:
    """Refuse images that cannot be sent out.

    Raises:
        UsageError: see `select_task_proposals`.
    """
    if frames.is_empty():
        raise UsageError("there is no image to send out")
    twice = frames.filter(pl.struct("video", "frame").is_duplicated())
    sides = pl.col("width_px", "height_px")
    unknown = frames.filter(pl.any_horizontal(sides.is_null() | (sides < 1)))
    for found, what in ((twice, "stands twice"), (unknown, "has no size that is known")):
        if len(found):
            row = found.row(0, named=True)
            raise UsageError(
                f"image {format_task_name(row['video'], row['frame'])} {what} ({len(found)} rows)"
            )


# The folder of an export: tasks in some formats, and what was sent out, for what comes back.

Form = Literal["labelstudio", "coco", "parquet"]
SENT, TASKS, CONFIG = "sent", "tasks.json", "labelling.xml"
COCO, PARQUET = "tasks.coco.json", "tasks.parquet"


def write_tasks(sent: Predictions, out: Path, forms: Sequence[Form]) -> list[str]:
    """Write the tasks, then what was sent, with which an export is whole; the names of the tasks' files.

    An earlier export goes first, so that no task ever stands beside what was not sent with it; one that was
    interrupted holds nothing that was sent, so that the same command goes on.

    Args:
        sent: what `select_task_proposals` gave.
        out: the folder.
        forms: labelstudio, coco and parquet, those that are wanted.

    Raises:
        DiskError: if the disk refuses.
    """
    files: dict[str, bytes] = {}
    if "labelstudio" in forms:
        files |= {TASKS: label_studio_tasks(sent), CONFIG: label_studio_config(sent)}
    if "coco" in forms:
        files[COCO] = encode_coco_annotations(sent)
    if "parquet" in forms:
        files[PARQUET] = encode_proposal_parquet(sent)
    make_folder(out)
    shutil.rmtree(out / SENT, ignore_errors=True)
    for name in (TASKS, CONFIG, COCO, PARQUET):
        (out / name).unlink(missing_ok=True)
    for name, data in files.items():
        write_atomically(out / name, data)
    save(sent, out / SENT, overwrite=True)
    return list(files)


def open_sent_proposals(path: Path) -> Predictions:
    """What an export sent out.

    Raises:
        UsageError: if the folder is no export.
        InputError: if it is damaged.
    """
    if not is_saved(path / SENT):
        raise UsageError(
            f"{path} is no folder that `roadaware label export` wrote: there is no "
            f"{SENT} in it; give an export that was interrupted again"
        )
    sent = open_predictions(path / SENT)
    missing = [name for name in ("task", *PICTURES) if name not in sent.frames.columns]
    if missing:
        raise InputError(
            f"expected images with the columns of an export, which lacks {', '.join(missing)}",
            where=str(path / SENT),
            hint="Export again, into a new folder.",
        )
    return sent
