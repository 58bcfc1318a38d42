"""Road events in the native file of ROAD: one JSON of videos, frames, boxes and tubes by name and number."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl

from roadaware.scenes.demo import road_terms as terms
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_Rows = dict[str, list[dict[str, Any]]]
_IDS = {"agent": "agent_ids", "action": "action_ids", "location": "loc_ids"} | {
    "duplex": "duplex_ids",
    "event": "triplet_ids",
}


def road_json(scenes: Scenes) -> dict[str, Any]:
    """The content of `road_trainval_v1.0.json` for a set made by `road_world`.

    Ids point into the `all_*` lists, which hold labels that are never used, so ids and places in the used
    lists differ; frames count from 1; boxes are shares of the image; frames without boxes have no `annos`.

    Args:
        scenes: with the kinds of ROAD.
    """
    every = {kind: _with_unused(kind, labels) for kind, labels in scenes.meta.vocabularies.items()}
    numbers = {
        kind: [every[kind].index(label) for label in labels]
        for kind, labels in scenes.meta.vocabularies.items()
    }
    parts = _parts(scenes, numbers)
    content: dict[str, Any] = {"label_types": [terms.NATIVE_KINDS[kind] for kind in terms.KINDS]}
    for kind in (*terms.KINDS, "av_action"):
        native = terms.NATIVE_KINDS[kind]
        content[f"all_{native}_labels"] = every[kind]
        content[f"{native}_labels"] = list(scenes.meta.vocabularies[kind])
    content["all_input_labels"] = [label for kind in ("agent", "action", "location") for label in every[kind]]
    for kind in terms.COMPOSITES:
        content[f"{terms.NATIVE_KINDS[kind]}_childs"] = scenes.meta.notes["children"][kind]
    content["db"] = {row["video"]: _video(row, parts) for row in scenes.videos.iter_rows(named=True)}
    return content


def _with_unused(kind: str, labels: tuple[str, ...]) -> list[str]:
    """The used labels with the unused ones put between them."""
    found = list(labels)
    for place, name in enumerate(terms.NEVER_SEEN.get(kind, ()), 2):
        found.insert(min(2 * place, len(found)), name)
    return found


def _parts(scenes: Scenes, numbers: dict[str, list[int]]) -> dict[str, _Rows]:
    """The rows of each table by video, labels turned into the file's ids and folded into what they label."""
    boxes = _labelled(scenes.boxes, scenes.labels, "box", numbers)
    tubes = scenes.tubes.join(scenes.tube_labels.drop("kind"), on="tube", how="left", maintain_order="left")
    numbered = scenes.frame_labels.with_columns(_numbered(numbers))
    by_frame = numbered.group_by("video", "frame", maintain_order=True).agg("label")
    frames = scenes.frames.join(by_frame, on=["video", "frame"], how="left", maintain_order="left")
    tables = {"boxes": boxes, "tubes": tubes.with_columns(_numbered(numbers)), "frames": frames}
    return {name: _by_video(table) for name, table in tables.items()}


def _numbered(numbers: dict[str, list[int]]) -> pl.Expr:
    """The label as the id that the file gives it."""
    value = pl.col("label")
    for kind, ids in numbers.items():
        if ids:
            there = pl.lit(pl.Series(ids, dtype=pl.Int64).implode()).list.get(
                pl.col("label"), null_on_oob=True
            )
            value = pl.when(pl.col("kind") == kind).then(there).otherwise(value)
    return value.alias("label")


def _labelled(
    rows: pl.DataFrame, labels: pl.DataFrame, key: str, numbers: dict[str, list[int]]
) -> pl.DataFrame:
    """Rows with one list of ids for each kind."""
    labels = labels.with_columns(_numbered(numbers))
    for kind, column in _IDS.items():
        ids = labels.filter(pl.col("kind") == kind).group_by(key).agg(pl.col("label").sort().alias(column))
        rows = rows.join(ids, on=key, how="left", maintain_order="left")
    return rows


def _by_video(table: pl.DataFrame) -> _Rows:
    found: _Rows = defaultdict(list)
    for row in table.iter_rows(named=True):
        found[row["video"]].append(row)
    return found


def _video(row: dict[str, Any], parts: dict[str, _Rows]) -> dict[str, Any]:
    name, size = row["video"], (row["width_px"], row["height_px"])
    tubes = parts["tubes"][name]
    uid = {tube["tube"]: tube["name"] for tube in tubes}
    annos: dict[int, dict[str, Any]] = defaultdict(dict)
    at: dict[tuple[int, int], str] = {}
    for box in parts["boxes"][name]:
        key = f"b{box['box']:06d}"
        at[box["tube"], box["frame"]] = key
        annos[box["frame"]][key] = {"box": _shares(box, size), "tube_uid": uid[box["tube"]], **_ids(box)}
    frames = {str(each["frame"] + 1): _frame(each, size, annos) for each in parts["frames"][name]}
    content: dict[str, Any] = {
        "split_ids": row["splits"],
        "numf": row["n_frames"],
        "weather": row["weather"],
        "frame_labels": [frame["av_action_ids"] for frame in frames.values()],
        "frames": frames,
    }
    for kind in (*terms.KINDS, "av_action"):
        of_kind = [tube for tube in tubes if tube["kind"] == kind]
        content[f"{terms.NATIVE_KINDS[kind]}_tubes"] = {tube["name"]: _tube(tube, at) for tube in of_kind}
    return content


def _shares(box: dict[str, Any], size: tuple[int, int]) -> list[float]:
    return [box[name] / size[k % 2] for k, name in enumerate(CORNERS)]


def _ids(box: dict[str, Any]) -> dict[str, list[int]]:
    """The box's ids by kind; one without any used label is of an agent that is not used."""
    ids = {column: box[column] or [] for column in _IDS.values()}
    if not any(ids.values()):
        ids["agent_ids"] = [_with_unused("agent", terms.AGENTS).index(terms.NEVER_SEEN["agent"][0])]
    return ids


def _frame(row: dict[str, Any], size: tuple[int, int], annos: dict[int, dict[str, Any]]) -> dict[str, Any]:
    frame: dict[str, Any] = {
        "annotated": int(row["annotated"]),
        "rgb_image_id": row["frame"] + 1,
        "input_image_id": row["frame"] + 1,
        "width": size[0],
        "height": size[1],
        "av_action_ids": row["label"] or [],
    }
    if row["frame"] in annos:
        frame["annos"] = annos[row["frame"]]
    return frame


def _tube(tube: dict[str, Any], at: dict[tuple[int, int], str]) -> dict[str, Any]:
    """A derived tube: what it is, and its boxes by frame, or its frames where it has no boxes."""
    frames = [frame for low, high in tube["spans"] for frame in range(low, high)]
    if tube["parent"] is None:
        return {"label_id": tube["label"], "frames": {str(frame + 1): 1 for frame in frames}}
    return {
        "label_id": tube["label"],
        "annos": {str(frame + 1): at[tube["parent"], frame] for frame in frames},
    }
