"""Files for the servers of the ROAD challenges: one pickle of tubes in a zip, checked before it leaves the house.

The servers read `{kind: {video: [{label_id, scores, boxes, score, frames}]}}` with kinds and labels as the annotation
file calls and orders them, boxes in pixels of images of 682x512 whatever the size of the originals, and frames from 1
without holes. They look up every video of the split under every kind that is judged.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl

from roadaware.arrays import Floats, Ints
from roadaware.errors import InputError, UsageError
from roadaware.formats.road_detections import CLASS_KINDS, NETWORK_SIZE, encode_pickle
from roadaware.formats.road_tubes import build_tube_lists
from roadaware.io.files import write_atomically
from roadaware.scenes.concatenation import get_image_sizes, rescale_predictions
from roadaware.scenes.tables import Predictions, Scenes

Challenge = Literal["road", "road-waymo", "roadpp"]
TASKS = ("agent", "action", "event")
"""The kinds that the challenges judge: agents, actions, and road events (triplets)."""
FILE = "tubes_none_0.pkl"
THRESHOLDS = ("0.2", "0.5")
"""Overlaps at which tubes are compared by the servers of the challenges."""
_NATIVE = {"location": "loc", "event": "triplet"}
_LARGE_BYTES = 500_000_000
_FIRST_FRAME = 1
_LARGEST_SHARE = 2.0
_MANY_VIDEOS = 3
"""In fewer videos the first or last frame may well be empty."""
_DATE = (2020, 1, 1, 0, 0, 0)
_SHOWN = 5


@dataclass(frozen=True)
class Remark:
    """Something that a server would not like.

    Args:
        costs: whether it lowers the score there, mostly to 0, rather than good to know.
        says: what it is, and what was done about it.
    """

    costs: bool
    says: str


@dataclass(frozen=True, eq=False)
class Submission:
    """What is handed in.

    Args:
        lists: kind, as the annotation file calls it, to video to tubes.
        remarks: what was found and changed.
    """

    lists: dict[str, dict[str, list[dict[str, Any]]]]
    remarks: tuple[Remark, ...] = field(default=())

    @property
    def n_tubes(self) -> dict[str, int]:
        """Kind to the number of its tubes."""
        return {kind: sum(map(len, videos.values())) for kind, videos in self.lists.items()}


def build_submission(predictions: Predictions, scenes: Scenes, kinds: Sequence[str] = ()) -> Submission:
    """The tubes of a data set's split as its server takes them.

    Args:
        predictions: labelled tubes with boxes, in the words of the ground truth.
        scenes: the videos of the split, with the vocabularies of the release; their annotations are not looked at.
        kinds: that are judged, under our names (default: agent, action and event, so far as the release has them).

    Raises:
        UsageError: if a kind is none of the release's.
        InputError: if there is not one tube that can be handed in.
    """
    wanted = tuple(kinds) or tuple(kind for kind in TASKS if kind in scenes.meta.vocabularies)
    unknown = [kind for kind in wanted if kind not in CLASS_KINDS or kind not in scenes.meta.vocabularies]
    if unknown or not wanted:
        known = ", ".join(kind for kind in CLASS_KINDS if kind in scenes.meta.vocabularies) or "none"
        raise UsageError(f"kinds are {known}; there is no {', '.join(unknown) or 'kind at all'}")
    remarks: list[Remark] = []
    predictions = _select_videos(predictions, scenes, remarks)
    remarks += _describe_frames(predictions, scenes)
    predictions = _rename_labels(predictions, scenes, wanted, remarks)
    native = {**_NATIVE, **scenes.meta.notes.get("native_kinds", {})}
    meta = replace(predictions.meta, notes={**predictions.meta.notes, "native_kinds": native})
    predictions = rescale_predictions(predictions.with_tables(meta=meta), scenes)
    lists: dict[str, dict[str, list[dict[str, Any]]]] = {}
    if len(predictions.tube_labels):
        lists = build_tube_lists(predictions, native=True, agentness=False, first_frame=_FIRST_FRAME)
    videos = scenes.videos.select(
        pl.col("video").cast(pl.String), n_frames=_or_null(scenes.videos, "n_frames")
    )
    sizes = get_image_sizes(scenes)
    if lacking := [video for video in videos["video"] if video not in sizes]:
        raise InputError(f"the truth does not say how large the images of {', '.join(lacking[:_SHOWN])} are")
    counts = {"holes": 0, "cut": 0, "empty": 0}
    out: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for kind in wanted:
        held = lists.get(native.get(kind, kind), {})
        out[native.get(kind, kind)] = {
            video: [
                tube
                for each in held.get(video, [])
                if (tube := _convert_tube(each, sizes[video], n_frames, counts)) is not None
            ]
            for video, n_frames in videos.iter_rows()
        }
    submission = Submission(out)
    if not any(submission.n_tubes.values()):
        raise InputError(
            "there is not one tube to hand in",
            hint="link and label the detections first, and name the split that they are of",
        )
    words = {native.get(kind, kind): scenes.meta.vocabularies[kind] for kind in wanted}
    remarks += [
        *_describe(submission, counts),
        *_describe_boxes(submission),
        *_describe_labels(submission, words),
    ]
    return replace(submission, remarks=tuple(remarks))


def merge_submissions(parts: Sequence[Submission]) -> Submission:
    """Submissions of several data sets as one, as ROAD++ takes ROAD and ROAD-Waymo.

    Raises:
        InputError: if two have a video of one name.
    """
    lists: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for part in parts:
        for kind, videos in part.lists.items():
            if twice := sorted(lists.get(kind, {}).keys() & videos.keys()):
                raise InputError(f"two data sets have a video {twice[0]!r}")
            lists.setdefault(kind, {}).update(videos)
    return Submission(lists, tuple(remark for part in parts for remark in part.remarks))


def encode_submission(submission: Submission) -> bytes:
    """The zip, with the same bytes for the same tubes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(FILE, _DATE), encode_pickle(submission.lists), zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def write_submission(submission: Submission, path: Path) -> list[Remark]:
    """Write the zip, whole or not at all, and say where it may be too large.

    Raises:
        DiskError: if the disk refuses.
    """
    data = encode_submission(submission)
    write_atomically(Path(path), data)
    if len(data) <= _LARGE_BYTES:
        return []
    return [
        Remark(False, f"The file has {len(data):,} bytes; servers may refuse more than {_LARGE_BYTES:,}.")
    ]


def _or_null(table: pl.DataFrame, column: str) -> pl.Expr:
    return pl.col(column) if column in table.columns else pl.lit(None, pl.Int64)


def _select_videos(predictions: Predictions, scenes: Scenes, remarks: list[Remark]) -> Predictions:
    """The predictions in videos of the split."""
    wanted = scenes.videos["video"].cast(pl.String).to_list()
    mine = predictions.tubes["video"].cast(pl.String).unique(maintain_order=True).to_list()
    foreign = [video for video in mine if video not in wanted]
    if foreign:
        share = f"{len(foreign)} of {len(mine)} videos"
        remarks.append(
            Remark(False, f"Left out: tubes in {share} that the split does not have ({_list(foreign)}).")
        )
    if missing := [video for video in wanted if video not in mine]:
        share = f"{len(missing)} of {len(wanted)} videos of the split"
        remarks.append(Remark(True, f"No tubes in {share}, handed in as empty: {_list(missing)}."))

    def keep(table: pl.DataFrame) -> pl.DataFrame:
        return (
            table.filter(pl.col("video").cast(pl.String).is_in(wanted)) if "video" in table.columns else table
        )

    tubes = keep(predictions.tubes)
    labels = predictions.tube_labels.join(tubes.select("tube"), on="tube", how="semi", maintain_order="left")
    return predictions.with_tables(
        videos=keep(predictions.videos),
        frames=keep(predictions.frames),
        boxes=keep(predictions.boxes),
        tubes=tubes,
        tube_labels=labels,
    )


def _rename_labels(
    predictions: Predictions, scenes: Scenes, wanted: Sequence[str], remarks: list[Remark]
) -> Predictions:
    """Tubes of the wanted kinds, their labels numbered as in the annotation file."""
    labels = predictions.tube_labels.with_columns(pl.col("kind").cast(pl.String))
    parts: list[pl.DataFrame] = []
    for kind in wanted:
        rows = labels.filter(pl.col("kind") == kind)
        mine, theirs = predictions.meta.vocabularies.get(kind, ()), scenes.meta.vocabularies[kind]
        places = {n: theirs.index(name) for n, name in enumerate(mine) if name in theirs}
        known = rows.filter(pl.col("label").is_in(list(places)))
        if len(known) < len(rows):
            strange = sorted({mine[n] if n < len(mine) else str(n) for n in set(rows["label"]) - set(places)})
            count = len(rows) - len(known)
            remarks.append(
                Remark(
                    True,
                    f"Left out: {count:,} tubes of {kind} labels that the release lacks ({_list(strange)}).",
                )
            )
        if len(known):
            known = known.with_columns(
                pl.col("label").replace_strict(
                    list(places), list(places.values()), return_dtype=known.schema["label"]
                )
            )
        parts.append(known)
    vocabularies = {kind: scenes.meta.vocabularies[kind] for kind in wanted}
    # Dense scores keep the columns of their detector; those of a tube are then its agentness.
    boxes = predictions.boxes.drop("scores", strict=False)
    return predictions.with_tables(
        boxes=boxes,
        tube_labels=pl.concat(parts),
        meta=replace(predictions.meta, vocabularies={**predictions.meta.vocabularies, **vocabularies}),
    )


def _convert_tube(
    tube: dict[str, Any], size: tuple[int, int], n_frames: int | None, counts: dict[str, int]
) -> dict[str, Any] | None:
    """A tube in the server's pixels, within its video, with a box in every frame; None of one without a frame left."""
    frames: Ints = np.asarray(tube["frames"], dtype=np.int64)
    boxes: Floats = np.asarray(tube["boxes"], dtype=np.float64)
    scores: Floats = np.asarray(tube["scores"], dtype=np.float64)
    inside = (frames >= _FIRST_FRAME) & (
        frames < _FIRST_FRAME + (np.iinfo(np.int64).max // 2 if n_frames is None else n_frames)
    )
    if not inside.all():
        counts["cut"] += 1
        frames, boxes, scores = frames[inside], boxes[inside], scores[inside]
    if not len(frames):
        counts["empty"] += 1
        return None
    every = np.arange(frames[0], frames[-1] + 1)
    if len(every) > len(frames):
        counts["holes"] += 1
        boxes = np.stack([np.interp(every, frames, side) for side in boxes.T], axis=1)
        scores = np.interp(every, frames, scores)
    factor = np.tile(np.array(NETWORK_SIZE, dtype=np.float64) / np.array(size, dtype=np.float64), 2)
    return {
        "label_id": int(tube["label_id"]),
        "scores": scores.astype(np.float32),
        "boxes": (boxes * factor).astype(np.float32),
        "score": float(tube["score"]),
        "frames": every,
    }


def _describe(submission: Submission, counts: dict[str, int]) -> list[Remark]:
    remarks = [
        Remark(True, f"There are no tubes of {kind}: the server scores that task 0.")
        for kind, count in submission.n_tubes.items()
        if not count
    ]
    if counts["cut"]:
        remarks.append(Remark(False, f"{counts['cut']:,} tubes were cut where their video ends."))
    if counts["empty"]:
        remarks.append(Remark(True, f"Left out: {counts['empty']:,} tubes that lie outside their video."))
    if counts["holes"]:
        remarks.append(
            Remark(False, f"{counts['holes']:,} tubes had holes, which were filled in a straight line.")
        )
    scores = [
        tube["score"] for videos in submission.lists.values() for tubes in videos.values() for tube in tubes
    ]
    if len(scores) > 1 and len(set(scores)) == 1:
        remarks.append(Remark(True, f"Every tube has the score {scores[0]:g}: the server cannot rank them."))
    return remarks


def _describe_frames(predictions: Predictions, scenes: Scenes) -> list[Remark]:
    """Frames that are counted from another number than the server's, by where tubes leave their videos.

    A detector sees things in the first frame of some video, and in the last of some. Where it sees none there, and tubes
    reach over the other end, all frames are moved; where none does, that may be the detector's way.
    """
    lengths = scenes.videos.select(
        pl.col("video").cast(pl.String), end=_or_null(scenes.videos, "n_frames")
    ).drop_nulls()
    spans = predictions.boxes.group_by(pl.col("video").cast(pl.String)).agg(
        first=pl.col("frame").min(), last=pl.col("frame").max()
    )
    spans = spans.join(lengths, on="video").select("first", room=pl.col("end") - 1 - pl.col("last"))
    if spans.is_empty():
        return []
    found = []
    # What the reader of tubes refused lies outside of its video as well.
    reasons = predictions.rejected["reason"]
    for side, refused, early in (("first", "before the first", True), ("room", "behind the end", False)):
        over = int(reasons.str.contains(refused, literal=True).sum()) + int((spans[side] < 0).sum())
        other = spans["room" if early else "first"]
        ends = ("before the first frame", "last") if early else ("behind the last frame", "first")
        add = "add 1 to" if early else "take 1 from"
        if over and (other >= 1).all():
            says = f"Tubes lie {ends[0]} of a video, and no box on the {ends[1]} one of any: frames seem to be numbered from"
            found.append(
                Remark(True, f"{says} {_FIRST_FRAME - 1 if early else _FIRST_FRAME + 1}; {add} each.")
            )
        elif not over and len(other) >= _MANY_VIDEOS and (other == 1).all():
            says = f"No box lies on the {ends[1]} frame of any of {len(other)} videos, and one on the frame beside it in all:"
            found.append(Remark(False, f"{says} if frames are not numbered from {_FIRST_FRAME}, {add} each."))
    return found


def _describe_boxes(submission: Submission) -> list[Remark]:
    """Boxes in other units or of a larger image, which overlap with nothing or with too little."""
    tubes = [tube for videos in submission.lists.values() for listed in videos.values() for tube in listed]
    boxes = np.concatenate([tube["boxes"] for tube in tubes])
    if boxes.max() <= _LARGEST_SHARE:
        return [Remark(True, "All boxes lie within two pixels: they look like shares of the image.")]
    outside = (boxes[:, :2] >= NETWORK_SIZE).any(axis=1) | (boxes[:, 2:] <= 0).any(axis=1)
    if count := int(outside.sum()):
        return [
            Remark(True, f"{count:,} boxes lie outside their image: --size says what they are pixels of.")
        ]
    return []


def _describe_labels(submission: Submission, words: Mapping[str, Sequence[str]]) -> list[Remark]:
    """Labels of a kind that no tube has: the mean is over all of them."""
    remarks = []
    for kind, videos in submission.lists.items():
        used = {tube["label_id"] for tubes in videos.values() for tube in tubes}
        unused = [word for number, word in enumerate(words[kind]) if number not in used]
        if used and unused:
            share = f"{len(unused)} of {len(words[kind])} {kind} labels"
            remarks.append(Remark(False, f"No tubes of {share}, each 0 in the mean: {_list(unused)}."))
    return remarks


def _list(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
