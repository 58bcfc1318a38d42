"""Annotations of scenes as the files of AVA, VidVRD, HC-STVG, VGG-SS and Label Studio, which readers of those read back."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.datasets.ava import KIND
from roadaware.errors import InputError, UsageError
from roadaware.formats.actions import label_map, write_action_predictions
from roadaware.formats.label_studio import write_label_studio
from roadaware.io.csv import format_csv
from roadaware.io.files import build_disk_error, write_atomically
from roadaware.io.folders import make_folder
from roadaware.io.pickles import encode_arrays
from roadaware.io.sources import is_outside
from roadaware.io.storage import locate_content
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.sensors import find_video_path
from roadaware.scenes.tables import Predictions, Scenes

PROPOSALS, TASKS = "proposals.pkl", "tasks.json"
FILMS = "videos"
"""The folder beside the annotations that videos are put in, by their names."""
_PEOPLE = {"Ped": "person"}
_NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_FOLDERS = ("train", "training", "validation", "val", "test")


@dataclass
class WrittenTruth:
    """What was written.

    Args:
        files: names of the files, below the folder.
        rows: what they hold to how many: videos, boxes, labels, relations, sentences, sounds.
        left_out: why something was left out or made up, to how often.
    """

    files: list[str] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def write_truth(
    form: str, scenes: Scenes, folder: Path, *, media: Path | None = None, videos: tuple[str, ...] = ()
) -> WrittenTruth:
    """Write the annotations of scenes in the form of another toolbox.

    Args:
        form: ava, mmaction2, vidvrd, hcstvg, vggss or label_studio; see `WRITERS`.
        scenes: with the tables that the form is about.
        folder: where to; made if it is not there.
        media: the folder that paths of videos start at; videos are then put beside the annotations, in `videos`,
            as links where the disk allows and else as copies.
        videos: names of those that are wanted; all where empty.

    Raises:
        UsageError: if there is no such form or video.
        InputError: if the scenes lack what the form is about, or a video is not there.
        DiskError: if the disk refuses.
    """
    if form not in WRITERS:
        raise UsageError(f"no form {form!r}; there are {', '.join(WRITERS)}")
    if videos:
        known = scenes.videos["video"].cast(pl.String).to_list()
        if unknown := [name for name in videos if name not in known]:
            raise UsageError(f"no video {unknown[0]!r}; there are {', '.join(known[:5])}")
        scenes = scenes.only(videos)
    make_folder(folder)
    written = WrittenTruth()
    WRITERS[form](scenes, folder, written)
    if media is not None:
        put_films(scenes, media, folder, written)
    return written


def write_ava(scenes: Scenes, folder: Path, written: WrittenTruth) -> None:
    """AVA: `ava*.csv` of boxes and actions in whole seconds, `action_list.pbtxt`, `ava_excluded.csv`.

    A row is `video,timestamp,x1,y1,x2,y2,action,person` with corners in shares of the image; boxes in moments
    between whole seconds are left out. Actions keep the numbers that their file gave them, else they count from 1.

    Args:
        scenes: with boxes and labels of the kind action.
        folder: where to.
        written: takes what was written.

    Raises:
        InputError: if there are no actions, or an image has no size or rate.
    """
    known = label_map(scenes)
    facts = _facts(scenes, ("width_px", "height_px", "fps"))
    rows = _list_boxes_in_shares(scenes, facts, written)
    ids = known.ids if "label_ids" in scenes.meta.notes else tuple(range(1, len(known.names) + 1))
    labels = scenes.labels.filter(pl.col("kind").cast(pl.String) == KIND).select("box", "label")
    action = pl.col("label").replace_strict(range(len(ids)), ids, return_dtype=pl.Int64, default=None)
    # The place of a label decides the order of a file; a box without one comes where its number is.
    placed = labels.with_row_index("place").with_columns(
        pl.col("place").cast(pl.Int64), first=pl.col("box").cum_max()
    )
    rows = rows.join(placed, on="box", how="left", maintain_order="left").with_columns(
        pl.col("first").fill_null(pl.col("box")), pl.col("place").fill_null(-1), action=action
    )
    # Moments that somebody looked at without a box: rows without corners
    bare = _list_moments(scenes, facts, annotated=True).join(
        rows.select("video", "second").unique(), on=["video", "second"], how="anti", maintain_order="left"
    )
    order = {video: n for n, video in enumerate(scenes.videos["video"].cast(pl.String).to_list())}
    everything = pl.concat([rows, bare], how="diagonal_relaxed").with_columns(
        order=pl.col("video").replace_strict(order, return_dtype=pl.Int64)
    )
    everything = everything.sort(
        "order", pl.col("box").is_null(), "first", "place", "second", maintain_order=True
    )
    splits = _split_names(scenes)
    for split in dict.fromkeys(splits.values()):
        part = everything.filter(pl.col("video").is_in([name for name, of in splits.items() if of == split]))
        stamp = pl.col("second").cast(pl.String).str.zfill(4).alias("timestamp")
        out = part.select("video", stamp, *CORNERS, "action", "person")
        _write(folder, f"ava_{split}.csv" if split else "ava.csv", format_csv(out, header=False), written)
    items = [
        f"item {{\n  name: {json.dumps(name)}\n  id: {n}\n}}\n"
        for n, name in zip(ids, known.names, strict=True)
    ]
    _write(folder, "action_list.pbtxt", "".join(items), written)
    aside = _list_moments(scenes, facts, annotated=False)
    if len(aside):
        stamp = pl.col("second").cast(pl.String).str.zfill(4)
        _write(folder, "ava_excluded.csv", format_csv(aside.select("video", stamp), header=False), written)
    written.rows["videos"] += len(order)
    written.rows["boxes"] += rows["box"].n_unique()
    written.rows["labels"] += int(rows["action"].is_not_null().sum())


def _list_boxes_in_shares(scenes: Scenes, facts: pl.DataFrame, written: WrittenTruth) -> pl.DataFrame:
    """`box`, `video`, `second`, corners in shares of the image and `person` of the boxes at whole seconds."""
    labels = scenes.labels.filter(pl.col("kind").cast(pl.String) == KIND).select("box")
    boxes = scenes.boxes.with_columns(pl.col("video").cast(pl.String)).join(facts, on="video", how="left")
    # Objects that only sound have no action; in a set of actions a person without one is a row of its own.
    if "unit_pictures" not in scenes.meta.notes:
        written.left_out["boxes without an action, left out"] += len(boxes) - labels["box"].n_unique()
        boxes = boxes.join(labels.select("box").unique(), on="box", how="semi", maintain_order="left")
    second = (pl.col("frame") / pl.col("fps")).round()
    timed = boxes.with_columns(second=second.cast(pl.Int64)).with_columns(
        due=(pl.col("second") * pl.col("fps")).round().cast(pl.Int64)
    )
    whole = timed.filter(pl.col("frame") == pl.col("due"))
    written.left_out["boxes between whole seconds, left out"] += len(timed) - len(whole)
    person = pl.lit(None, pl.String).alias("person")
    if "tube" in whole.columns:
        names = (
            scenes.tubes.select("tube", pl.col("name").cast(pl.String))
            if "name" in scenes.tubes.columns
            else None
        )
        whole = whole if names is None else whole.join(names, on="tube", how="left", maintain_order="left")
        name = pl.col("name") if names is not None else pl.lit(None, pl.String)
        number = (
            pl.when(name.str.contains(rf"^{_NUMBER.pattern}$"))
            .then(name)
            .otherwise(pl.col("tube").cast(pl.String))
        )
        person = pl.when(pl.col("tube").is_null()).then(pl.lit("-1")).otherwise(number).alias("person")
    return whole.select(
        "box", "video", "second", pl.col("x1_px", "x2_px") / pl.col("width_px"),
        pl.col("y1_px", "y2_px") / pl.col("height_px"), person,
    )  # fmt: skip


def write_mmaction2(scenes: Scenes, folder: Path, written: WrittenTruth) -> None:
    """What MMAction2's AVADataset takes: the files of AVA, and `proposals.pkl` with the boxes of each moment.

    A proposal is `x1, y1, x2, y2, score` in shares of the image, with a score of 1, under `VIDEO,SECOND`; the pickle is
    written array by array, and `io.pickles` reads it as data.

    Args:
        scenes: with boxes and labels of the kind action.
        folder: where to.
        written: takes what was written.

    Raises:
        InputError: as `write_ava`.
    """
    write_ava(scenes, folder, written)
    facts = _facts(scenes, ("width_px", "height_px", "fps"))
    rows = _list_boxes_in_shares(scenes, facts, WrittenTruth())
    data = encode_proposals(rows.with_columns(score=pl.lit(1.0)))
    write_atomically(folder / PROPOSALS, data)
    written.files.append(PROPOSALS)
    written.rows["proposals"] += len(rows)


def encode_proposals(rows: pl.DataFrame) -> bytes:
    """A pickle of MMAction2's proposals.

    Args:
        rows: `video`, `second`, corners in shares of the image, `score`; by video and second or not.
    """
    table = rows.select("video", "second", *CORNERS, "score").sort("video", "second", maintain_order=True)
    values = table.select(*CORNERS, "score").to_numpy().astype(np.float32)
    spans = table.with_row_index("at").group_by("video", "second", maintain_order=True).agg(
        first=pl.col("at").min(), count=pl.len()
    )  # fmt: skip
    return encode_arrays(
        {f"{video},{second:04d}": values[at : at + count] for video, second, at, count in spans.iter_rows()}
    )


def write_proposals(predictions: Predictions, scenes: Scenes | None, path: Path) -> int:
    """Write the boxes of predictions at whole seconds as MMAction2's proposals; how many.

    Args:
        predictions: with boxes and their scores.
        scenes: the ground truth, which knows size and rate of the videos (default: the predictions themselves).
        path: the file, which must not be there.

    Raises:
        InputError: if a box has no score, or the size or rate of a video is not known.
        DiskError: if the disk refuses.
    """
    boxes = predictions.boxes.with_columns(pl.col("video").cast(pl.String))
    if "score" not in boxes.columns or boxes["score"].null_count():
        raise InputError(
            "proposals need a score for each box", hint="give predictions whose boxes have scores"
        )
    facts = _facts(scenes if scenes is not None else predictions, ("width_px", "height_px", "fps"))
    rows = boxes.join(facts, on="video", how="left", maintain_order="left").with_columns(
        second=(pl.col("frame") / pl.col("fps")).round().cast(pl.Int64)
    )
    if len(absent := rows.filter(pl.col("fps").is_null())):
        raise InputError(
            f"the ground truth has no video {absent['video'][0]!r}", hint="give the one that they are about"
        )
    rows = rows.filter((pl.col("second") * pl.col("fps")).round() == pl.col("frame"))
    shares = [pl.col("x1_px", "x2_px") / pl.col("width_px"), pl.col("y1_px", "y2_px") / pl.col("height_px")]
    write_atomically(path, encode_proposals(rows.select("video", "second", "score", *shares)))
    return len(rows)


def _list_moments(scenes: Scenes, facts: pl.DataFrame, *, annotated: bool) -> pl.DataFrame:
    """`video` and `second` of the annotated frames that are whole seconds, or of those that are not annotated."""
    if scenes.frames.is_empty() or "annotated" not in scenes.frames.columns:
        return pl.DataFrame(schema={"video": pl.String, "second": pl.Int64})
    frames = scenes.frames.filter(pl.col("annotated") == annotated)
    named = frames.select(pl.col("video").cast(pl.String), "frame").join(facts, on="video", how="left")
    named = named.with_columns(second=(pl.col("frame") / pl.col("fps")).round().cast(pl.Int64))
    whole = (pl.col("second") * pl.col("fps")).round() == pl.col("frame")
    return named.filter(whole).select("video", "second")


def write_vidvrd(scenes: Scenes, folder: Path, written: WrittenTruth) -> None:
    """VidVRD: one JSON for each video, in folders of their splits, with everybody's boxes frame by frame.

    Categories are labels of tubes of the kind `category`, or else what their agents are: `Ped` is a person. A
    relation is written for the frames in which both have a box, once for each stretch of such frames.

    Args:
        scenes: with tubes that own boxes, and relations.
        folder: where to.
        written: takes what was written.

    Raises:
        InputError: if there are no tubes with boxes.
    """
    categories = _list_categories(scenes)
    if not categories:
        raise InputError("no tube owns a box: there is nobody to relate", hint="read the set with its tubes")
    words = scenes.meta.vocabularies.get("predicate", ())
    boxes = scenes.boxes.filter(pl.col("tube").is_not_null()).with_columns(pl.col("video").cast(pl.String))
    marks = (
        pl.col("generated") if "generated" in boxes.columns else pl.lit(None, pl.Boolean).alias("generated")
    )
    by_video = boxes.select("video", "tube", "frame", *CORNERS, marks).partition_by("video", as_dict=True)
    tubes = scenes.tubes.with_columns(pl.col("video").cast(pl.String))
    names = _name_tubes(tubes)
    relations = (
        scenes.relations.with_columns(pl.col("video").cast(pl.String)) if len(scenes.relations) else None
    )
    listed = scenes.frames.group_by(pl.col("video").cast(pl.String)).agg(pl.col("frame").max() + 1)
    counts = dict(listed.iter_rows())
    splits = _split_names(scenes)
    for row in scenes.videos.with_columns(pl.col("video").cast(pl.String)).iter_rows(named=True):
        video = row["video"]
        part = by_video.get((video,), boxes.clear().select("video", "tube", "frame", *CORNERS, marks))
        own = [
            tube for tube in tubes.filter(pl.col("video") == video)["tube"].to_list() if tube in categories
        ]
        last = part["frame"].to_numpy().max(initial=-1) + 1
        total = max(counts.get(video, row.get("n_frames") or 0), int(last))
        frames: list[list[dict[str, Any]]] = [[] for _ in range(total)]
        held: dict[int, list[int]] = {}
        place = {tube: n for n, tube in enumerate(own)}
        order = part.filter(pl.col("tube").is_in(own)).with_columns(
            place=pl.col("tube").replace_strict(place, return_dtype=pl.Int64)
        ).sort("frame", "place", maintain_order=True)  # fmt: skip
        for tube, frame, x1, y1, x2, y2, made in order.select(
            "tube", "frame", *CORNERS, "generated"
        ).iter_rows():
            edges = {"xmin": x1, "ymin": y1, "xmax": x2, "ymax": y2}
            frames[frame].append(
                {"tid": _as_id(names[tube]), "bbox": edges, "generated": int(bool(made)), "tracker": "none"}
            )
            held.setdefault(tube, []).append(frame)
        listed_relations = [] if relations is None else _list_relations(
            relations.filter(pl.col("video") == video), words, names, held, written
        )  # fmt: skip
        content = {
            "version": "VidVRD",
            "video_id": video,
            "frame_count": row.get("n_frames"),
            "fps": row.get("fps"),
            "width": row.get("width_px"),
            "height": row.get("height_px"),
            "subject/objects": [{"tid": _as_id(names[tube]), "category": categories[tube]} for tube in own],
            "trajectories": frames,
            "relation_instances": listed_relations,
        }
        if row.get("path"):
            content["video_path"] = row["path"]
        split = splits[video] if splits[video] in _FOLDERS else ""
        _write(
            folder,
            f"{split}/{video}.json" if split else f"{video}.json",
            json.dumps(content, allow_nan=False),
            written,
        )
        written.rows["videos"] += 1
        written.rows["tubes"] += len(own)
        written.rows["boxes"] += len(order)
        written.rows["relations"] += len(listed_relations)


def _list_categories(scenes: Scenes) -> dict[int, str]:
    """Tubes that own boxes, or have a category, to that."""
    kinds = scenes.tube_labels.filter(pl.col("kind").cast(pl.String) == "category")
    words = scenes.meta.vocabularies.get("category", ())
    found = {tube: words[label] for tube, label in kinds.select("tube", "label").iter_rows()}
    if found or "tube" not in scenes.boxes.columns:
        return found
    agents = scenes.meta.vocabularies.get("agent", ())
    labels = scenes.labels.filter(pl.col("kind").cast(pl.String) == "agent").select("box", "label")
    owned = (
        scenes.boxes.select("box", "tube")
        .drop_nulls()
        .join(labels, on="box", how="left", maintain_order="left")
    )
    first = owned.group_by("tube", maintain_order=True).agg(pl.col("label").drop_nulls().first())
    for tube, label in first.iter_rows():
        agent = "object" if label is None else agents[label]
        found[tube] = _PEOPLE.get(agent, agent.lower())
    return found


def _name_tubes(tubes: pl.DataFrame) -> dict[int, str]:
    """Names of tubes, or their numbers where they have none."""
    named = tubes["name"].cast(pl.String).to_list() if "name" in tubes.columns else [None] * len(tubes)
    return {
        tube: name if name is not None else str(tube) for tube, name in zip(tubes["tube"], named, strict=True)
    }


def _as_id(name: str) -> int | str:
    """A name that is a number as one, since files have numbers there."""
    return int(name) if _NUMBER.fullmatch(name) and str(int(name)) == name else name


def _list_relations(
    rows: pl.DataFrame,
    words: tuple[str, ...],
    names: Mapping[int, str],
    held: Mapping[int, list[int]],
    written: WrittenTruth,
) -> list[dict[str, Any]]:
    found = []
    for row in rows.iter_rows(named=True):
        whole = [row["start_frame"], row["end_frame"]]
        both = [np.isin(np.arange(*whole), held.get(row[who], [])) for who in ("subject", "object")]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], (both[0] & both[1]).astype(np.int8), [0]])))
        stretches = (edges.reshape(-1, 2) + row["start_frame"]).tolist()
        written.left_out["relations without a frame in which both have a box, left out"] += not stretches
        written.left_out["relations cut where one has no box"] += bool(stretches) and stretches != [whole]
        found += [
            {
                "subject_tid": _as_id(names[row["subject"]]),
                "object_tid": _as_id(names[row["object"]]),
                "predicate": words[row["predicate"]],
                "begin_fid": start,
                "end_fid": end,
            }
            for start, end in stretches
        ]
    return found


def write_hcstvg(scenes: Scenes, folder: Path, written: WrittenTruth) -> None:
    """HC-STVG as TubeDETR prepares it: `SPLIT_proc.json`, one object for each sentence, frames counted from 1.

    A trajectory has one box as x, y, width, height for each frame of the sentence. Where a person has none in
    between, it is interpolated, and counted; sentences about somebody without a box are left out.

    Args:
        scenes: with queries whose tubes own boxes.
        folder: where to.
        written: takes what was written.

    Raises:
        InputError: if there are no sentences.
    """
    if scenes.queries.is_empty():
        raise InputError("there are no sentences", hint="the table `queries` is empty")
    facts = {str(row["video"]): row for row in scenes.videos.iter_rows(named=True)}
    tracks = _collect_tracks(scenes)
    splits = _split_names(scenes)
    files: dict[str, list[dict[str, Any]]] = {}
    for row in scenes.queries.iter_rows(named=True):
        video, start, end = str(row["video"]), row["start_frame"], row["end_frame"]
        frames, corners = tracks.get(row["tube"], (np.zeros(0, np.int64), np.zeros((0, 4))))
        inside = (frames >= start) & (frames < end)
        if not inside.any() and end > start:
            written.left_out["sentences about somebody without a box, left out"] += 1
            continue
        written.left_out["boxes outside the span of their sentence, left out"] += int((~inside).sum())
        due = np.arange(start, end)
        missing = len(due) - int(inside.sum())
        written.left_out["boxes interpolated in the span of a sentence"] += missing
        boxes = corners[inside]
        if missing:
            boxes = np.column_stack([np.interp(due, frames[inside], corners[inside, k]) for k in range(4)])
        about = facts[video]
        entry: dict[str, Any] = {
            "video_id": row.get("name") or f"{video}-{row['query']}",
            "original_video_id": video,
            "frame_count": about.get("n_frames"),
            "width": about.get("width_px"),
            "height": about.get("height_px"),
            "tube_start_frame": start + 1,
            "tube_end_frame": end + 1,
            "trajectory": [[x1, y1, _extent(x1, x2), _extent(y1, y2)] for x1, y1, x2, y2 in boxes.tolist()],
            "caption": row.get("text") or "",
        }
        if about.get("path"):
            entry["video_path"] = about["path"]
        files.setdefault(splits[video] or "annotations", []).append(entry)
        written.rows["sentences"] += 1
        written.rows["boxes"] += len(boxes)
    for split, entries in files.items():
        _write(folder, f"{split}_proc.json", json.dumps(entries, allow_nan=False), written)
    written.rows["videos"] += len(
        {entry["original_video_id"] for entries in files.values() for entry in entries}
    )


def _collect_tracks(scenes: Scenes) -> dict[int, tuple[Ints, Floats]]:
    """Tube to the frames and (n, 4) corners of its boxes, by frame."""
    boxes = scenes.boxes.filter(pl.col("tube").is_not_null()).sort("tube", "frame", maintain_order=True)
    corners = boxes.select(pl.col(*CORNERS).cast(pl.Float64)).to_numpy()
    tubes, frames = boxes["tube"].to_numpy(), boxes["frame"].to_numpy().astype(np.int64)
    starts = np.flatnonzero(np.diff(tubes, prepend=-1)) if len(tubes) else np.zeros(0, np.int64)
    ends = [*starts[1:].tolist(), len(tubes)]
    return {int(tubes[a]): (frames[a:b], corners[a:b]) for a, b in zip(starts.tolist(), ends, strict=False)}


def _extent(low: float, high: float) -> float:
    """The width that added to the left gives the right, to the last bit where there is one."""
    wide = high - low
    for each in (wide, float(np.nextafter(wide, np.inf)), float(np.nextafter(wide, -np.inf))):
        if low + each == high:
            return each
    return wide


def write_vggss(scenes: Scenes, folder: Path, written: WrittenTruth) -> None:
    """VGG-SS: `vggss.json`, an object for each sound with its class and boxes in shares of the image.

    Of a sound that lasts it is the boxes in the frame that shows it first (`sounds.frame`); a sound that nobody
    shows has none.

    Args:
        scenes: with sounds and the boxes that point to them.
        folder: where to.
        written: takes what was written.

    Raises:
        InputError: if there are no sounds, or an image has no size.
    """
    if scenes.sounds.is_empty():
        raise InputError("there are no sounds", hint="the table `sounds` is empty")
    facts, words = _facts(scenes, ("width_px", "height_px")), scenes.meta.vocabularies.get("sound", ())
    sounds = scenes.sounds.with_columns(pl.col("video").cast(pl.String))
    named = sounds["name"].cast(pl.String).to_list() if "name" in sounds.columns else [None] * len(sounds)
    many = Counter(named)
    held = (
        scenes.boxes.with_columns(pl.col("video").cast(pl.String))
        if "sound" in scenes.boxes.columns
        else None
    )
    by_sound: dict[int, list[list[float]]] = {}
    if held is not None:
        frames = sounds.select(
            "sound", shown=pl.col("frame") if "frame" in sounds.columns else pl.lit(None, pl.Int64)
        )
        shown = held.drop_nulls("sound").join(frames, on="sound", how="inner", maintain_order="left")
        shown = shown.filter(pl.col("shown").is_null() | (pl.col("shown") == pl.col("frame"))).join(
            facts, on="video", how="left", maintain_order="left"
        )
        shares = shown.select(
            "sound",
            pl.col("x1_px", "x2_px") / pl.col("width_px"),
            pl.col("y1_px", "y2_px") / pl.col("height_px"),
        )
        for sound, *corners in shares.select("sound", *CORNERS).iter_rows():
            by_sound.setdefault(sound, []).append(corners)
    items = []
    for row, name in zip(sounds.iter_rows(named=True), named, strict=True):
        if row.get("label") is None:
            written.left_out["sounds without a class, left out"] += 1
            continue
        own = name if name and many[name] == 1 else f"{row['video']}-{row['sound']}"
        boxes = by_sound.get(row["sound"], [])
        items.append({"file": own, "class": words[row["label"]], "bbox": boxes})
        written.rows["sounds"] += 1
        written.rows["boxes"] += len(boxes)
    written.rows["videos"] += sounds["video"].n_unique()
    _write(folder, "vggss.json", json.dumps(items, allow_nan=False), written)


def write_label_studio_tasks(scenes: Scenes, folder: Path, written: WrittenTruth) -> None:
    """Label Studio: `tasks.json`, a task for each video or image, and `config.xml`, the project's labelling config.

    Args:
        scenes: with sizes of videos.
        folder: where to.
        written: takes what was written.

    Raises:
        UsageError: as `write_label_studio`.
    """
    held = write_label_studio(scenes, folder / TASKS, config=folder / "config.xml")
    written.files += [TASKS, "config.xml"]
    written.rows.update(tasks=held.tasks, regions=held.regions, boxes=held.boxes, keyframes=held.keyframes)
    written.left_out.update(held.left_out)


WRITERS: Mapping[str, Callable[[Scenes, Path, WrittenTruth], None]] = {
    "ava": write_ava,
    "mmaction2": write_mmaction2,
    "vidvrd": write_vidvrd,
    "hcstvg": write_hcstvg,
    "vggss": write_vggss,
    "label_studio": write_label_studio_tasks,
}
"""The forms, and what writes each."""


def _facts(scenes: Scenes | Predictions, names: tuple[str, ...]) -> pl.DataFrame:
    """`video` and some columns of videos.

    Raises:
        InputError: if one of them is unknown.
    """
    lacking = [
        name for name in names if name not in scenes.videos.columns or scenes.videos[name].null_count()
    ]
    if lacking:
        raise InputError(
            f"videos without {lacking[0]}: the form counts in shares of the image and in seconds",
            hint="give `videos.width_px`, `height_px` and `fps`",
        )
    return scenes.videos.select(
        pl.col("video").cast(pl.String), *(pl.col(name).cast(pl.Float64) for name in names)
    )


def _split_names(scenes: Scenes) -> dict[str, str]:
    """Video to the last word of its first split; "" where it is in none."""
    names = scenes.videos["video"].cast(pl.String).to_list()
    if "splits" not in scenes.videos.columns:
        return dict.fromkeys(names, "")
    splits = scenes.videos["splits"].to_list()
    return {
        name: (held[0].rpartition("/")[2] if held else "") for name, held in zip(names, splits, strict=True)
    }


def _write(folder: Path, name: str, text: str, written: WrittenTruth) -> None:
    """Raises an InputError where a name of the data would lead out of the folder."""
    if is_outside(name):
        raise InputError(f"{name!r} is no name of a file", hint="rename the video")
    if "/" in name:
        make_folder((folder / name).parent)
    write_atomically(folder / name, text.encode())
    written.files.append(name)


def put_films(scenes: Scenes, media: Path, folder: Path, written: WrittenTruth) -> None:
    """Put the videos of scenes into the folder `videos`, as links where the disk allows and else as copies.

    Args:
        scenes: whose videos.
        media: the folder that their paths start at.
        folder: where to.
        written: takes what was written.

    Raises:
        InputError: if a video is not there, or its name would lead out of the folder.
        DiskError: if the disk refuses.
    """
    make_folder(folder / FILMS)
    for video in scenes.videos["video"].cast(pl.String).to_list():
        source = find_video_path(scenes, media, video)
        name = f"{FILMS}/{video}{source.suffix.lower()}"
        if is_outside(name):
            raise InputError(f"{name!r} is no name of a file", hint="rename the video")
        target, source = folder / name, locate_content(source)
        try:
            target.unlink(missing_ok=True)
            try:
                os.link(source, target)
            except OSError:  # another disk, or one without links
                shutil.copyfile(source, target)
        except OSError as error:
            raise build_disk_error(target, source.stat().st_size, error) from error
        written.files.append(name)
        written.rows["films"] += 1


PREDICTION_FILES = ("ava", "mmaction2", "label_studio")
"""Forms of one file that hold predictions with their scores."""


def write_prediction_file(
    form: str, found: Predictions, known: Scenes | None, out: Path
) -> tuple[dict[str, int], dict[str, int]]:
    """Write predictions as one file; what was written, and what the form has no place for, to how many.

    Args:
        form: of `PREDICTION_FILES`.
        found: the predictions.
        known: the annotations that they are about, which `ava` cannot do without.
        out: a new file.
    """
    if form == "ava" and known is not None:
        write_action_predictions(found, known, out)
        rows = {"labels": int((found.labels["kind"].cast(pl.String) == "action").sum())}
        left = {"labels of other kinds than actions": len(found.labels) - rows["labels"]}
    elif form == "label_studio":
        rows = {"tasks": write_label_studio(found, out, videos=None if known is None else known.videos).tasks}
        left = {}
    else:
        rows = {"proposals": write_proposals(found, known, out)}
        left = {"boxes at other times than whole seconds": len(found.boxes) - rows["proposals"]}
    return rows, {what: n for what, n in left.items() if n}
