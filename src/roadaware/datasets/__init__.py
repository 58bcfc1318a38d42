"""Datasets that can be read, and `read`, which finds, reads, checks and keeps them."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roadaware.errors import FindingsError, UsageError

if TYPE_CHECKING:
    from roadaware.scenes.tables import Predictions, Scenes

Progress = Callable[[int, int, str], None]
_SHOWN = 10
_RENAME = {"rename": "classes called otherwise, such as person=Ped,bus=Bus; several may come to one name"}


@dataclass(frozen=True)
class Reader:
    """One dataset: names and an import path only, so that listing datasets imports none of them.

    Args:
        module: holds `VERSION`, `find(path)`, `inputs(source, **options)` and
            `read(source, *, processes, progress, **options)`: of what `find` gave, by so many workers where files are read
            one by one (most readers use one), `progress` called with how much is done, of how much, of what.
        datasets: what its tables call the dataset, in `meta.dataset`.
        title: the dataset's full name.
        licence: the terms of its annotations.
        summary: what it holds, in one line.
        options: the reader's own options with what they do.
        predicted: whether it reads predictions in the same form, each with a score, when `predicted` is passed to `read`.
    """

    module: str
    datasets: tuple[str, ...]
    title: str
    licence: str
    summary: str
    options: dict[str, str]
    predicted: bool = False


READERS: dict[str, Reader] = {
    "jaad": Reader(
        module="roadaware.datasets.jaad",
        datasets=("JAAD",),
        title="Joint Attention in Autonomous Driving 2.0",
        licence="MIT (annotations)",
        summary="346 videos, 2,786 tracks of pedestrians; behaviour, traffic and the vehicle's action",
        options={"appearance": "also read 24 appearance flags for every box"},
    ),
    "pie": Reader(
        module="roadaware.datasets.pie",
        datasets=("PIE",),
        title="Pedestrian Intention Estimation",
        licence="MIT (annotations)",
        summary="1,842 pedestrians with intention, behaviour, traffic and the vehicle's sensors",
        options={},
    ),
    "road": Reader(
        module="roadaware.datasets.road",
        datasets=("ROAD", "ROAD-Waymo"),
        title="ROAD: the road event awareness dataset; ROAD-Waymo",
        licence="CC BY-NC-SA 4.0 (annotations of ROAD)",
        summary="road users as tubes with agent, action, location, duplex and event; the vehicle's actions",
        options={},
    ),
    "vott": Reader(
        module="roadaware.datasets.vott",
        datasets=("VoTT",),
        title="Visual Object Tagging Tool (JSON exports of versions 1 and 2)",
        licence="that of whoever drew the boxes",
        summary="boxes with tags, in videos and images, and tracks where regions are named",
        options={
            "kinds": "kind of label to its tags; other tags are of the kind `tag`",
            "first_frame": "number of a video's first frame in version 1: 1, or 0",
            "track": "the field that names a track: id, name or UID",
        },
    ),
    "ucf24": Reader(
        module="roadaware.datasets.ucf24",
        datasets=("UCF101-24",),
        title="UCF101-24 with corrected annotations",
        licence="research use (annotations)",
        summary="3,194 videos of 24 human actions as tubes; every frame counts, with or without action",
        options={},
    ),
    "label_studio": Reader(
        module="roadaware.datasets.label_studio",
        datasets=("Label Studio",),
        title="Label Studio (JSON exports of video, image and audio tasks)",
        licence="that of whoever drew the boxes",
        summary="boxes over time, spans, sounds, arrows and descriptions, annotator by annotator",
        options={
            "kinds": "control (`label` for labels of rectangles themselves) to kind of label",
            "fps": "frames per second of all videos",
            "size": "width and height in pixels where the export does not say them",
        },
    ),
    "vidvrd": Reader(
        module="roadaware.datasets.vidvrd",
        datasets=("VidVRD",),
        title="Video Visual Relation Detection; VidOR",
        licence="that of the annotations' authors",
        summary="who does what to whom in videos, with a track for everybody who takes part",
        options={},
    ),
    "ava": Reader(
        module="roadaware.datasets.ava",
        datasets=("AVA",),
        title="Atomic Visual Actions",
        licence="CC BY 4.0 (annotations)",
        summary="persons in video, an image a second, each box with several of 80 actions",
        options={
            "labels": "a label map (pbtxt or csv) that lies elsewhere",
            "excluded": "a csv of excluded moments that lies elsewhere",
        },
    ),
    "chaotic_world": Reader(
        module="roadaware.datasets.chaotic_world",
        datasets=("Chaotic World",),
        title="Chaotic World",
        licence="from its authors on request (annotations)",
        summary="persons in disasters, crowds and violence with fifty actions, and sounds with their boxes",
        options={
            "pictures": "picked (chaos_*_1fps.csv) or all (annotation/); what is there unless given",
            "sounds": "group or frame, the folder of the sounds; what is there unless given",
            "first_frame": "number of a video's first frame: 1, or 0; seen from the files unless given",
            "labels": "a list of the actions that are read, with their names (pbtxt or csv)",
        },
    ),
    "hcstvg": Reader(
        module="roadaware.datasets.hcstvg",
        datasets=("HC-STVG",),
        title="HC-STVG: human-centric spatio-temporal video grounding (raw, processed, official evaluation)",
        licence="none given (annotations)",
        summary="sentences about one person, with a span and a box in each of its frames",
        options={"first_frame": "number of a video's first frame: 1, or 0; seen from the file unless given"},
    ),
    "vidstg": Reader(
        module="roadaware.datasets.vidstg",
        datasets=("VidSTG",),
        title="VidSTG: spatio-temporal grounding of statements and questions (processed, or raw with VidOR)",
        licence="none given (annotations)",
        summary="sentences about people and things in videos of VidOR, each with a span and a tube",
        options={},
    ),
    "vggss": Reader(
        module="roadaware.datasets.vggss",
        datasets=("VGG-SS",),
        title="VGG-SS: VGG-Sound source",
        licence="CC BY 4.0 (annotations)",
        summary="5,158 images with 221 classes of sound and the boxes of where it comes from",
        options={},
    ),
    "flickr_soundnet": Reader(
        module="roadaware.datasets.flickr_soundnet",
        datasets=("Flickr-SoundNet",),
        title="Flickr-SoundNet: sound source localisation",
        licence="research use (annotations)",
        summary="5,000 images with the boxes that several annotators drew around what sounds",
        options={},
    ),
    "kitti": Reader(
        module="roadaware.datasets.kitti",
        datasets=("KITTI",),
        title="KITTI: object detection (images of camera 2, LiDAR sweeps, calibration, labels)",
        licence="CC BY-NC-SA 3.0",
        summary="15,000 images with a LiDAR sweep each, half of them with boxes of eight classes",
        options={},
        predicted=True,
    ),
    "kitti_tracking": Reader(
        module="roadaware.datasets.kitti_tracking",
        datasets=("KITTI tracking",),
        title="KITTI: multi-object tracking (labels of camera 2, in the image and in space)",
        licence="CC BY-NC-SA 3.0",
        summary="21 drives at 10 images a second with the track of every vehicle, pedestrian and cyclist",
        options={},
        predicted=True,
    ),
    "nuscenes": Reader(
        module="roadaware.datasets.nuscenes",
        datasets=("nuScenes",),
        title="nuScenes (JSON tables of any version, or keyframes in a file each)",
        licence="CC BY-NC-SA 4.0",
        summary="keyframes of six cameras and a LiDAR, with tracks of 23 classes as each camera sees them",
        options={},
    ),
    "once": Reader(
        module="roadaware.datasets.once",
        datasets=("ONCE",),
        title="ONCE: one million scenes (sequences with calibration, and boxes where there are some)",
        licence="CC BY-NC-SA 4.0",
        summary="sequences of seven cameras and a LiDAR; boxes of five classes in some of their frames",
        options={},
    ),
    "coco": Reader(
        module="roadaware.formats.coco_sets",
        datasets=("COCO",),
        title="COCO JSON of anybody (boxes; of videos with video_id, frame_id and track_id)",
        licence="that of whoever drew the boxes",
        summary="boxes with a class in images or videos, and tracks where annotations name them",
        options={
            "fps": "frames a second of videos whose rate the file does not say",
            "first_frame": "number of a video's first frame in file names: 1, or 0; seen from them unless given",
            **_RENAME,
        },
    ),
    "yolo": Reader(
        module="roadaware.datasets.yolo",
        datasets=("YOLO",),
        title="YOLO text (Ultralytics, Darknet), with tracks where lines have one",
        licence="that of whoever drew the boxes",
        summary="a text file for each image with class and box, and the track where there is a sixth column",
        options={
            "fps": "frames a second of every video",
            "size": "width and height of every image, such as 1920x1080, where images do not lie beside",
            "classes": "names of the classes, such as person,car, where no file has them",
            "first_frame": "number of a video's first frame: 1, or 0; seen from the names unless given",
            **_RENAME,
        },
        predicted=True,
    ),
    "mot": Reader(
        module="roadaware.datasets.mot",
        datasets=("MOT",),
        title="MOTChallenge text of anybody (gt/gt.txt with seqinfo.ini)",
        licence="that of whoever drew the boxes",
        summary="sequences with the track, class and box of everybody in each frame",
        options={
            "classes": "names of classes 1, 2, ... where no labels.txt has them; default: those of MOT17",
            **_RENAME,
        },
    ),
    "cvat": Reader(
        module="roadaware.datasets.cvat_tasks",
        datasets=("CVAT",),
        title="CVAT XML of anybody (CVAT for video 1.1, CVAT for images 1.1)",
        licence="that of whoever drew the boxes",
        summary="tracks of videos and boxes of images, as the annotation tool exports them",
        options={"fps": "frames a second of every video: the files do not say it", **_RENAME},
    ),
    "voc": Reader(
        module="roadaware.datasets.voc",
        datasets=("Pascal VOC",),
        title="Pascal VOC XML of anybody (labelImg, CVAT, Roboflow)",
        licence="that of whoever drew the boxes",
        summary="an XML file for each image with the class and box of every object",
        options={
            "fps": "frames a second of every video",
            "first_frame": "number of a video's first frame: 1, or 0; seen from the names unless given",
            "pixels": "edges, or voc where pixels count from 1 and the last one is inside",
            **_RENAME,
        },
    ),
    "csv": Reader(
        module="roadaware.datasets.tracker_csv",
        datasets=("csv",),
        title="csv of anybody (a row for each box, with a header: trackers, pandas, spreadsheets)",
        licence="that of whoever drew the boxes",
        summary="boxes with track and class, whose columns are guessed from common names or named",
        options={
            "columns": "which column is what, such as frame=f,id=who,left=x,top=y,width=w,height=h",
            "units": "pixels, or shares of the image; seen from the numbers unless given",
            "fps": "frames a second of every video",
            "size": "width and height of every image, such as 1920x1080",
            "classes": "names of the classes, such as person,car, where the column of classes has numbers",
            "first_frame": "number of a video's first frame: 1, or 0; needed where no frame is 0",
            "frames": "listed: frames without a row are not looked at; or all",
            **_RENAME,
        },
        predicted=True,
    ),
    "bdd100k": Reader(
        module="roadaware.datasets.bdd100k",
        datasets=("BDD100K",),
        title="BDD100K (box tracking 2020, detection), or any set in the JSON of Scalabel",
        licence="BSD 3-Clause (annotations of BDD100K); else that of whoever drew the boxes",
        summary="boxes of road users in videos at 5 images a second with tracks, and in 100,000 images",
        options={
            "fps": "frames a second of every video: the files do not say it",
            "size": "width and height of every image, such as 1280x720, where frames do not say it",
            "pixels": "inside where the last pixel of a box is inside it, or edges",
            **_RENAME,
        },
        predicted=True,
    ),
    "openlabel": Reader(
        module="roadaware.datasets.openlabel",
        datasets=("OpenLABEL",),
        title="ASAM OpenLABEL 1.0 (JSON; boxes of objects in frames)",
        licence="that of whoever drew the boxes",
        summary="objects with their boxes in videos of one or several cameras",
        options={
            "fps": "frames a second of every video: the files do not say it",
            "size": "width and height of images whose stream does not say it, such as 1920x1080",
            **_RENAME,
        },
    ),
    "via": Reader(
        module="roadaware.datasets.via",
        datasets=("VIA",),
        title="VGG Image Annotator 1 and 2 (project, JSON or csv)",
        licence="that of whoever drew the boxes",
        summary="rectangles in images with a class, and tracks where an attribute names them",
        options={
            "attribute": "the attribute of regions that is the class, where several may be it",
            "fps": "frames a second of every video",
            "size": "width and height of every image, such as 1920x1080",
            "first_frame": "number of a video's first frame: 1, or 0; seen from the names unless given",
            **_RENAME,
        },
        predicted=True,
    ),
    "fiftyone": Reader(
        module="roadaware.datasets.fiftyone",
        datasets=("FiftyOne",),
        title="FiftyOne (FiftyOneDataset in JSON, of videos or images)",
        licence="that of whoever drew the boxes",
        summary="Detections of videos or images with class, track and score, as FiftyOne exports them",
        options={
            "field": "the field with the boxes; default: ground_truth, of predictions `predictions`, or the only one",
            "fps": "frames a second of every video whose sample does not say it",
            "size": "width and height of images whose sample does not say it, such as 1920x1080",
            "first_frame": "number of a video's first frame in names of images: 1, or 0; seen from them unless given",
            **_RENAME,
        },
        predicted=True,
    ),
    "activitynet": Reader(
        module="roadaware.datasets.activitynet",
        datasets=("ActivityNet",),
        title="ActivityNet JSON of anybody (segments of videos with a label)",
        licence="that of whoever annotated the videos",
        summary="what happens when in videos: segments of seconds with a label, without boxes",
        options={"fps": "frames a second of every video, without which segments have no frames", **_RENAME},
        predicted=True,
    ),
    "simulator": Reader(
        module="roadaware.datasets.simulator",
        datasets=("simulator",),
        title="Simulator: scenes that `roadaware simulate` made up",
        licence="made up by roadaware; free of terms",
        summary="synthetic streets and crowds with exact truth for every task, beside videos, masks and sweeps",
        options={},
    ),
}


def read(
    name: str,
    root: Path,
    *,
    cache: bool = True,
    verify: bool = False,
    strict: bool = False,
    processes: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Scenes:
    """A dataset as plain Scenes; what could not be taken is in `rejected`, oddities in `meta.notes["warnings"]`.

    `roadaware.read` gives the same with bridges to other libraries.

    Args:
        name: a key of `READERS`.
        root: the unpacked dataset, a folder that holds it, or its zip archive.
        cache: keep what was read, and open that the next time while the files are the same.
        verify: compare the files' contents with what was kept, not only their names, sizes and times; of
            images the size that their first bytes state.
        strict: rejected rows and warnings are an error.
        processes: workers for files that need the slow way (default: as many as there are cores).
        progress: called with how much is done, of how much, of what.
        options: the reader's own, see `Reader.options`.

    Raises:
        UsageError: if the dataset or an option is unknown.
        DatasetNotFoundError: if the dataset is not there; says what is.
        InputError: if nothing of it can be read.
        FindingsError: under `strict`, if rows were rejected or something is odd.
    """
    reader = get_reader(name)
    module = _import_reader(name, reader, options)
    rename = options.pop("rename", None)
    with module.find(Path(root)) as source:

        def fresh() -> Scenes:
            scenes: Scenes = module.read(source, processes=processes, progress=progress, **options)
            return scenes

        if cache:
            from roadaware.datasets.cache import Entry, load_or_read

            entry = Entry(name, module.VERSION, source, module.inputs(source, **options), options)
            scenes = load_or_read(entry, fresh, verify=verify)
        else:
            scenes = fresh()
        if "rename" in reader.options:
            from roadaware.datasets.facts import rename_classes

            scenes = rename_classes(scenes, source, rename)
    if strict:
        # Turn what a reader rejected or wondered at into an error that lists it
        lines = [
            f"{row['table']}: {row['file']}{':' + str(row['line']) if row['line'] else ''}: "
            f"{row['item'] + ': ' if row['item'] else ''}{row['reason']}"
            for row in scenes.rejected.head(_SHOWN).to_dicts()
        ]
        odd = scenes.meta.notes.get("warnings", [])
        lines += [f"{each['what']} ({each['count']}×, first {each['example']})" for each in odd[:_SHOWN]]
        if lines:
            counts = f"{len(scenes.rejected)} rejected rows or files and {len(odd)} kinds of oddities"
            raise FindingsError("\n  ".join([f"{name}: {counts}, and strict reading was asked for", *lines]))
    return scenes


def read_predictions(
    name: str, root: Path, *, processes: int | None = None, progress: Progress | None = None, **options: Any
) -> Predictions:
    """Predictions in the form of a dataset, whose boxes or segments have scores; nothing is cached.

    Args:
        name: a key of `READERS` with `predicted`.
        root: the file, folder or zip.
        processes: workers for files that need the slow way (default: as many as there are cores).
        progress: called with how much is done, of how much, of what.
        options: the reader's own, see `Reader.options`.

    Raises:
        UsageError: if the reader or an option is unknown, or the form has no scores.
        DatasetNotFoundError: if there is no such file; says what is.
        InputError: if nothing of it can be read.
    """
    reader = get_reader(name)
    if not reader.predicted:
        listed = ", ".join(each for each, held in READERS.items() if held.predicted)
        raise UsageError(f"no predictions are read from {name}; they are from {listed}")
    module = _import_reader(name, reader, options)
    rename = options.pop("rename", None)
    with module.find(Path(root)) as source:
        found: Predictions = module.read(
            source, processes=processes, progress=progress, predicted=True, **options
        )
        if "rename" in reader.options:
            from roadaware.datasets.facts import rename_classes

            found = rename_classes(found, source, rename)
    return found


def _import_reader(name: str, reader: Reader, options: dict[str, Any]) -> Any:
    """The module of a reader, once it is known to have all options.

    Raises:
        UsageError: if it lacks one.
    """
    if unknown := sorted(set(options) - set(reader.options)):
        has = ", ".join(reader.options) or "none"
        raise UsageError(f"the reader of {name} has no option {', '.join(unknown)}; it has {has}")
    return importlib.import_module(reader.module)


def get_reader(name: str) -> Reader:
    """The reader of a dataset.

    Raises:
        UsageError: if there is none; names the nearest.
    """
    if name not in READERS:
        near = difflib.get_close_matches(name.lower(), READERS, n=1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"no reader for '{name}': there are {', '.join(READERS)}{meant}")
    return READERS[name]
