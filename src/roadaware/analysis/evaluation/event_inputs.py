"""Ground truth and predictions of road events, and predicted boxes of any tool, opened in every form that they come in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from roadaware.analysis.event_findings import (
    NO_SCORE,
    PER_CENT,
    LeftOut,
    check_truth,
    count_refusals,
    describe_refusal,
    describe_remedy,
    find_unread,
    list_warnings,
)
from roadaware.datasets import READERS, loading, read_predictions
from roadaware.datasets.detect_format import detect_dataset_format
from roadaware.datasets.loading import add_columns, open_saved_predictions, parse_reader_options, require_path
from roadaware.errors import InputError, UsageError
from roadaware.formats import label_studio
from roadaware.formats.actions import read_action_predictions, read_person_boxes
from roadaware.formats.boxes.flat import choose_kind
from roadaware.formats.coco import (
    CocoIndex,
    build_scenes_index,
    choose_by,
    read_index,
    read_json_document,
    read_results,
)
from roadaware.formats.mot import read_tracks
from roadaware.formats.road_detections import HOUSE_NAMES, read_detections
from roadaware.formats.road_tubes import read_tubes
from roadaware.io.sources import to_printable
from roadaware.scenes.dense_scores import get_score_layout, set_score_layout
from roadaware.scenes.store import is_saved
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.steps import Progress, log_step, show_progress

Form = Literal["saved", "detections", "tubes", "coco", "mot"]
EventSet = Literal["road", "ucf24"]
NETWORK_SIZE = "682x512"
_FORMS = (
    "a folder that `link` or `read -o` saved, a folder of per-frame detection pickles, a tube file (.pkl), "
    "COCO results (.json) or MOT text (.txt)"
)
_UCF24_CLASSES, _OF_FRAMES = 24, ("av_action",)
_SNIFFED, _VOTT = 1 << 16, (b'"framerate"', b'"visitedFrames"', b'"inputTags"', b'"assets"')
_SUFFIXES: dict[str, Form] = {".pkl": "tubes", ".json": "coco", ".txt": "mot"}
_MOST_PIXELS = 100_000
_LABEL_LISTS = ("kinds of labels with one list", "used labels that no box can have")


@dataclass(frozen=True, eq=False)
class EventPredictions:
    """The predictions, and where they came from.

    Args:
        path: the file or folder.
        form: of it.
        tables: what was read.
        left: what was left out; what the truth's own reader refused is among it.
    """

    path: Path
    form: Form
    tables: Predictions
    left: LeftOut = field(default_factory=LeftOut)

    @property
    def dropped(self) -> dict[str, int]:
        """What was left out, by reason."""
        return self.left.everything

    @property
    def has_boxes(self) -> bool:
        """Whether it says anything of boxes in frames."""
        if self.form == "mot":
            return not self.has_tubes
        return self.form in ("detections", "coco") or (self.form == "saved" and self._detected)

    @property
    def has_tubes(self) -> bool:
        """Whether it says anything of tubes."""
        return self.form == "tubes" or not self.tables.tubes.is_empty()

    @property
    def _detected(self) -> bool:
        """Whether there are detections: a saved tube file has boxes, and all of them belong to tubes."""
        boxes = self.tables.boxes
        loose = self.tables.tubes.is_empty() or get_score_layout(self.tables.meta, "boxes").width > 0
        return (
            loose
            or not self.tables.frames.is_empty()
            or (not self.tables.labels.is_empty() and len(boxes) > 0)
        )


def open_truth(path: Path, dataset: EventSet | None = None) -> Scenes:
    """The annotations of road events: a release's file, or a folder that `read -o` saved.

    Args:
        path: where they lie.
        dataset: which reader; guessed from the name where None: .pkl is UCF101-24, anything else ROAD.
            A JSON file that VoTT wrote is read as such.

    Raises:
        InputError: if there is no such file, or it is not the dataset.
    """
    loading.require_path(path)
    if is_saved(path):
        return loading.open_saved_scenes(path)
    reader = _select_reader(path, dataset)
    try:
        return loading.open_dataset(reader, path)
    except InputError as error:
        try:
            found = detect_dataset_format(path)
        except InputError:
            raise error from None
        if found == reader:
            raise
        raise InputError(
            f"expected the annotations of {reader}, found what looks like {found}",
            where=to_printable(str(path)),
            hint=f"`roadaware read {to_printable(str(path))} -o TABLES` makes tables of it: --truth TABLES",
        ) from error


def select_split(scenes: Scenes, split: str | None, kinds: Sequence[str] = ()) -> Scenes:
    """The part of the truth that is judged; all of it where no split is named.

    Args:
        scenes: the truth.
        split: its name; `all` for everything.
        kinds: of labels that are judged; all where empty. What frames alone carry needs no boxes.

    Raises:
        UsageError: if there is no such split.
        InputError: if that part holds no truth at all, or no box in the frames that are judged.
    """
    whole = split is None or (split == "all" and split not in _splits(scenes))
    part = scenes if whole else scenes.split(str(split))
    if part.boxes.is_empty() and part.frame_labels.is_empty():
        where = f"split {split}" if split else "the truth"
        raise InputError(
            f"{where} holds no boxes and no labels of frames: there is nothing to judge against",
            hint=f"{_named_splits(scenes)}; look into it with `roadaware read`",
        )
    if tuple(kinds) != _OF_FRAMES:
        check_truth(part.with_tables(rejected=scenes.rejected), split)
    return part


def open_predictions(
    path: Path,
    scenes: Scenes | None,
    size_px: tuple[int, int],
    videos: Sequence[str] | None = None,
    images: Path | None = None,
) -> EventPredictions:
    """Predictions in any of the forms.

    Args:
        path: file or folder.
        scenes: names the labels, and the videos' sizes.
        size_px: (width, height) of the images that the boxes of detection files are in.
        videos: those of which detection files are read; all where None.
        images: the COCO annotations that list images and categories, for COCO results.

    Raises:
        InputError: if it cannot be read, or is none of the forms.
    """
    form = detect_form(path)
    left = LeftOut({} if scenes is None else count_refusals(scenes, "the truth"))
    if form == "saved":
        return EventPredictions(path, form, loading.open_saved_predictions(path), left)
    with show_progress(f"reading {path.name}") as progress, log_step(f"reading {path}"):
        if form == "detections" and videos is not None and scenes is not None:
            found = find_unread(path, videos, [str(video) for video in scenes.videos["video"].to_list()])
            left.findings |= found.findings
            left.elsewhere |= found.elsewhere
        try:
            tables = _read(path, form, scenes, size_px, videos, images, progress)
        except InputError as error:
            raise _convert_error(error, scenes) from error
    if len(tables.rejected) and tables.boxes.is_empty():
        first = f"nothing can be taken; the first: {describe_refusal(tables)}"
        raise _convert_error(InputError(first, where=str(path), hint=describe_remedy(tables)), scenes)
    left.findings |= count_refusals(tables, path.name)
    return EventPredictions(path, form, tables, left)


def _convert_error(error: InputError, scenes: Scenes | None) -> InputError:
    """The same error in terms of the command line: --truth where it lacks, or the truth where that is odd."""
    if scenes is None:
        if "scenes" in (error.hint or ""):
            return InputError(error.message, where=error.where, hint="Say --truth TRUTH, which names them.")
        return error
    odd = [warning for warning in list_warnings(scenes) if any(kind in warning for kind in _LABEL_LISTS)]
    hint = "\n  ".join([*([error.hint] if error.hint else []), *(f"It may be the truth: {o}" for o in odd)])
    if NO_SCORE in error.message:
        hint = PER_CENT
    return InputError(error.message, where=error.where, hint=hint or None)


def detect_form(path: Path) -> Form:
    """What a path holds, by what is there and by its name.

    Raises:
        InputError: if there is nothing, or nothing of ours.
    """
    loading.require_path(path, f"Give {_FORMS}.")
    if path.is_dir():
        if is_saved(path):
            return "saved"
        return "mot" if any(path.glob("*.txt")) and not any(path.glob("*/*.pkl")) else "detections"
    if path.suffix.lower() in _SUFFIXES:
        return _SUFFIXES[path.suffix.lower()]
    raise InputError(
        f"expected predictions of road events, found a file that ends in '{path.suffix}'",
        where=str(path),
        hint=f"Give {_FORMS}.",
    )


def parse_size(text: str, option: str = "--size") -> tuple[int, int]:
    """A size such as 682x512, as (width, height) in pixels.

    Args:
        text: as it was given.
        option: by which it was given, for the error.

    Raises:
        UsageError: if it is none.
    """
    sides = text.lower().split("x")
    fits = len(sides) == 2 and all(side.isascii() and side.isdecimal() and len(side) < 9 for side in sides)
    if not fits or not all(0 < int(side) <= _MOST_PIXELS for side in sides):
        raise UsageError(
            f"{option} needs WIDTHxHEIGHT in pixels, such as {NETWORK_SIZE}, up to {_MOST_PIXELS:,} each; got "
            f"{text[:40]!r}"
        )
    return int(sides[0]), int(sides[1])


def infer_dataset(predictions: Predictions) -> EventSet:
    """Whose published parameters fit: those of UCF101-24 for 24 classes and no others, else those of ROAD."""
    classes = [
        len(labels)
        for kind, labels in get_score_layout(predictions.meta, "boxes").kinds.items()
        if kind != "agentness"
    ]
    return "ucf24" if classes == [_UCF24_CLASSES] else "road"


def map_native_kinds(scenes: Scenes) -> dict[str, str]:
    """What the dataset's own files call each kind, where that differs from our name."""
    named = scenes.meta.notes.get("native_kinds", {})
    return {str(ours): str(theirs) for ours, theirs in named.items()} if isinstance(named, dict) else {}


def convert_kinds(kinds: Sequence[str], scenes: Scenes) -> tuple[str, ...]:
    """Kinds of labels under our names, whether they were given so or as the dataset's files call them."""
    ours = {**HOUSE_NAMES, **{theirs: ours for ours, theirs in map_native_kinds(scenes).items()}}
    known = scenes.meta.vocabularies
    return tuple(dict.fromkeys(kind if kind in known else ours.get(kind, kind) for kind in kinds))


def assign_labels(predictions: Predictions, scenes: Scenes) -> Predictions:
    """Predictions whose labels were only numbered, with the labels of the truth.

    Raises:
        InputError: if there are as many numbered labels as the truth has none.
    """
    named = dict(predictions.meta.vocabularies)
    for kind, labels in predictions.meta.vocabularies.items():
        theirs = scenes.meta.vocabularies.get(kind)
        if theirs is None or labels == theirs or labels != tuple(f"{kind} {n}" for n in range(len(labels))):
            continue
        if len(labels) != len(theirs):
            raise InputError(
                f"the predictions number {len(labels)} labels of {kind}, and the truth has {len(theirs)}",
                hint="link or read the detections again with --truth, so that their labels have names",
            )
        named[kind] = theirs
    if named == predictions.meta.vocabularies:
        return predictions
    return predictions.with_tables(meta=replace(predictions.meta, vocabularies=named))


def add_dense_scores(predictions: Predictions) -> Predictions:
    """Predictions whose boxes have scored labels, with these as dense scores, which is what the linker reads."""
    labels = predictions.labels.with_columns(pl.col("kind").cast(pl.String))
    if (
        get_score_layout(predictions.meta, "boxes").width
        or labels.is_empty()
        or "score" not in labels.columns
    ):
        return predictions
    kinds = labels["kind"].unique(maintain_order=True).to_list()
    meta = set_score_layout(predictions.meta, "boxes", kinds)
    columns = get_score_layout(meta, "boxes")
    scores = np.zeros((len(predictions.boxes), columns.width), dtype=np.float32)
    rows = predictions.boxes.select("box").with_row_index("at")
    held = labels.join(rows, on="box")
    first = held["kind"].replace_strict({kind: columns.columns(kind).start for kind in kinds})
    scores[held["at"].to_numpy(), (first + held["label"]).to_numpy()] = held["score"].to_numpy()
    dense = pl.Series("scores", scores, dtype=pl.Array(pl.Float32, columns.width))
    return predictions.with_tables(boxes=predictions.boxes.with_columns(dense), meta=meta)


def _read(
    path: Path,
    form: Form,
    scenes: Scenes | None,
    size_px: tuple[int, int],
    videos: Sequence[str] | None,
    images: Path | None,
    progress: Progress,
) -> Predictions:
    if form == "detections":
        return read_detections(path, scenes, size=size_px, videos=videos, progress=progress)
    if scenes is None:
        raise UsageError(f"{path} does not name its labels: say --truth TRUTH, the annotations it is about")
    if form == "tubes":
        return read_tubes(path, scenes, size=size_px, progress=progress)
    if form == "coco":
        # COCO results; images are frames as the annotation file says, or by folder where that fits the truth.
        if images is None:
            raise UsageError(
                f"{path} has numbers for images and categories: say --images FILE, the COCO annotations that "
                "list them"
            )
        index = read_image_index(images, scenes)
        kinds = scenes.meta.vocabularies
        kind = next((kind for kind, labels in kinds.items() if set(index.labels) <= set(labels)), "agent")
        return read_results(path, replace(index, kind=kind))

    files = {file.stem: file for file in sorted(path.glob("*.txt"))} if path.is_dir() else {path.stem: path}
    if len(files) == len(scenes.videos) == 1:
        files = {str(scenes.videos["video"][0]): next(iter(files.values()))}
    return read_tracks(files, scenes)


def read_image_index(path: Path, scenes: Scenes) -> CocoIndex:
    """The images and categories of a COCO file: frames as it says, or by folder where it names no video of the truth.

    Args:
        path: the file; its annotations are not needed.
        scenes: the truth.

    Raises:
        InputError: if the file is damaged, or lists videos that the truth lacks and its images are in no folders.
    """
    index = read_index(path)
    known = {str(video) for video in scenes.videos["video"].to_list()}
    if known & {video for video, _ in index.images.values()}:
        return index
    by, first = choose_by(read_json_document(path), to_printable(str(path)))
    return read_index(path, by="folders" if by == "video_ids" else by, first_frame=first)


def _select_reader(path: Path, dataset: EventSet | None) -> str:
    """The reader: that of the dataset, unless the file is an export of VoTT."""
    if path.suffix.lower() == ".json" and path.is_file():
        with path.open("rb") as file:
            start = file.read(_SNIFFED)
        if any(word in start for word in _VOTT) and b'"db"' not in start:
            return "vott"
    return dataset or ("ucf24" if path.suffix.lower() == ".pkl" else "road")


def _splits(scenes: Scenes) -> list[str]:
    if "splits" not in scenes.videos.columns:
        return []
    return [str(name) for name in scenes.videos["splits"].explode().drop_nulls().unique().sort().to_list()]


def _named_splits(scenes: Scenes) -> str:
    names = _splits(scenes)
    return f"its splits are {', '.join(names)}" if names else "it names no splits"


def open_box_predictions(
    path: Path,
    reader: str | None = None,
    truth: Scenes | None = None,
    index: CocoIndex | None = None,
    option: Sequence[str] = (),
    columns: Sequence[str] = (),
) -> tuple[Predictions, str]:
    """Predictions, and what they were taken for; "" for saved tables.

    Args:
        path: saved tables, a file or a folder.
        reader: a reader that reads predictions, or coco (results), mot, ava, mmaction2 (proposals),
            label_studio, or detections of ROAD (default: by the content).
        truth: the annotations, which name frames and classes where predictions do not.
        index: images and categories of the annotations where they are COCO JSON, by whose numbers results go.
        option: of the reader, such as fps=25.
        columns: of csv, such as frame=f.

    Raises:
        UsageError: if they cannot be read without the annotations, or options were given that the reader does not have.
        InputError: if they cannot be read.
    """
    require_path(path)
    if is_saved(path):
        if option or columns:
            raise UsageError(f"{path} holds saved tables; --option and --columns are of files of others")
        return open_saved_predictions(path), ""
    if reader is None:
        try:
            reader = detect_dataset_format(path)
        except InputError:
            reader = ""
        if reader not in ("ava", "label_studio") and not (reader in READERS and READERS[reader].predicted):
            form = detect_form(path)
            reader = "detections" if form in ("detections", "tubes") else form
    title = READERS[reader].title if reader in READERS else "detections or tubes of ROAD"
    if reader in READERS and READERS[reader].predicted:
        options = add_columns(reader, parse_reader_options(reader, option) if option else {}, columns)
        with show_progress(f"reading {reader}") as progress:
            return read_predictions(reader, path, progress=progress, **options), title
    if option or columns:
        raise UsageError(
            f"--option and --columns are not of predictions of {reader}\n  If only classes are called otherwise, read "
            "the annotations with `--option rename=THEIRS=YOURS`."
        )
    if reader == "mot":
        files = (
            {each.stem: each for each in sorted(path.glob("*.txt"))} if path.is_dir() else {path.stem: path}
        )
        if not files:
            raise UsageError(f"{path} holds no text of MOT, such as VIDEO.txt")
        return read_tracks(files, truth), title
    if reader == "label_studio":
        found = label_studio.read_predictions(path)
        # A region has one score, which is that of each of its boxes.
        scores = (
            found.tubes.select("tube", "score")
            if "score" in found.tubes.columns
            else found.tubes.select("tube", score=None)
        )
        return found.with_tables(boxes=found.boxes.drop("score", strict=False).join(
            scores, on="tube", how="left", maintain_order="left")), title  # fmt: skip
    if reader == "mmaction2":
        proposed = read_person_boxes(path, truth)
        names = proposed.boxes["video"].cast(pl.String).unique(maintain_order=True)
        # Shares of the image and seconds, where no annotations say more.
        videos = (
            pl.DataFrame({"video": names}).with_columns(width_px=1, height_px=1, fps=pl.lit(1, pl.Float32))
            if truth is None
            else truth.videos.filter(pl.col("video").cast(pl.String).is_in(names.implode()))
        )
        return proposed.with_tables(videos=videos), "MMAction2's proposals"
    if reader not in ("coco", "ava", "detections"):
        known = [name for name, each in READERS.items() if each.predicted]
        raise UsageError(
            f"no predictions are read from {reader}; they are from {', '.join(known)}, mot, coco, ava, mmaction2, "
            "label_studio, detections"
        )
    if truth is None:
        raise UsageError(
            f"{path} does not name its frames and classes: say --truth TRUTH, the annotations it is about"
        )
    if reader == "ava":
        return read_action_predictions(path, truth), title
    if reader == "coco":
        return read_results(path, index or build_scenes_index(truth, choose_kind(truth) or "agent")), title
    return open_predictions(path, truth, parse_size(NETWORK_SIZE)).tables, title
