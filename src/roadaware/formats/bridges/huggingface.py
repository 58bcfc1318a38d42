"""Boxes as a folder that Hugging Face's `datasets` opens: Parquet by split, a card, and Croissant metadata."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.errors import InputError
from roadaware.formats.boxes.flat import FlatBoxes
from roadaware.formats.bridges.box_arrays import list_boxes
from roadaware.formats.road_detections import write_folder
from roadaware.io.folders import make_folder
from roadaware.io.sources import to_printable
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_ALL = "all"
_NAMES = {"train": "train", "val": "validation", "test": "test", _ALL: "train"}
"""Split here to split there; a set without splits is one called train, as `datasets` calls what has none."""
_OBJECTS = ("bbox", "category", "track", "ignore")
_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileProperty": "cr:fileProperty",
    "fileObject": "cr:fileObject",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "parentField": "cr:parentField",
    "path": "cr:path",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}
"""The context that version 1.0 of the format prescribes."""
_LISTS = {
    "category": ("sc:Integer", "number of the class of each box in the list of the card, -1 for none"),
    "bbox": ("sc:Float", "left, top, width and height of each box in pixels"),
    "track": ("sc:Integer", "track of each box in its video, -1 for none"),
    "ignore": ("sc:Boolean", "whether a box is neither asked for nor counted as false"),
}
_FIELDS = {
    "video": ("sc:Text", "the video"),
    "frame": ("sc:Integer", "number of the frame in its video, from 0"),
    "width": ("sc:Integer", "width of the image in pixels"),
    "height": ("sc:Integer", "height of the image in pixels"),
    "path": ("sc:Text", "where the video or image lies, relative to the media"),
}


def write_huggingface(scenes: Scenes, folder: Path, *, kind: str | None = None, name: str = "") -> int:
    """Write a folder that `datasets.load_dataset` opens; the number of rows, one for each frame that was looked at.

    A row has video, frame, width, height, path and `objects`: lists of bbox (left, top, width, height in pixels), category
    (place in the names of the card, -1 for none), track (-1 for none) and ignore.

    Args:
        scenes: with boxes.
        folder: must not exist, or be empty.
        kind: of label that becomes the class.
        name: of the data set (default: that of the tables).

    Raises:
        UsageError: if the folder holds anything, or there is no such kind.
        InputError: if there is no frame.
        DiskError: if the disk refuses.
    """
    held = list_boxes(scenes, kind)
    rows = _build_rows(held, scenes)
    if rows.is_empty():
        raise InputError("there is no frame to write: no table of frames, and no box")
    splits = {
        _NAMES[split]: part.drop("split") for (split,), part in rows.group_by("split", maintain_order=True)
    }
    title = name or scenes.meta.dataset or "roadaware"
    files = {f"data/{split}.parquet": _encode(part) for split, part in splits.items()}
    make_folder(folder.absolute().parent)

    def build_files() -> Iterator[tuple[str, bytes]]:
        yield from files.items()
        yield (
            "README.md",
            _write_card(title, scenes, held, {s: len(part) for s, part in splits.items()}).encode(),
        )
        yield "croissant.json", _write_croissant(title, scenes, files).encode()

    write_folder(folder, build_files())
    return len(rows)


def _build_rows(held: FlatBoxes, scenes: Scenes) -> pl.DataFrame:
    """A row for each frame: what it is, and lists of its boxes."""
    x1, y1, x2, y2 = (pl.col(c) for c in CORNERS)
    boxes = held.boxes.with_columns(bbox=pl.concat_list(x1, y1, x2 - x1, y2 - y1))
    listed = boxes.group_by("v", "frame", maintain_order=True).agg(
        "bbox",
        category=pl.col("label").fill_null(-1),
        track=pl.col("track").fill_null(-1),
        ignore=pl.col("ignore").fill_null(value=False),
    )
    kinds = {
        "bbox": pl.List(pl.List(pl.Float64)),
        "category": pl.List(pl.Int64),
        "track": pl.List(pl.Int64),
        "ignore": pl.List(pl.Boolean),
    }
    frames = held.frames.join(listed, on=["v", "frame"], how="left", maintain_order="left")
    frames = frames.with_columns(
        pl.col(c).fill_null(pl.lit([], dtype=kind)).cast(kind) for c, kind in kinds.items()
    )
    videos = held.videos.select("v", "width_px", "height_px", split=pl.col("split").fill_null(_ALL))
    if "path" in scenes.videos.columns:
        paths = scenes.videos.select(pl.col("video").cast(pl.String), film=pl.col("path"))
    else:
        paths = held.videos.select("video", film=pl.lit(None, pl.String))
    frames = frames.join(videos, on="v", maintain_order="left").join(
        paths, on="video", how="left", maintain_order="left"
    )
    return frames.select(
        "split",
        "video",
        "frame",
        width="width_px",
        height="height_px",
        path=pl.coalesce("path", "film"),
        objects=pl.struct(_OBJECTS),
    )


def _encode(rows: pl.DataFrame) -> bytes:
    held = io.BytesIO()
    rows.write_parquet(held, compression="zstd", statistics=False)
    return held.getvalue()


def _write_card(title: str, scenes: Scenes, held: FlatBoxes, counts: dict[str, int]) -> str:
    """README.md: the facts that the Hub and `datasets` read, as YAML, and a word for people."""
    lines = [
        "---",
        f"pretty_name: {json.dumps(title, ensure_ascii=False)}",
        "task_categories:",
        "- object-detection",
    ]
    lines += ["configs:", "- config_name: default", "  data_files:"]
    for split in counts:
        lines += [f"  - split: {split}", f"    path: data/{split}.parquet"]
    lines += ["---", "", f"# {to_printable(title)}", ""]
    lines.append(
        f"Boxes of {len(held.videos):,} videos: {len(held.frames):,} frames, {len(held.boxes):,} boxes."
    )
    if scenes.meta.licence:
        lines.append(f"Terms of the annotations: {to_printable(scenes.meta.licence)}.")
    lines += [
        "",
        "A row is a frame; `objects.bbox` is left, top, width and height in pixels, `objects.category` the number of the",
        "class in this list (-1 for none), `objects.track` the track in its video (-1 for none).",
        "",
        *(f"- {n}: {json.dumps(word, ensure_ascii=False)}" for n, word in enumerate(held.classes)),
    ]
    return "\n".join([*lines, ""])


def _write_croissant(title: str, scenes: Scenes, files: dict[str, bytes]) -> str:
    """Croissant 1.0: the files with their digests, and the columns of their rows."""
    objects: list[dict[str, Any]] = [
        {
            "@type": "cr:FileObject",
            "@id": name,
            "name": name,
            "contentUrl": name,
            "encodingFormat": "application/x-parquet",
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        for name, data in files.items()
    ]
    records = [
        {
            "@type": "cr:RecordSet",
            "@id": split,
            "name": split,
            "field": [
                {
                    "@type": "cr:Field",
                    "@id": f"{split}/{column}",
                    "name": column,
                    "description": words,
                    "dataType": kind,
                    "source": {"fileObject": {"@id": name}, "extract": {"column": column}},
                }
                for column, (kind, words) in _FIELDS.items()
            ]
            + [
                {
                    "@type": "cr:Field",
                    "@id": f"{split}/objects/{column}",
                    "name": f"objects/{column}",
                    "description": words,
                    "dataType": kind,
                    "repeated": True,
                    "source": {
                        "fileObject": {"@id": name},
                        "extract": {"column": "objects"},
                        "transform": {"jsonPath": f"$.{column}"},
                    },
                }
                for column, (kind, words) in _LISTS.items()
            ],
        }
        for name in files
        for split in [Path(name).stem]
    ]
    content = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "name": title,
        "description": f"Boxes of {scenes.meta.dataset or title} in frames of videos",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        **({"license": scenes.meta.licence} if scenes.meta.licence else {}),
        "distribution": objects,
        "recordSet": records,
    }
    return json.dumps(content, indent=1, ensure_ascii=False)
