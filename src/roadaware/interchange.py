"""`ra.Scenes` and `ra.Predictions`: the tables, with the ways from and to arrays, other libraries and their files."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.errors import InputError, UsageError
from roadaware.formats.bridges.arrow import build_arrow_tables, read_arrow_tables
from roadaware.formats.bridges.box_arrays import (
    build_predictions,
    build_scenes,
    list_boxes,
    parse_box_arrays,
    parse_numbers,
)
from roadaware.formats.bridges.detections import (
    build_detections,
    read_scene_detections,
    read_scored_detections,
)
from roadaware.formats.bridges.fiftyone import read_fiftyone, write_fiftyone
from roadaware.formats.bridges.huggingface import write_huggingface
from roadaware.formats.bridges.libraries import import_library
from roadaware.formats.bridges.sample_scores import KEYS, match_sample_scores
from roadaware.formats.coco import (
    By,
    build_scenes_index,
    read_annotations,
    read_index,
    read_results,
    write_annotations,
    write_results,
)
from roadaware.formats.mot import read_sequences, read_tracks, write_sequences, write_tracks
from roadaware.scenes import tables
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Meta, build_sample_predictions

if TYPE_CHECKING:
    from roadaware.training.clip_dataset import ClipDataset

Facts = Mapping[str, Mapping[str, Any]]


class Scenes(tables.Scenes):
    """The ground truth of a set of videos, as tables; `from_*` and `to_*` lead in and out."""

    @classmethod
    def from_numpy(
        cls,
        boxes: npt.ArrayLike,
        frames: npt.ArrayLike,
        videos: str | Sequence[str],
        *,
        classes: Sequence[str] = (),
        labels: npt.ArrayLike | None = None,
        tracks: npt.ArrayLike | None = None,
        ignore: npt.ArrayLike | None = None,
        seen: Sequence[tuple[str, int]] | None = None,
        facts: Facts | None = None,
        kind: str = "agent",
    ) -> Scenes:
        """Ground-truth boxes in arrays as Scenes.

        Args:
            boxes: (n, 4) x1, y1, x2, y2 in pixels of the original image.
            frames: (n,) frame of each box, from 0.
            videos: one name for all boxes, or (n,) the video of each.
            classes: (k,) names of the classes.
            labels: (n,) place of each box's class in `classes`, -1 for none.
            tracks: (n,) number of each box's track in its video, from 0, -1 for none.
            ignore: (n,) true of boxes that are neither asked for nor counted as false.
            seen: (video, frame) of what somebody looked at, frames without boxes too; default: frames with boxes.
            facts: video to its `width_px`, `height_px`, `fps` and `n_frames`, where they are known.
            kind: which kind of label the classes are.

        Raises:
            InputError: if shapes differ, or a value has no meaning.

        Examples:
            >>> Scenes.from_numpy([[0, 0, 9, 9]], [0], "drive", classes=("Ped", "Car"), labels=[1], tracks=[7])
            Scenes(unnamed: 1 videos, 1 frames, 1 boxes, 1 labels, 1 tubes, 1 tube_labels)
        """
        found = parse_box_arrays(
            boxes, frames, videos, classes, labels, tracks, dtype=np.float64, unlabelled=True
        )
        return cls.from_tables(build_scenes(found, kind=kind, seen=seen, ignore=ignore, facts=facts))

    @classmethod
    def from_pandas(
        cls, table: Any, *, classes: Sequence[str] = (), facts: Facts | None = None, kind: str = "agent"
    ) -> Scenes:
        """Boxes in a data frame as Scenes, as `to_pandas` gives them.

        Args:
            table: pandas or polars; columns video, frame, x1_px, y1_px, x2_px, y2_px, and where there are some label (a
                name), track (a number) and ignore, each of which a row may lack.
            classes: the vocabulary in its order; default: the labels of the table in the order of the alphabet.
            facts: video to its `width_px`, `height_px`, `fps` and `n_frames`, where they are known.
            kind: which kind of label they are.

        Raises:
            InputError: if a column lacks, a label is none of the classes, or as `from_numpy`.
        """
        held = _read_data_frame(table, ("video", "frame", *CORNERS), ("label", "track", "ignore"))
        if odd := [each for each in held["ignore"] if each not in (None, False, True)]:
            raise InputError(f"ignore is true or false (1 or 0), not {odd[0]!r}")
        ignore = np.array([bool(each) for each in held["ignore"]], dtype=bool)
        return cls.from_numpy(ignore=ignore, facts=facts, kind=kind, **_list_arrays(held, classes))

    def to_pandas(self, *, kind: str | None = None) -> Any:
        """The boxes as a pandas data frame: video, frame, corners, label (a name), track, ignore.

        Args:
            kind: of label that becomes the class; default: agent, object, category or action, else the first.

        Raises:
            UsageError: if pandas is not installed, or there is no such kind.
        """
        return _build_data_frame(self, kind, ("ignore",))

    @classmethod
    def from_coco(cls, annotations: Path | str, *, kind: str = "agent", by: By = "auto") -> Scenes:
        """The annotations of a COCO file as Scenes; what was refused is in `.rejected`.

        Args:
            annotations: the file.
            kind: which kind of label the categories are.
            by: which video an image is a frame of. `auto`: of those that the file lists as `videos`; else of its
                folder, where every file name ends in `<video>/<number>.<ending>` and no two are one frame; else all are of
                one. `pictures`: each image is a video of its own, so that intervals are over images. `images`: all are of
                one video.

        Raises:
            InputError: if the file is damaged, or no COCO JSON.
        """
        return cls.from_tables(read_annotations(parse_path("annotations", annotations), kind=kind, by=by))

    def to_coco(self, path: Path | str, *, kind: str = "agent", outlines: bool = False) -> int:
        """Write the boxes as a COCO annotation file, as pycocotools and TIDE read it; the number of annotations.

        Args:
            path: where to; replaced in one step.
            kind: which kind of label becomes the category; boxes without one are left out.
            outlines: whether the outline of each box is its `segmentation`, without which TIDE reads no annotation.

        Raises:
            UsageError: if there is no such kind.
            DiskError: if the disk refuses.
        """
        index = build_scenes_index(self, kind=kind)
        return write_annotations(self, parse_path("path", path), index, outlines=outlines)

    @classmethod
    def from_arrow(cls, given: Mapping[str, Any], *, meta: Meta | None = None) -> Scenes:
        """Arrow tables as Scenes, exactly those that `to_arrow` gave.

        Args:
            given: name of each table (`videos`, `boxes`, ...) to anything that Arrow can stream.
            meta: vocabularies and notes; default: those in the metadata of the tables.

        Raises:
            UsageError: if a name or an object is no table.
            InputError: if a table breaks a law, or belongs to Predictions.
        """
        return read_arrow_tables(cls, given, meta)

    def to_arrow(self) -> dict[str, Any]:
        """Name of each table that has rows to its `pyarrow.Table`; numbers are not copied.

        Raises:
            UsageError: if pyarrow is not installed.
        """
        return build_arrow_tables(self)

    @classmethod
    def from_supervision(
        cls,
        detections: Any,
        *,
        classes: Sequence[str] | Mapping[int, str] | None = None,
        video: str = "video",
        facts: Facts | None = None,
        kind: str = "agent",
    ) -> Scenes:
        """`supervision.Detections` of frames as Scenes; frames without boxes were looked at.

        Args:
            detections: {video: {frame: Detections}}, {frame: Detections}, or a list from frame 0 on, also of each video.
            classes: names in the order of `class_id`, or class_id to name; default: those of `data["class_name"]`.
            video: its name where `detections` name none.
            facts: video to its `width_px`, `height_px`, `fps` and `n_frames`, where they are known.
            kind: which kind of label the classes are.

        Raises:
            UsageError: if it holds something else.
            InputError: if fields have different lengths, or classes have no names.
        """
        return cls.from_tables(
            read_scene_detections(detections, classes=classes, kind=kind, video=video, facts=facts)
        )

    def to_supervision(self, *, kind: str | None = None) -> dict[str, dict[int, Any]]:
        """Video to frame to `supervision.Detections`, empty ones of frames without boxes too.

        Args:
            kind: of label that becomes `class_id`, its place in the vocabulary, -1 for none; default: agent, object,
                category or action, else the first.

        Raises:
            UsageError: if supervision is not installed, or there is no such kind.
        """
        return build_detections(self, kind)

    @classmethod
    def from_trackeval(
        cls, folder: Path | str, *, classes: Mapping[int, str] | None = None, kind: str = "agent"
    ) -> Scenes:
        """A folder of MOT sequences (`<sequence>/gt/gt.txt`, `seqinfo.ini`) as Scenes.

        Args:
            folder: holds the sequences.
            classes: number of a class to its name; default: boxes have no class.
            kind: which kind of label the classes are.

        Raises:
            InputError: if it is damaged, or holds no sequence.
        """
        return cls.from_tables(read_sequences(parse_path("folder", folder), classes=classes, kind=kind))

    def to_trackeval(
        self,
        folder: Path | str,
        *,
        benchmark: str = "roadaware",
        split: str = "all",
        of: tuple[str, str] | None = None,
    ) -> None:
        """Write tracks as TrackEval's GT_FOLDER: `BENCHMARK-SPLIT/VIDEO/gt/gt.txt`, `seqinfo.ini`, and the seqmap.

        Args:
            folder: must not exist, or be empty.
            benchmark: its name.
            split: its name.
            of: (kind, label) of the tubes to write; default: all tracks.

        Raises:
            UsageError: if the folder holds anything, a video's length is not known, or there is no such label.
            DiskError: if the disk refuses.
        """
        write_sequences(self, parse_path("folder", folder), benchmark=benchmark, split=split, of=of)

    @classmethod
    def from_fiftyone(cls, folder: Path | str, *, kind: str = "agent") -> Scenes:
        """A dataset of videos that `to_fiftyone`, or FiftyOne's export as FiftyOneDataset, wrote, as Scenes.

        Args:
            folder: holds `metadata.json` and `samples.json`.
            kind: which kind of label the classes are.

        Raises:
            InputError: if it is damaged, or holds something else.
        """
        found = read_fiftyone(parse_path("folder", folder), kind=kind, predicted=False)
        return cls.from_tables(found)

    def to_fiftyone(
        self, folder: Path | str, *, media: Path | str = "", kind: str | None = None, name: str = "roadaware"
    ) -> int:
        """Write the boxes as a FiftyOneDataset in JSON, without FiftyOne; the number of boxes.

        Args:
            folder: must not exist, or be empty.
            media: the folder in which `videos.path` lies; default: paths as the tables have them.
            kind: of label that becomes the class; default: agent, object, category or action, else the first.
            name: of the dataset.

        Raises:
            UsageError: if the folder holds anything, or there is no such kind.
            InputError: if the size of a video is not known.
            DiskError: if the disk refuses.
        """
        return write_fiftyone(self, parse_path("folder", folder), media=Path(media), kind=kind, name=name)

    def to_huggingface(self, folder: Path | str, *, kind: str | None = None, name: str = "") -> int:
        """Write a folder that `datasets.load_dataset` opens: Parquet, a card and Croissant metadata; the number of frames.

        Args:
            folder: must not exist, or be empty.
            kind: of label that becomes the class; default: agent, object, category or action, else the first.
            name: of the data set; default: that of the tables.

        Raises:
            UsageError: if the folder holds anything, or there is no such kind.
            DiskError: if the disk refuses.
        """
        return write_huggingface(self, parse_path("folder", folder), kind=kind, name=name)

    def to_rerun(self, path: Path | str, *, media: Path | str | Sequence[Path | str] = ()) -> None:
        """Write a recording of Rerun (.rrd) with boxes and tubes, and videos by their paths.

        Args:
            path: the file, which ends with `.rrd`; replaced.
            media: videos, or folders in which they lie.

        Raises:
            UsageError: if rerun-sdk is not installed.
            DiskError: if the file cannot be written.
        """
        _write_recording(self, path, media)

    def to_torch(
        self,
        media: Path | str,
        *,
        clips: int = 1,
        step: int = 1,
        stride: int | None = None,
        kind: str | None = None,
        size: tuple[int, int] | None = None,
        form: Literal["detection", "ava"] = "detection",
        transform: Callable[..., Any] | None = None,
        pattern: str = "",
        skip_missing: bool = False,
    ) -> ClipDataset:
        """Clips with their boxes as a `torch.utils.data.Dataset`; images are decoded when they are asked for.

        An item of the form `detection` is (images, targets): (clips, 3, H, W) uint8 and a target for each image, as
        torchvision's detectors take them: `boxes` (n, 4) float32 x1, y1, x2, y2 in pixels of the image, `labels` (n,)
        int64 from 1 on (`dataset.classes`), `image_id`, `area`, `iscrowd`, and `tracks`. With clips=1 it is one image
        (3, H, W) and one target. An item of the form `ava` is a dict as MMAction2's AVADataset gives it of the middle
        frame, with the decoded `imgs`.

        Args:
            media: the folder in which the paths of the tables start, as `read --media`.
            clips: images in a clip.
            step: frames from one image of a clip to the next.
            stride: frames from one clip to the next; default: clips do not overlap (`ava`: each annotated frame).
            kind: of label that becomes the class; default: agent, object, category or action, else the first
                (`ava`: action where there is one).
            size: width and height that images are resized to; default: as they are.
            form: of items.
            transform: called with images and targets (`ava`: with the dict); what it returns is the item.
            pattern: where videos or images lie in `media`, such as `rgb/{video}/{number:05d}.jpg`; default: the tables'.
            skip_missing: leave videos out that cannot be opened, with a warning; else they are an error.

        Raises:
            UsageError: if torch is not installed, or an option has no meaning.
            InputError: if a video cannot be opened; it is named.
        """
        _require_torch("to_torch")
        from roadaware.training.clip_dataset import ClipOptions, build_clip_dataset

        options = ClipOptions(clips, step, stride, kind, size, form, pattern, skip_missing=skip_missing)
        return build_clip_dataset(self, parse_path("media", media), options, transform)


class Predictions(tables.Predictions):
    """The output of a model under the keys of `Scenes`, with scores; `from_*` and `to_*` lead in and out."""

    @classmethod
    def from_numpy(
        cls,
        boxes: npt.ArrayLike,
        scores: npt.ArrayLike,
        frames: npt.ArrayLike,
        videos: str | Sequence[str],
        *,
        classes: Sequence[str],
        labels: npt.ArrayLike | None = None,
        tracks: npt.ArrayLike | None = None,
        seen: Sequence[tuple[str, int]] | None = None,
        kind: str = "agent",
    ) -> Predictions:
        """Detections in arrays as Predictions.

        Args:
            boxes: (n, 4) x1, y1, x2, y2 in pixels of the original image.
            scores: (n,) score of each box's label in [0, 1], with `labels`; or (n, k) score of each class.
            frames: (n,) frame of each box, from 0.
            videos: one name for all boxes, or (n,) the video of each.
            classes: (k,) names of the classes, as the ground truth has them.
            labels: (n,) place of each box's class in `classes`; not given with (n, k) scores.
            tracks: (n,) number of each box's track in its video, from 0, -1 for none; default: no tracks.
            seen: (video, frame) of what was processed, frames without boxes too; default: frames with boxes.
            kind: which kind of label the classes are.

        Raises:
            InputError: if shapes differ, a score leaves [0, 1] or a label is no place in `classes`.

        Examples:
            >>> Predictions.from_numpy([[0, 0, 9, 9]], [0.8], [0], "drive", classes=("Ped", "Car"), labels=[1])
            Predictions(unnamed: 1 videos, 1 frames, 1 boxes)
        """
        given = parse_numbers("scores", scores, np.float32)
        if labels is not None and given.ndim != 1:
            raise InputError(f"expected (n,) scores and labels, found {given.shape} scores")
        found = parse_box_arrays(boxes, frames, videos, classes, labels, tracks)
        n, k = len(found.boxes), len(found.classes)
        if labels is not None:
            if given.shape != (n,):
                raise InputError(f"expected ({n},) scores and labels, found {given.shape} scores")
            dense = np.zeros((n, k), np.float32)
            dense[np.arange(n), found.labels] = given
        else:
            dense = given if given.size else np.zeros((n, k), np.float32)
            if dense.shape != (n, k):
                hint = "give `labels` with one score for each box"
                raise InputError(f"expected ({n}, {k}) scores, found {given.shape}", hint=hint)
        wrong = ~((dense >= 0) & (dense <= 1))
        if wrong.any():
            box, found_class = np.argwhere(wrong)[0]
            value = float(dense[box, found_class])
            nothing = "leave boxes without a score away"
            hint = (
                nothing
                if np.isnan(value)
                else "pass them through a sigmoid or softmax, or divide per cent by 100"
            )
            raise InputError(f"scores lie in [0, 1]; box {box} has {value:g}", hint=hint)
        return cls.from_tables(build_predictions(found, dense, kind=kind, seen=seen))

    @classmethod
    def from_pandas(cls, table: Any, *, kind: str = "agent") -> Predictions:
        """Detections in a data frame as Predictions.

        Args:
            table: pandas or polars; columns video, frame, x1_px, y1_px, x2_px, y2_px, score, label (a name), and where there
                are some track (a number, or nothing).
            kind: which kind of label they are.

        Raises:
            InputError: if a column lacks, a label is missing, or as `from_numpy`.
        """
        held = _read_data_frame(table, ("video", "frame", *CORNERS, "score", "label"), ("track",))
        if None in held["label"]:
            raise InputError(f"row {held['label'].index(None)} has a score and no label")
        return cls.from_numpy(scores=held["score"], kind=kind, **_list_arrays(held, ()))

    @classmethod
    def from_scores(cls, scores: Any, scenes: tables.Scenes, *, split: str | None = "test") -> Predictions:
        """A model's answers about samples of pedestrians as Predictions, for `evaluate(..., "pedestrians")`.

        Args:
            scores: (n,) probability of crossing, or (n, k) of each class, in the order of the split's samples. Or n rows
                of a data frame, pandas or polars, in any order: columns score, or score_0, score_1, ... of
                several classes; sample, or pedestrian (the dataset's name of the track) with any of video,
                start_frame, end_frame (the frame after the last observed one) and tte_frames.
            scenes: with samples, as `sample` gives them.
            split: whose samples they are; None for all of them.

        Raises:
            InputError: if there are no such samples, a column lacks, or there is not one row for each sample.
        """
        held = scenes.samples
        if split is not None and "split" in held.columns:
            held = held.filter(pl.col("split") == split)
        if held.is_empty():
            raise InputError(
                f"the scenes have no samples{'' if split is None else f' of split {split!r}'}",
                hint='cut them first: scenes = ra.sample(scenes, "jaad-action@iv2024")',
            )
        if hasattr(scores, "columns") and hasattr(scores, "__len__"):
            names = list(map(str, scores.columns))
            asked = [name for name in names if name in KEYS or name.startswith("score")]
            values = match_sample_scores(_read_data_frame(scores, asked, ()), scenes, held)
        else:
            values = parse_numbers("scores", scores, np.float64)
        return cls.from_tables(build_sample_predictions(held, values))

    def to_pandas(self, *, kind: str | None = None) -> Any:
        """The boxes as a pandas data frame: video, frame, corners, label (the best, a name), track, score.

        Args:
            kind: of label that becomes the class; default: agent, object, category or action, else the first.

        Raises:
            UsageError: if pandas is not installed, or there is no such kind.
        """
        return _build_data_frame(self, kind, ("score",))

    @classmethod
    def from_coco(
        cls, results: Path | str, annotations: Path | str, *, kind: str = "agent", by: By = "auto"
    ) -> Predictions:
        """A list of COCO results as Predictions.

        Args:
            results: file with a list of image_id, category_id, bbox and score.
            annotations: the annotation file that names images and categories.
            kind: which kind of label the categories are.
            by: which video an image is a frame of, as `Scenes.from_coco` takes it.

        Raises:
            InputError: if a file is damaged, or no COCO JSON.
        """
        path = parse_path("results", results)
        found = read_results(path, read_index(parse_path("annotations", annotations), kind=kind, by=by))
        return cls(**found.tables(), meta=found.meta)

    def to_coco(self, path: Path | str, scenes: Scenes, *, kind: str = "agent") -> int:
        """Write the boxes as a list of COCO results; the number of results.

        Args:
            path: where to; replaced in one step.
            scenes: the ground truth, whose frames are the images.
            kind: which kind of label becomes the category.
        """
        return write_results(self, parse_path("path", path), build_scenes_index(scenes, kind=kind))

    @classmethod
    def from_arrow(cls, given: Mapping[str, Any], *, meta: Meta | None = None) -> Predictions:
        """Arrow tables as Predictions, exactly those that `to_arrow` gave.

        Args:
            given: name of each table (`boxes`, `frames`, ...) to anything that Arrow can stream.
            meta: vocabularies and notes; default: those in the metadata of the tables.

        Raises:
            UsageError: if a name or an object is no table.
            InputError: if a table breaks a law, or belongs to Scenes.
        """
        return read_arrow_tables(cls, given, meta)

    def to_arrow(self) -> dict[str, Any]:
        """Name of each table that has rows to its `pyarrow.Table`; numbers are not copied.

        Raises:
            UsageError: if pyarrow is not installed.
        """
        return build_arrow_tables(self)

    @classmethod
    def from_supervision(
        cls,
        detections: Any,
        *,
        classes: Sequence[str] | Mapping[int, str] | None = None,
        video: str = "video",
        kind: str = "agent",
    ) -> Predictions:
        """`supervision.Detections` of frames, such as a detector or a tracker gives them, as Predictions.

        Args:
            detections: {video: {frame: Detections}}, {frame: Detections}, or a list from frame 0 on, also of each video;
                each box with `confidence` and `class_id`, and `tracker_id` where it was tracked.
            classes: names in the order of `class_id`, or class_id to name; default: those of `data["class_name"]`.
            video: its name where `detections` name none.
            kind: which kind of label the classes are.

        Raises:
            UsageError: if it holds something else.
            InputError: if a box has no confidence in [0, 1] or no class, or classes have no names.
        """
        return cls.from_tables(read_scored_detections(detections, classes=classes, kind=kind, video=video))

    def to_supervision(self, *, kind: str | None = None) -> dict[str, dict[int, Any]]:
        """Video to frame to `supervision.Detections` of the class that scores highest, and its score.

        Args:
            kind: of label that becomes `class_id`, its place in the vocabulary; default: agent, object, category or
                action, else the first.

        Raises:
            UsageError: if supervision is not installed, or there is no such kind.
        """
        return build_detections(self, kind)

    @classmethod
    def from_trackeval(
        cls, files: Mapping[str, Path | str], scenes: tables.Scenes | None = None
    ) -> Predictions:
        """Tracks in MOT text as Predictions; what was refused is in `.rejected`.

        Args:
            files: video to its file.
            scenes: the ground truth, which says what videos and frames there are.

        Raises:
            InputError: if a file is not there, or no text.
        """
        if not isinstance(files, Mapping):
            raise UsageError(
                f"files is a video to its file, {{'drive': 'drive.txt'}}, not {reprlib.repr(files)}"
            )
        return cls.from_tables(
            read_tracks({video: parse_path(video, path) for video, path in files.items()}, scenes)
        )

    def to_trackeval(
        self,
        folder: Path | str,
        *,
        tracker: str = "roadaware",
        benchmark: str = "roadaware",
        split: str = "all",
        of: tuple[str, str] | None = None,
    ) -> None:
        """Write tracks as TrackEval's TRACKERS_FOLDER: `BENCHMARK-SPLIT/TRACKER/data/VIDEO.txt`.

        Args:
            folder: must not exist, or be empty.
            tracker: its name.
            benchmark: as in `Scenes.to_trackeval`.
            split: as in `Scenes.to_trackeval`.
            of: (kind, label) of the tubes to write; default: the paths themselves.

        Raises:
            UsageError: if the folder holds anything, or there is no such label.
            DiskError: if the disk refuses.
        """
        write_tracks(
            self, parse_path("folder", folder), tracker=tracker, benchmark=benchmark, split=split, of=of
        )

    @classmethod
    def from_fiftyone(cls, folder: Path | str, *, kind: str = "agent") -> Predictions:
        """The field `predictions` of a FiftyOneDataset of videos as Predictions.

        Args:
            folder: holds `metadata.json` and `samples.json`.
            kind: which kind of label the classes are.

        Raises:
            InputError: if it is damaged, or holds something else.
        """
        found = read_fiftyone(parse_path("folder", folder), kind=kind, predicted=True)
        return cls.from_tables(found)

    def to_fiftyone(
        self,
        folder: Path | str,
        scenes: tables.Scenes,
        *,
        media: Path | str = "",
        kind: str | None = None,
        name: str = "roadaware",
    ) -> int:
        """Write predictions beside their ground truth as a FiftyOneDataset in JSON; the number of predicted boxes.

        Args:
            folder: must not exist, or be empty.
            scenes: the ground truth, whose videos are the samples.
            media: the folder in which `videos.path` lies; default: paths as the tables have them.
            kind: of label that becomes the class; default: agent, object, category or action, else the first.
            name: of the dataset.

        Raises:
            UsageError: if the folder holds anything, or there is no such kind.
            InputError: if the size of a video is not known.
            DiskError: if the disk refuses.
        """
        return write_fiftyone(
            scenes, parse_path("folder", folder), media=Path(media), kind=kind, name=name, predictions=self
        )

    def to_rerun(
        self,
        path: Path | str,
        scenes: tables.Scenes | None = None,
        *,
        media: Path | str | Sequence[Path | str] = (),
    ) -> None:
        """Write a recording of Rerun (.rrd) with boxes, tubes and scores, beside ground truth where it is given.

        Args:
            path: the file, which ends with `.rrd`; replaced.
            scenes: the ground truth.
            media: videos, or folders in which they lie.

        Raises:
            UsageError: if rerun-sdk is not installed.
            DiskError: if the file cannot be written.
        """
        _write_recording(self, path, media, *([scenes] if scenes is not None else []))


# What several of these ask of what they are given.


def parse_path(what: str, given: Any) -> Path:
    """A path.

    Raises:
        UsageError: if it is none, or empty, which would be the folder that Python runs in.
    """
    if not isinstance(given, str | os.PathLike) or given == "":
        raise UsageError(f"{what} is a path or a name, not {reprlib.repr(given)}")
    return Path(given)


def _read_data_frame(table: Any, needed: Sequence[str], further: Sequence[str]) -> dict[str, list[Any]]:
    """Columns of a data frame as lists, None where a value is missing; all of `further` that are not there.

    Raises:
        UsageError: if it is no data frame.
        InputError: if a needed column lacks, or one stands twice.
    """
    if not hasattr(table, "columns") or not hasattr(table, "__len__"):
        raise UsageError(f"from_pandas takes a data frame, not {type(table).__name__}")
    if lacking := [name for name in needed if name not in list(table.columns)]:
        raise InputError(
            f"expected columns {', '.join(lacking)}, found {', '.join(map(str, table.columns))}",
            hint="rename them: table.rename(columns={'x1': 'x1_px'}); of one video, table.assign(video='name')",
        )
    if twice := [name for name in (*needed, *further) if list(table.columns).count(name) > 1]:
        raise InputError(f"the data frame has the column {twice[0]} twice")
    found: dict[str, list[Any]] = {name: [None] * len(table) for name in further}
    for name in (*needed, *(name for name in further if name in list(table.columns))):
        column = table[name]
        missing = column.isna() if hasattr(column, "isna") else column.is_null()
        found[name] = [
            None if gone else value for value, gone in zip(column.to_list(), missing.to_list(), strict=True)
        ]
    return found


def _list_arrays(held: Mapping[str, list[Any]], classes: Sequence[str]) -> dict[str, Any]:
    """What `from_numpy` takes of the columns of a data frame.

    Raises:
        InputError: if a label is none of the classes, where these are given.
    """
    if None in held["video"]:
        raise InputError(f"row {held['video'].index(None)} of the data frame names no video")
    names = [None if name is None else str(name) for name in held["label"]]
    words = tuple(classes) or tuple(sorted({name for name in names if name is not None}))
    place: dict[str | None, int] = {None: -1, **{name: n for n, name in enumerate(words)}}
    if (unknown := next((name for name in names if name not in place), None)) is not None:
        raise InputError(f"the label {unknown!r} is none of {', '.join(words)}")
    return {
        "boxes": np.column_stack([parse_numbers(name, held[name], np.float64) for name in CORNERS]),
        "frames": held["frame"],
        "videos": [str(name) for name in held["video"]],
        "classes": words,
        "labels": np.array([place[name] for name in names], dtype=np.int64),
        # Where some are missing, pandas has the others as floats.
        "tracks": [
            -1 if track is None else int(track) if isinstance(track, float) and track.is_integer() else track
            for track in held["track"]
        ],
    }


def _build_data_frame(held: Scenes | Predictions, kind: str | None, more: Sequence[str]) -> Any:
    pandas = import_library("pandas", "to_pandas")
    flat = list_boxes(held, kind)
    names = dict(enumerate(flat.classes))
    boxes = flat.boxes.with_columns(
        label=pl.col("label").replace_strict(names, default=None, return_dtype=pl.String)
    )
    columns = ("video", "frame", *CORNERS, "label", "track", *more)
    return pandas.DataFrame({name: boxes[name].to_list() for name in columns})


def _write_recording(
    held: tables.TableSet, path: Path | str, media: Path | str | Sequence[Path | str], *more: tables.TableSet
) -> None:
    from roadaware.viewer.opening import open_sets
    from roadaware.viewer.rerun_file import import_rerun, write_rerun_file

    import_rerun()
    target = parse_path("path", path)
    if target.suffix != ".rrd":
        raise UsageError(f"a recording of Rerun ends with .rrd, not {target.name!r}")
    folders = [media] if isinstance(media, str | os.PathLike) else media
    write_rerun_file(open_sets([held, *more], [parse_path("media", each) for each in folders]), target)


def _require_torch(who: str) -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise UsageError(f"{who} needs torch: pip install 'roadaware[models]'")
