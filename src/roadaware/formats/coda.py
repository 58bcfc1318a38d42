"""Corner cases in COCO files as Scenes: the flag, period, weather and super-classes of CODA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from roadaware.errors import InputError
from roadaware.formats.coco import By, CocoIndex, build_coco_index, build_coco_scenes, read_json_document
from roadaware.io.json import ensure_list, ensure_object, escape_surrogates
from roadaware.io.sources import to_printable
from roadaware.scenes.tables import Scenes

KIND, SUPER = "corner", "corner_super"
"""Kinds of label: what an object is, and its super-class."""
DOMAINS = ("kitti", "nuscenes", "once")
"""What CODA's images were taken from, which the names of its base files begin with."""
TAGS = ("period", "weather")
IDS = "category_ids"
"""The note with the category id of each label."""
_SHOWN = 5


def read_corner_cases(path: Path, corner: Path | None = None) -> Scenes:
    """The annotations of a COCO file about corner cases as Scenes: labels of the kind `corner`.

    Each image is a video of one frame, unless the file lists `videos`. `frames` have `image_id`; images
    have `period`, `weather` and `domain` (from names that begin with kitti_, nuscenes_ or once_), null where
    the file does not say. Labels of the kind `corner_super` are the categories' super-classes. Where no
    annotation has the flag `corner_case`, boxes do not have it either.

    CODA 2022 gives common objects and corner cases in two files, whose annotations share their numbers: a
    box of both is a corner case of a common class, one of the first alone is common and no corner case,
    one of the second alone a corner case of a novel class, which has no label unless the second file distinguishes
    classes.

    Args:
        path: the annotations, or those of the common classes.
        corner: those of the corner cases, where they are in a file of their own.

    Raises:
        DatasetNotFoundError: if there is no such file.
        InputError: if a file is damaged, the id of an image or category stands twice or is no whole number (in two
            files that of an annotation, too), or the two files are not about the same images and boxes.
    """
    where, content = to_printable(str(path)), read_json_document(path)
    held = ensure_object(content, where, "a COCO file")
    listed = ensure_list(held.get("annotations"), where, "'annotations'")
    if corner is not None:
        second = ensure_object(read_json_document(corner), to_printable(str(corner)), "a COCO file")
        held, listed = _merge_documents(held, second, where, to_printable(str(corner)))
    by: By | None = None if "videos" in held else "pictures"
    index = build_coco_index(held, where, kind=KIND, by=by, name=path.stem)
    scenes = build_coco_scenes(listed, index, path.name, unnamed=corner is not None)
    notes = {**scenes.meta.notes, IDS: {label: number for number, label in index.categories.items()}}
    scenes = scenes.with_tables(meta=replace(scenes.meta, notes=notes))
    return _with_tags(_with_supers(scenes, held, index), held, index)


def build_predictions_index(scenes: Scenes, categories: Mapping[int, str]) -> CocoIndex:
    """Images and categories for the ids of COCO results.

    Args:
        scenes: what `read_corner_cases` gave.
        categories: category id to label.

    Raises:
        InputError: if the frames have no `image_id`.
    """
    if "image_id" not in scenes.frames.columns:
        raise InputError("the frames have no image_id, which COCO results point to")
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String)).filter(
        pl.col("image_id").is_not_null()
    )
    places = {
        image: (video, frame) for image, video, frame in frames.select("image_id", "video", "frame").rows()
    }
    sizes = {
        video: (width, height) if width is not None and height is not None else None
        for video, width, height in scenes.videos.select(
            pl.col("video").cast(pl.String),
            *(
                (pl.col(c) if c in scenes.videos.columns else pl.lit(None, dtype=pl.Int64).alias(c))
                for c in ("width_px", "height_px")
            ),
        ).rows()
    }
    return CocoIndex(places, dict(categories), sizes, kind=KIND, where="the truth")


def _merge_documents(
    common: dict[str, Any], corner: dict[str, Any], where: str, beside: str
) -> tuple[dict[str, Any], list[Any]]:
    """One document and its annotations, out of the two files of CODA 2022."""
    one, other = (_by_id(held, "annotations", place) for held, place in ((common, where), (corner, beside)))
    shared = one.keys() & other.keys()
    differ = sorted(n for n in shared if any(one[n].get(k) != other[n].get(k) for k in ("image_id", "bbox")))
    if differ:
        raise InputError(
            f"{len(differ)} annotations have the same id as in {where} and another image or box, first "
            f"{differ[:_SHOWN]}",
            where=beside,
            hint="both files should be of one set: val with val, test with test",
        )
    images, second = _by_id(common, "images", where), _by_id(corner, "images", beside)
    differ = sorted(
        n for n in images.keys() & second.keys() if images[n].get("file_name") != second[n].get("file_name")
    )
    if differ:
        raise InputError(
            f"{len(differ)} images have the same id as in {where} and another file name, first {differ[:_SHOWN]}",
            where=beside,
            hint="both files should be of one set: val with val, test with test",
        )
    images |= {n: row for n, row in second.items() if n not in images}
    numbered, categories = _merge_categories(common, corner, where, beside)
    listed = [{**row, "corner_case": number in other} for number, row in one.items()]
    for number, row in other.items():
        if number not in shared:
            # A number that the file does not list stays, and is refused with the reason, as in any file.
            category = row.get("category_id") if numbered else None
            listed.append({**row, "corner_case": True, "category_id": category})
    held = {"images": list(images.values()), "categories": categories}
    return {**held, "videos": common["videos"]} if "videos" in common else held, listed


def _merge_categories(
    common: dict[str, Any], corner: dict[str, Any], where: str, beside: str
) -> tuple[bool, list[Any]]:
    """Whether the corner file distinguishes classes, and all categories."""
    # A file of one category is the class-agnostic one: its category says nothing.
    if len(ensure_list(corner.get("categories"), beside, "'categories'")) < 2:
        return False, ensure_list(common.get("categories"), where, "'categories'")
    first, second = (_by_id(held, "categories", place) for held, place in ((common, where), (corner, beside)))
    for number in first.keys() & second.keys():
        names = first[number].get("name"), second[number].get("name")
        if names[0] != names[1]:
            raise InputError(
                f"category {number} is {names[1]!r} here and {names[0]!r} in {where}", where=beside
            )
    return True, list({**first, **second, **first}.values())


def _by_id(held: dict[str, Any], name: str, where: str) -> dict[Any, dict[str, Any]]:
    """The rows of a list by their id.

    Raises:
        InputError: if something is no object, or an id stands twice.
    """
    found: dict[Any, dict[str, Any]] = {}
    for number, row in enumerate(ensure_list(held.get(name), where, f"'{name}'")):
        held_row = ensure_object(row, where, f"{name} {number}")
        mark = held_row.get("id")
        if type(mark) is not int or mark in found:
            text = "stands twice" if type(mark) is int else "is no whole number"
            raise InputError(f"the id of {name} {number} {text}", where=where)
        found[mark] = held_row
    return found


def _with_supers(scenes: Scenes, held: dict[str, Any], index: CocoIndex) -> Scenes:
    """The super-classes that the categories name, as labels."""
    supers = {
        row["id"]: escape_surrogates(row["supercategory"])
        for row in held["categories"]
        if isinstance(row.get("supercategory"), str) and row["supercategory"]
    }
    words = tuple(dict.fromkeys(supers.values()))
    if not words:
        return scenes
    above = {place: words.index(supers[n]) for place, n in enumerate(index.categories) if n in supers}
    rows = scenes.labels.with_columns(
        kind=pl.lit(SUPER),
        label=pl.col("label").replace_strict(above, default=None, return_dtype=pl.Int64),
    ).filter(pl.col("label").is_not_null())
    both = [frame.with_columns(pl.col("kind").cast(pl.String)) for frame in (scenes.labels, rows)]
    meta = replace(scenes.meta, vocabularies={**scenes.meta.vocabularies, SUPER: words})
    return scenes.with_tables(labels=pl.concat(both), meta=meta)


def _with_tags(scenes: Scenes, held: dict[str, Any], index: CocoIndex) -> Scenes:
    """Number, period, weather and domain of each image."""
    rows = pl.DataFrame(
        list(_tags(held, index)),
        schema={
            "video": pl.String,
            "frame": pl.Int64,
            "image_id": pl.Int64,
            **dict.fromkeys((*TAGS, "domain"), pl.String),
        },
        orient="row",
    )
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if rows["video"].n_unique() < len(rows):
        return scenes.with_tables(frames=frames.join(rows, on=["video", "frame"], maintain_order="left"))
    table = rows.drop("frame", "image_id")
    videos = scenes.videos.with_columns(pl.col("video").cast(pl.String))
    return scenes.with_tables(
        frames=frames.join(
            rows.select("video", "frame", "image_id"), on=["video", "frame"], maintain_order="left"
        ),
        videos=videos.join(table, on="video", maintain_order="left"),
    )


def _tags(held: dict[str, Any], index: CocoIndex) -> Iterator[tuple[Any, ...]]:
    for row in held["images"]:
        place = index.images[row["id"]]
        file = row.get("file_name")
        start = file.replace("\\", "/").rpartition("/")[2].partition("_")[0].lower() if file else ""
        said = (
            escape_surrogates(row[tag]) if isinstance(row.get(tag), str) and row[tag] else None
            for tag in TAGS
        )
        yield *place, row["id"], *said, start if start in DOMAINS else None
