"""Clips of videos with their boxes as a torch Dataset: targets as torchvision's detectors take them, or samples as
MMAction2's AVADataset gives them. Nothing of ours is needed to train with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor
from torch.utils.data import Dataset

from roadaware.arrays import Bools, Floats32, Ints
from roadaware.errors import InputError, UsageError
from roadaware.formats.boxes.flat import choose_kind
from roadaware.formats.bridges.box_arrays import NO_TRACK, get_columns, list_boxes
from roadaware.scenes.tables import Scenes
from roadaware.tasks.videos import Film, Footage, find_videos

_FORMS = ("detection", "ava")
_ACTION = "action"
_log = logging.getLogger("roadaware")


@dataclass(frozen=True)
class ClipOptions:
    """What an item is; see `Scenes.to_torch`.

    Args:
        clips: images in a clip.
        step: frames from one image to the next.
        stride: frames from one clip to the next; None for clips that do not overlap.
        kind: of label that becomes the class.
        size: width and height of images; None as they are.
        form: detection or ava.
        pattern: of paths.
        skip_missing: whether videos that cannot be opened are left out.

    Raises:
        UsageError: if a value has no meaning.
    """

    clips: int = 1
    step: int = 1
    stride: int | None = None
    kind: str | None = None
    size: tuple[int, int] | None = None
    form: Literal["detection", "ava"] = "detection"
    pattern: str = ""
    skip_missing: bool = False

    def __post_init__(self) -> None:
        for name, value in (("clips", self.clips), ("step", self.step), ("stride", self.stride or 1)):
            if type(value) is not int or value < 1:
                raise UsageError(f"{name} is a whole number from 1, not {value!r}")
        if self.stride == 0:
            raise UsageError("stride is a whole number from 1, not 0")
        if self.form not in _FORMS:
            raise UsageError(f"form is one of {', '.join(_FORMS)}, not {self.form!r}")
        if self.size is not None and not (
            isinstance(self.size, tuple | list)
            and len(self.size) == 2
            and all(type(side) is int and side > 0 for side in self.size)
        ):
            raise UsageError(f"size is (width, height) in whole pixels, not {self.size!r}")


@dataclass(frozen=True, eq=False)
class FrameBoxes:
    """What is true of the frames of one video, by frame.

    Args:
        begin: (frames + 1,) where the boxes of each frame begin in the other arrays.
        corners: (n, 4) in pixels of the images that items have.
        labels: (n,) from 1 on.
        tracks: (n,) number of the track in its video, -1 for none.
        crowd: (n,) whether a box is neither asked for nor counted as false.
        hot: (n, 1 + classes) which classes a box has, for items of the form `ava`; else no columns.
    """

    begin: Ints
    corners: Floats32
    labels: Ints
    tracks: Ints
    crowd: Bools
    hot: Floats32


class ClipDataset(Dataset[Any]):
    """Clips in the order of videos and frames; `dataset[n]` decodes what it needs.

    Args:
        footage: images.
        truth: of each video.
        places: (n, 2) video and first frame (`ava`: middle frame) of each clip.
        offsets: (videos,) `image_id` of frame 0 of each video.
        classes: names; label 1 is the first, 0 is the background.
        options: what an item is.
        transform: what becomes of an item; None for nothing.
        fps: of each video, 0 where it is not known.
        left_out: why a box is no part of any item, to how many.
    """

    def __init__(
        self,
        footage: Footage,
        truth: Sequence[FrameBoxes],
        places: Ints,
        offsets: Ints,
        classes: tuple[str, ...],
        options: ClipOptions,
        transform: Callable[..., Any] | None,
        fps: Sequence[float],
        left_out: dict[str, int],
    ) -> None:
        self.footage, self.truth, self.places, self.offsets = footage, truth, places, offsets
        self.classes, self.options, self.transform = classes, options, transform
        self.fps, self.left_out = fps, left_out

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, n: int) -> Any:
        if not -len(self) <= n < len(self):
            raise IndexError(f"clip {n} of {len(self)}")
        film, frame = (int(value) for value in self.places[n])
        item = (
            self._build_sample(film, frame) if self.options.form == "ava" else self._build_clip(film, frame)
        )
        if self.transform is None:
            return item
        return self.transform(item) if isinstance(item, dict) else self.transform(*item)

    def name_image(self, image_id: int) -> tuple[str, int]:
        """Video and frame of an `image_id`.

        Args:
            image_id: as targets have it.

        Raises:
            UsageError: if there is no such image.
        """
        film = int(np.searchsorted(self.offsets, image_id, side="right")) - 1
        if film < 0 or image_id - self.offsets[film] >= self.footage.films[film].n_frames:
            raise UsageError(f"no image {image_id}")
        return self.footage.films[film].video, int(image_id - self.offsets[film])

    @staticmethod
    def collate(batch: Sequence[Any]) -> Any:
        """Items as a batch for a DataLoader's `collate_fn`: a list of images and a list of targets, or a list of dicts."""
        if batch and isinstance(batch[0], dict):
            return list(batch)
        return tuple(list(part) for part in zip(*batch, strict=True))

    def _list_frames(self, film: int, first: int) -> list[int]:
        """Frames of the images of a clip; the last one is repeated behind the end of its video."""
        last = self.footage.films[film].n_frames - 1
        return [min(first + self.options.step * k, last) for k in range(self.options.clips)]

    def _build_clip(self, film: int, first: int) -> tuple[Tensor, Any]:
        frames = self._list_frames(film, first)
        pictures = np.stack(self.footage.pictures(film, frames))
        images = torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous()
        targets = [self._build_target(film, frame) for frame in frames]
        return (images[0], targets[0]) if self.options.clips == 1 else (images, targets)

    def _build_target(self, film: int, frame: int) -> dict[str, Any]:
        held = self.truth[film]
        part = slice(int(held.begin[frame]), int(held.begin[frame + 1]))
        boxes = torch.from_numpy(held.corners[part].copy())
        return {
            "boxes": boxes,
            "labels": torch.from_numpy(held.labels[part].copy()),
            "image_id": int(self.offsets[film]) + frame,
            "area": (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1]),
            "iscrowd": torch.from_numpy(held.crowd[part].astype(np.int64)),
            "tracks": torch.from_numpy(held.tracks[part].copy()),
        }

    def _build_sample(self, film: int, middle: int) -> dict[str, Any]:
        """One sample as AVADataset has it after SampleAVAFrames and RawFrameDecode."""
        held, of, options = self.truth[film], self.footage.films[film], self.options
        # SampleAVAFrames: half of the clip before the middle, and frames outside the video are its first or last.
        inds = middle + options.step * (np.arange(options.clips) - options.clips // 2)
        inds = np.clip(inds, 0, of.n_frames - 1)
        wanted = sorted(set(inds.tolist()))
        decoded = dict(zip(wanted, self.footage.pictures(film, wanted), strict=True))
        imgs = [decoded[n] for n in inds.tolist()]
        shape = imgs[0].shape[:2]
        part = slice(int(held.begin[middle]), int(held.begin[middle + 1]))
        whole = np.tile(np.array([shape[1], shape[0]], np.float32), 2)
        return {
            "frame_dir": of.video,
            "video_id": of.video,
            "filename": of.path,
            "timestamp": middle,
            "timestamp_start": 0,
            "timestamp_end": of.n_frames,
            "img_key": f"{of.video},{middle:04d}",
            "shot_info": (0, of.n_frames),
            # A timestamp is a frame here: one of them is as long as one frame, whatever the video's rate is.
            "fps": 1,
            "video_fps": self.fps[film],
            "start_index": 0,
            "modality": "RGB",
            "clip_len": options.clips,
            "frame_interval": options.step,
            "num_clips": 1,
            "frame_inds": inds,
            "imgs": imgs,
            "original_shape": shape,
            "img_shape": shape,
            # AVA's boxes are shares of the image, and its label 0 is no action.
            "gt_bboxes": held.corners[part] / whole,
            "gt_labels": held.hot[part].copy(),
            "entity_ids": held.tracks[part].copy(),
        }


def build_clip_dataset(
    scenes: Scenes, media: Path, options: ClipOptions, transform: Callable[..., Any] | None = None
) -> ClipDataset:
    """The clips of scenes; see `Scenes.to_torch`.

    Args:
        scenes: with boxes and videos.
        media: folder that paths start from.
        options: what an item is.
        transform: what becomes of an item.

    Raises:
        UsageError: if there is no such kind of label.
        InputError: if a video cannot be opened, or there is no clip.
    """
    kind = options.kind
    if kind is None and options.form == "ava" and _ACTION in scenes.meta.vocabularies:
        kind = _ACTION
    kind = choose_kind(scenes, kind)
    films, refused = find_videos(scenes, media, options.pattern)
    if refused:
        name, reason = next(iter(refused.items()))
        if not options.skip_missing:
            raise InputError(
                f"{len(refused)} of {len(refused) + len(films)} videos cannot be opened; the first, {name}: {reason}",
                hint="skip_missing=True leaves them out",
            )
        _log.warning("%d videos cannot be opened and are left out: %s", len(refused), ", ".join(refused))
    sizes = [
        (options.size[1], options.size[0]) if options.size else (film.height, film.width) for film in films
    ]
    left: dict[str, int] = {}
    truth, classes = _collect_truth(scenes, films, sizes, kind, options, left)
    if left:
        _log.info("left out: %s", ", ".join(f"{n:,} {what}" for what, n in left.items()))
    places = _list_places(scenes, films, truth, options)
    if not len(places):
        raise InputError("there is no clip: no frame of a video that can be opened is annotated")
    known: dict[str, float | None] = {}
    if "fps" in scenes.videos.columns:
        known = dict(scenes.videos.select(pl.col("video").cast(pl.String), "fps").iter_rows())
    rates = [float(known.get(film.video) or 0) for film in films]
    offsets = np.cumsum([0, *(film.n_frames for film in films)])[:-1].astype(np.int64)
    return ClipDataset(
        Footage(films, sizes), truth, places, offsets, classes, options, transform, rates, left
    )


def _collect_truth(
    scenes: Scenes,
    films: Sequence[Film],
    sizes: Sequence[tuple[int, int]],
    kind: str | None,
    options: ClipOptions,
    left: dict[str, int],
) -> tuple[list[FrameBoxes], tuple[str, ...]]:
    """The boxes of each film in pixels of its images, and the names of classes."""
    held = list_boxes(scenes, kind)
    corners, label, track, _ = get_columns(held)
    crowd = held.boxes["ignore"].fill_null(value=False).to_numpy()
    video, frame = held.boxes["video"].to_numpy(), held.boxes["frame"].to_numpy().astype(np.int64)
    hot = _mark_classes(scenes, kind, held.boxes, len(held.classes)) if options.form == "ava" else None
    known = {row["video"]: (row["width_px"], row["height_px"]) for row in held.videos.iter_rows(named=True)}
    place = {film.video: n for n, film in enumerate(films)}
    at = np.array([place.get(name, -1) for name in video], dtype=np.int64)
    ends = np.array([film.n_frames for film in films], dtype=np.int64)
    good = (at >= 0) & (frame < ends[np.maximum(at, 0)])
    _count(left, "boxes of videos and frames that cannot be opened", ~good)
    classed = label != NO_TRACK if hot is None else hot.any(axis=1)
    _count(left, "boxes without a class", good & ~classed)
    # Detectors of torchvision refuse boxes without area.
    flat = (corners[:, 2] <= corners[:, 0]) | (corners[:, 3] <= corners[:, 1])
    _count(left, "boxes without area", good & classed & flat)
    kept = good & classed & ~flat
    found = []
    for n, (film, (height, width)) in enumerate(zip(films, sizes, strict=True)):
        rows = np.flatnonzero(kept & (at == n))
        due = known.get(film.video, (None, None))
        scale = np.tile([width / (due[0] or film.width), height / (due[1] or film.height)], 2)
        found.append(
            FrameBoxes(
                np.searchsorted(frame[rows], np.arange(film.n_frames + 1)).astype(np.int64),
                (corners[rows] * scale).astype(np.float32),
                label[rows] + 1,
                track[rows],
                crowd[rows],
                np.zeros((len(rows), 0), np.float32) if hot is None else hot[rows],
            )
        )
    return found, held.classes


def _count(left: dict[str, int], what: str, which: Bools) -> None:
    if which.any():
        left[what] = int(which.sum())


def _mark_classes(scenes: Scenes, kind: str | None, boxes: pl.DataFrame, classes: int) -> Floats32:
    """(n, 1 + classes) 1 where a box has a class; column 0 stands for none, as in AVA."""
    # `list_boxes` keeps the order of videos and frames and forgets numbers: the same sort of the same boxes gives them.
    order = scenes.videos["video"].cast(pl.String).to_list()
    numbers = (
        scenes.boxes.select("box", pl.col("video").cast(pl.String), "frame")
        .sort(pl.col("video").cast(pl.Enum(order)), "frame", maintain_order=True)
        .select("box")
        .with_row_index("row")
    )
    held = scenes.labels.filter(pl.col("kind").cast(pl.String) == (kind or "")).join(numbers, on="box")
    hot = np.zeros((len(boxes), 1 + classes), np.float32)
    if held.is_empty():  # classes of tracks alone
        held = boxes.select("label").with_row_index("row").drop_nulls("label")
    hot[held["row"].to_numpy(), 1 + held["label"].to_numpy()] = 1
    return hot


def _list_places(
    scenes: Scenes, films: Sequence[Film], truth: Sequence[FrameBoxes], options: ClipOptions
) -> Ints:
    """(n, 2) film and first frame of clips with an annotated frame; of `ava` the frame in the middle of each."""
    frames = scenes.frames.with_columns(pl.col("video").cast(pl.String))
    if "annotated" in frames.columns:
        frames = frames.filter(pl.col("annotated").fill_null(value=True))
    listed = dict(frames.group_by("video").agg("frame").iter_rows())
    span = (options.clips - 1) * options.step + 1
    found: list[tuple[int, int]] = []
    for n, film in enumerate(films):
        places = listed.get(film.video)
        seen = np.zeros(film.n_frames, np.bool_)
        rows = np.array(film.frames, dtype=np.int64) if places is None else np.array(places, dtype=np.int64)
        seen[rows[rows < film.n_frames]] = True
        there = np.ones(film.n_frames, np.bool_)
        there[:] = [bool(path) for path in film.stills] if film.stills else True
        seen &= there
        if options.form == "ava":
            middles = np.flatnonzero(seen & (np.diff(truth[n].begin) > 0))[:: options.stride or 1]
            found += [(n, int(frame)) for frame in middles]
            continue
        begin = np.arange(0, film.n_frames, options.stride or span)
        # A clip is as long as asked for, unless its video is shorter.
        begin = np.unique(np.minimum(begin, max(film.n_frames - span, 0)))
        for first in begin.tolist():
            part = slice(first, first + span, options.step)
            if seen[part].any() and there[part].all():
                found.append((n, first))
    return np.array(found, dtype=np.int64).reshape(-1, 2)
