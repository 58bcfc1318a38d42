"""Mistakes that a whole file of predictions makes, found by how much better the corrected rows fit the ground truth.

Names of videos first, then corners and frames together (a wrong frame hides a wrong corner), then scores, then classes,
and tracks at last: each is looked for in the rows as the corrections before it leave them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt
import polars as pl

from roadaware.analysis.doctor.diagnosis import Diagnosis
from roadaware.arrays import Bools, Floats, Ints
from roadaware.formats.raw_predictions import RawPredictions
from roadaware.geometry.boxes import paired_iou
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Scenes

_MOST_ROWS, _MANY = 3000, 1.5
"""Rows that are compared, those with the highest scores: a mistake that is made everywhere shows in them. Rows are many
where they are so many times as many as true boxes."""
_SHIFTS, _NEAR = (-50, -25, -12, -6, -3, -1, 1, 3, 6, 12, 25, 50), 13
_UNITS = ((1, 1), (100, 100))
_SIZES = (
    *((682, 512), (320, 240), (416, 416), (512, 512), (640, 360), (640, 384), (640, 480), (640, 640)),
    *((960, 540), (1000, 1000), (1024, 1024), (1280, 720), (1280, 960), (1920, 1080), (1920, 1280)),
)
"""Images that people give to networks; beside them shares of the image and per cent."""
_LEAST, _CLEARLY, _TIMES = 0.15, 0.05, 1.25
"""Another reading has to reach this mean IoU, and to raise it by so much and so many times."""
_SHIFT_GAIN, _SHIFT_Z, _SHIFT_TIMES = 0.005, 3.0, 2.0
"""Frames are called late where that raises the mean IoU by so much, and so many standard errors; where too few boxes meet a
true one to say anything, as of noisy detections of which many are missing, also so many times."""
_LAG_LEAST, _LAG_Z = 3, 2.0
"""Boxes are off by whole frames where so many moving objects say so, by over half a frame and so many standard errors."""
_MATCHED, _FEW, _SHARE = 0.5, 20, 0.1
"""Rows meet a true box by half; fewer of them than these, or a smaller share of all, say nothing."""
_INVERTED = 0.25
"""Area under the ROC curve of the score for having met a true box, below which high scores are the bad ones."""
_LABEL_TIMES, _LABEL_LEAST, _OBJECTS = 1.5, 0.2, 8
"""Another numbering has to be right so many times as often, in this share of cases, of so many objects at least."""
_OUTSIDE = 0.05
_UPRIGHT, _NEAREST, _FARTHEST = 0.9, 0.6, 1.7
"""So many boxes of a reading have to be upright, and they reach between these times as far as the true ones."""
_ROUNDING = 1e-6
_MOST_VIDEOS = 40
_REUSED, _REUSED_LEAST, _SEEN = 0.1, 3, 3
"""Ids are called reused where there are so many more objects than ids, as a share and at least; an object is seen so
often."""
_CLIP_LEAST, _CLIP_SHARE, _CLIP_GAP = 3, 2 / 3, 4
"""Ids begin anew at a frame where so many boxes at least, and more than this share of those that go on from the frame
before, have another id than there; tracks go on over it that end and begin in so many frames on either side."""
_CLIP_IOU, _CLIP_RIVAL, _CLIP_MET, _CLIP_MET_NEW, _CLIP_STEP = 0.5, 0.5, 0.5, 0.8, 4
"""What goes on from the frame before overlaps by this IoU with where its track would be then, and with no other box by that
share of it; so much of the frame with fewer boxes has to go on, and so much if the ids that follow are none of before. How
a track moves is told by its box at most so many frames away."""
_REACH, _MOST_GAP = 1.0, 60
"""A box is within so many of its sizes of where its track was a frame before; tracks end after so many frames without one."""


@dataclass(frozen=True, eq=False)
class TrueBoxes:
    """What predictions are compared with, in the words of their file.

    Args:
        boxes: `video`, `frame` and corners in pixels, one row for each true box, whatever its labels.
        objects: (rows of boxes) the object that a box is of: they count alike, however long they are seen, and what is
            fitted to half of them is judged on the others.
        labels: (rows of boxes) the class numbers that a box has in the file; empty where classes are left aside.
        columns: kind to its labels in the order of columns of scores, and `kinds` of each box, for rows that score
            all classes: kind to (rows of boxes) the labels' places.
        fps: of the videos, where they say.
    """

    boxes: pl.DataFrame
    objects: Ints
    labels: Sequence[frozenset[int]] = ()
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[str, Sequence[frozenset[int]]] = field(default_factory=dict)
    fps: tuple[float, ...] = ()

    @cached_property
    def velocity_px(self) -> Floats:
        """(rows of boxes, 2) pixels a frame by which the middle of the object moves, from its boxes in the frames beside;
        NaN where it has none there."""
        corners, frame = self.boxes.select(CORNERS).to_numpy(), self.boxes["frame"].to_numpy()
        middle, order = (corners[:, :2] + corners[:, 2:]) / 2, np.lexsort((frame, self.objects))
        before, after = order[:-1], order[1:]
        next_one = (self.objects[before] == self.objects[after]) & (frame[after] - frame[before] == 1)
        before, after = before[next_one], after[next_one]
        moved, count = np.zeros((len(frame), 2)), np.zeros((len(frame), 1))
        for end in (before, after):
            moved[end] += middle[after] - middle[before]
            count[end] += 1
        with np.errstate(invalid="ignore"):
            found: Floats = moved / np.where(count > 0, count, np.nan)
        return found


@dataclass(frozen=True, eq=False)
class Correction:
    """One mistake, in words, and how it is undone.

    Args:
        finding: what is the matter, what shows it, what to do.
        apply: the rows as they should be.
    """

    finding: Diagnosis
    apply: Callable[[RawPredictions], RawPredictions]


def collect_true_boxes(
    scenes: Scenes,
    *,
    images: Mapping[tuple[str, int], int] | None = None,
    numbers: tuple[str, Mapping[int, int]] | None = None,
    columns: Sequence[str] = (),
) -> TrueBoxes:
    """The true boxes as a file of predictions should name them.

    Args:
        scenes: the ground truth.
        images: (video, frame) to the image's number, where files number images and do not name videos.
        numbers: kind of the classes that rows name, and place in its vocabulary to the file's number.
        columns: kinds of classes that rows score, in the order of columns.
    """
    # Boxes without a track are told apart by their frames.
    track = pl.col("tube") if "tube" in scenes.boxes.columns else pl.lit(None, pl.Int64)
    boxes = scenes.boxes.with_columns(
        object=pl.coalesce(track, -1 - pl.struct("video", "frame").rank("dense").cast(pl.Int64))
    )
    boxes = boxes.select(
        "box",
        "object",
        pl.col("video").cast(pl.String),
        "frame",
        *(pl.col(c).cast(pl.Float64) for c in CORNERS),
    )
    if images is not None:
        table = pl.DataFrame(
            [(video, frame, image) for (video, frame), image in images.items()],
            schema={"video": pl.String, "frame": boxes.schema["frame"], "image": pl.Int64},
            orient="row",
        )
        boxes = boxes.join(table, on=["video", "frame"]).with_columns(video=pl.lit(""), frame=pl.col("image"))
    named = scenes.labels.with_columns(pl.col("kind").cast(pl.String))

    def collect(kind: str, change: Mapping[int, int] | None) -> list[frozenset[int]]:
        rows = named.filter(pl.col("kind") == kind).group_by("box").agg("label")
        held = dict(rows.select("box", "label").iter_rows())
        return [
            frozenset(
                change[n] if change is not None else n
                for n in held.get(box, ())
                if change is None or n in change
            )
            for box in boxes["box"]
        ]

    videos = scenes.videos
    rates = videos["fps"].drop_nulls().unique().sort().to_list() if "fps" in videos.columns else []
    vocabularies = scenes.meta.vocabularies
    return TrueBoxes(
        boxes.select("video", "frame", *CORNERS),
        boxes["object"].rank("dense").to_numpy().astype(np.int64),
        collect(*numbers) if numbers is not None else (),
        {kind: vocabularies[kind] for kind in columns},
        {kind: collect(kind, None) for kind in columns},
        tuple(float(rate) for rate in rates[:3]),
    )


def find_corrections(
    raw: RawPredictions,
    truth: TrueBoxes,
    accept: Callable[[RawPredictions], bool] = lambda _: True,
    *,
    boxes_alone: bool = False,
) -> tuple[list[Correction], RawPredictions]:
    """The mistakes of a file, in the order in which they are undone, and its rows without them.

    Args:
        raw: the rows as they stand.
        truth: what they are compared with.
        accept: says of rows without one more mistake whether they are any better; a correction that does not help is none.
        boxes_alone: whether only corners and frames are looked at, where names, scores and classes are those of something
            else than boxes.
    """
    found: list[Correction] = []
    if not len(raw.video) or truth.boxes.is_empty():
        return found, raw
    # High scores of a wrong class tell nothing of rows that name one class; rows that score all classes are ranked by them.
    last = (_find_inversion, _find_classes) if raw.label is None else (_find_classes, _find_inversion)
    tracks = (_find_exchanged_videos, _find_places, _find_unscored, _find_scale, _find_tracks)
    looks = (_find_names, *(tracks if raw.tracks is not None else (_find_places, _find_scale, *last)))
    for look in (_find_places,) if boxes_alone else looks:
        for correction in look(raw, truth):
            corrected = correction.apply(raw)
            if accept(corrected):
                found.append(correction)
                raw = corrected
    return found, raw


# Names of videos.

NORMALISED: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("without their folders", lambda name: name.replace("\\", "/").rpartition("/")[2]),
    ("without their endings", lambda name: re.sub(r"\.[A-Za-z0-9]{2,4}$", "", name)),
    (
        "without folders and endings",
        lambda name: re.sub(r"\.[A-Za-z0-9]{2,4}$", "", name.replace("\\", "/").rpartition("/")[2]),
    ),
    (
        "in letters and digits alone",
        lambda name: re.sub(
            r"[^a-z0-9]",
            "",
            re.sub(r"\.[A-Za-z0-9]{2,4}$", "", name.replace("\\", "/").rpartition("/")[2]).lower(),
        ),
    ),
)


def _find_names(raw: RawPredictions, truth: TrueBoxes) -> list[Correction]:
    """Videos that are named otherwise."""
    mine, theirs = (list(dict.fromkeys(table.to_list())) for table in (raw.video, truth.boxes["video"]))
    found = match_names("Videos", mine, theirs)
    return [] if found is None else [Correction(found[0], partial(_rename_videos, names=found[1]))]


def match_names(
    what: str, mine: Sequence[str], theirs: Sequence[str], known: Callable[[str], bool] | None = None
) -> tuple[Diagnosis, dict[str, str]] | None:
    """What names should be that half of a file has otherwise, by what spellings differ in; None where they are known.

    Args:
        what: the things, in the plural.
        mine: names in the file, each once.
        theirs: names in the ground truth, each once.
        known: whether the ground truth understands a name of the file (default: has it).
    """
    held = set(theirs)
    if sum(known(name) if known is not None else name in held for name in mine) * 2 >= len(mine):
        return None
    for says, normalise in NORMALISED:
        places: dict[str, list[str]] = {}
        for name in theirs:
            places.setdefault(normalise(name), []).append(name)
        renamed = {
            name: places[normalise(name)][0] for name in mine if len(places.get(normalise(name), ())) == 1
        }
        if len(renamed) * 2 >= len(mine) and len(set(renamed.values())) == len(renamed):
            one = next(name for name in mine if renamed.get(name, name) != name)
            finding = Diagnosis(
                "names",
                "wrong",
                f"{what} have other names than in the ground truth; {says} they are the same.",
                f"{len(renamed)} of {len(mine)} are known then: {one!r} is {renamed[one]!r}",
                f"Name {what.lower()} as the ground truth does: {renamed[one]!r}.",
            )
            return finding, renamed
    return None


def _rename_videos(rows: RawPredictions, names: Mapping[str, str]) -> RawPredictions:
    return rows.rename(names)


def _find_exchanged_videos(raw: RawPredictions, truth: TrueBoxes) -> list[Correction]:
    """Videos whose boxes fit those of others, whatever they are called."""
    mine, theirs = (list(dict.fromkeys(table.to_list())) for table in (raw.video, truth.boxes["video"]))
    if len(theirs) < 2 or max(len(mine), len(theirs)) > _MOST_VIDEOS:
        return []
    some = [np.flatnonzero((raw.video == name).to_numpy())[:_MOST_ROWS] for name in mine]

    def measure(places: Sequence[_Place]) -> Floats:
        """(places, mine, theirs) how well boxes, read in each way, fit those of each video."""
        fits = np.zeros((len(places), len(mine), len(theirs)))
        for there, name in enumerate(theirs):
            renamed = raw.with_changes(video=pl.Series([name] * len(raw.video), dtype=pl.String))
            for at, rows in enumerate(some):
                held = _Compared(renamed, truth, rows)
                fits[:, at, there] = [held.mean(place) for place in places]
        return fits

    (fit,) = measure([_Place(sides=raw.holds_sides)])
    if fit.max() < _LEAST:
        # Boxes in another form fit nowhere as they stand, whatever the videos are called.
        fits = measure(_list_readings(_Compared(raw, truth, _select_rows(raw)), sides=raw.holds_sides))
        fit = fits[fits.max(axis=2).sum(axis=1).argmax()]
    pairs = _assign(fit)
    names = {mine[a]: theirs[b] for a, b in pairs if mine[a] != theirs[b] and fit[a, b] >= _LEAST}
    as_is = np.mean([fit[at, theirs.index(name)] if name in theirs else 0.0 for at, name in enumerate(mine)])
    best = float(sum(fit[a, b] for a, b in pairs)) / len(mine)
    # A video that is left without its boxes would lose what it has: names are only moved in whole circles, or to free ones.
    free = set(theirs) - set(mine)
    if not names or not _is_clear(best, float(as_is)) or not set(names.values()) <= {*names, *free}:
        return []
    listed = ", ".join(f"{name!r} is {known!r}" for name, known in list(names.items())[:4])
    finding = Diagnosis(
        "videos",
        "wrong",
        "Boxes are those of other videos than their names say.",
        f"boxes meet true ones with a mean IoU of {as_is:.2f} as named, and {best:.2f} if {listed}",
        f"Name videos as the ground truth does: {listed}.",
    )
    return [Correction(finding, partial(_rename_videos, names=names))]


# Corners and frames.

_Form = tuple[str, str, Callable[[Floats], Floats]]
_FORMS: dict[str, _Form] = {
    "corners": ("", "", lambda box: box),
    "sides": (
        "Boxes hold width and height where the second corner is due.",
        "Write x1, y1, x1 + width, y1 + height.",
        lambda box: np.hstack([box[:, :2], box[:, :2] + box[:, 2:]]),
    ),
    "centre": (
        "Boxes hold their centre, width and height where corners are due.",
        "Write x - width / 2, y - height / 2, x + width / 2, y + height / 2.",
        lambda box: np.hstack([box[:, :2] - box[:, 2:] / 2, box[:, :2] + box[:, 2:] / 2]),
    ),
    "exchanged": ("Boxes have x and y exchanged.", "Write x before y.", lambda box: box[:, [1, 0, 3, 2]]),
    "exchanged sides": (
        "Boxes hold y, x, height and width where corners are due.",
        "Write x1, y1, x1 + width, y1 + height.",
        lambda box: np.hstack([box[:, [1, 0]], box[:, [1, 0]] + box[:, [3, 2]]]),
    ),
}
"""Ways to write four numbers, and what makes corners of them."""
_SIDE_FORMS: dict[str, _Form] = {
    "corners": ("", "", lambda box: box),
    # What is due is left, top, width, height; a second corner in their place was read twice too far.
    "from corners": (
        "Boxes hold their second corner where width and height are due.",
        "Write left, top, x2 - x1, y2 - y1.",
        lambda box: np.hstack([box[:, :2], box[:, 2:] - box[:, :2]]),
    ),
    "centre": (
        "Boxes hold their centre where left and top are due.",
        "Write x - width / 2, y - height / 2, width, height.",
        lambda box: box - np.tile((box[:, 2:] - box[:, :2]) / 2, 2),
    ),
    "exchanged": ("Boxes have x and y exchanged.", "Write x before y.", lambda box: box[:, [1, 0, 3, 2]]),
}
"""The same of a form that holds sides."""


@dataclass(frozen=True)
class _Place:
    """How corners and frames of a file are read: form, size of the images of its corners (None: as due), and time."""

    form: str = "corners"
    size: tuple[float, float] | None = None
    shift: int = 0
    rate: float | None = None
    sides: bool = False

    @property
    def words(self) -> _Form:
        """What is the matter, what to do, and what makes corners of the numbers."""
        return (_SIDE_FORMS if self.sides else _FORMS)[self.form]

    def convert(self, corners: Floats, unit_px: Floats, image_px: Floats, first_pixel: float = 0.0) -> Floats:
        """(n, 4) corners in the file's due unit."""
        corners = self.words[2](corners)
        if self.form == "from corners":
            # A second corner counts from the first pixel, as the first one does; a width does not.
            corners = corners - np.array([0.0, 0.0, first_pixel, first_pixel])
        if self.size is None:
            return corners
        # unit_px brings due units to the truth's pixels; a pixel of an image of `size` is image_px / size of those.
        scaled: Floats = corners * np.tile(image_px / np.array(self.size) / unit_px, 2)
        return scaled

    def move(self, frame: Ints, first: int) -> Ints:
        """(n,) the frames that are meant."""
        if self.rate is not None:
            frame = np.round((frame + first) * self.rate).astype(np.int64)
        return frame + self.shift


def _find_places(raw: RawPredictions, truth: TrueBoxes) -> list[Correction]:
    """Corners in another form or unit, and frames that are late, early or seconds."""
    some = _select_rows(raw)
    held = _Compared(raw, truth, some)
    sides = raw.holds_sides
    readings = _list_readings(held, sides=sides)
    times = [(shift, None) for shift in (0, *_SHIFTS)] + [
        # Seconds are frames from 0, or from 1, by the rate.
        (shift, rate)
        for shift in ((0, -1) if raw.tracks is not None else (0,))
        for rate in truth.fps
        if rate > 1
    ]
    tried = [replace(each, shift=shift, rate=rate) for each, (shift, rate) in product(readings, times)]
    best = _climb(held, max(tried, key=held.mean))
    still = _Place(shift=best.shift, rate=best.rate, sides=sides)
    boxes_differ = (best.form, best.size) != ("corners", None)
    if boxes_differ and not (_is_clear(held.mean(best), held.mean(still)) and held.share(best) >= _SHARE):
        best = _climb(held, max((p for p in tried if (p.form, p.size) == ("corners", None)), key=held.mean))
        boxes_differ = False
    found: list[Correction] = []
    if boxes_differ:
        fits = f"{held.mean(still):.2f} as written and {held.mean(best):.2f} if read so"
        evidence = f"boxes meet true ones with a mean IoU of {fits}"
        says, remedy = _describe_boxes(best, held.due)
        place = replace(best, shift=0, rate=None)
        found.append(
            Correction(
                Diagnosis("boxes", "wrong", says, evidence, remedy),
                lambda rows: rows.with_changes(
                    corners=place.convert(rows.corners, rows.unit_px, rows.image_px, rows.first_pixel)
                ),
            )
        )
    moved = replace(best, shift=0, rate=None)
    said = held.share(best) >= _SHARE or held.mean(best) >= _SHIFT_TIMES * held.mean(moved)
    surely = held.is_better(best, moved) or (best.rate is None and held.lags(moved, best.shift))
    if (best.shift or best.rate is not None) and said and surely:
        fits = f"{held.mean(moved):.3f} as written and {held.mean(best):.3f} if moved"
        evidence = f"boxes meet true ones with a mean IoU of {fits}"
        says = f"{raw.moments} are {abs(best.shift)} {'late' if best.shift < 0 else 'early'}."
        remedy = f"Add {best.shift:+d} to all of them."
        if best.rate is not None:
            says, remedy = "Frames are seconds.", f"Multiply them by the frame rate, {best.rate:g}."
            if raw.tracks is not None:
                remedy = f"{remedy[:-1]}, and {'count from 1' if best.shift == 0 else 'round'}."
        change = partial(best.move, first=held.first)
        if lost := int((change(raw.frame) < 0).sum()):
            evidence += f"; {lost:,} boxes then lie before the first frame and are left out"
        finding = Diagnosis("frames", "wrong", says, evidence, remedy)
        found.append(Correction(finding, lambda rows: rows.move(change)))
    return found


def _list_readings(held: _Compared, *, sides: bool) -> list[_Place]:
    """The ways in which corners may be meant: as they stand, and those in which they are upright and fill the image."""
    readings = [_Place(sides=sides)]
    for size in (None, *held.list_sizes()):
        readings += [
            place
            for name in (_SIDE_FORMS if sides else _FORMS)
            if (place := _Place(name, size, sides=sides)) not in readings and held.is_plausible(place)
        ]
    return readings


def _climb(held: _Compared, place: _Place) -> _Place:
    """The best shift near the one that a coarse search has found."""
    if place.rate is not None:
        return place
    near = [replace(place, shift=place.shift + step) for step in range(-_NEAR, _NEAR + 1)]
    best = max(near, key=held.mean)
    # Nothing is moved where not moving is as good.
    return place if held.mean(place) >= held.mean(best) else best


def _is_clear(fit: float, as_is: float) -> bool:
    return fit >= _LEAST and fit - as_is >= _CLEARLY and fit >= _TIMES * as_is


def _describe_boxes(place: _Place, due: tuple[float, float]) -> tuple[str, str]:
    says, remedy = place.words[:2]
    if place.size is None:
        return says, remedy
    width, height = place.size
    if (width, height) == (1, 1):
        unit = "shares of the image"
    elif (width, height) == (100, 100):
        unit = "per cent of the image"
    else:
        unit = f"pixels of images of {width:g}x{height:g}"
    wanted = "shares of the image" if due == (1, 1) else f"pixels of images of {due[0]:g}x{due[1]:g}"
    text = f"Boxes are {unit} where {wanted} are due."
    factors = f"Multiply x by {due[0] / width:.6g} and y by {due[1] / height:.6g}."
    return f"{says} {text}".strip(), f"{remedy} {factors}".strip()


class _Compared:
    """The overlap of some rows with the true boxes, read in any way.

    Where there are many more rows than true boxes, most of them meet nothing however they are read: then the best
    overlap of each true box is what counts, else that of each row.

    Args:
        raw: the rows.
        truth: the true boxes.
        some: the numbers of the rows that are compared.
    """

    def __init__(self, raw: RawPredictions, truth: TrueBoxes, some: Ints) -> None:
        self.truth = truth
        self.video = raw.video.gather(some)
        self.frame, self.corners, self.unit_px = raw.frame[some], raw.corners[some], raw.unit_px[some]
        self.image_px, self.first_pixel = raw.image_px[some], raw.first_pixel
        width, height = np.median(self.image_px / self.unit_px, axis=0)
        self.due = (round(float(width), 6), round(float(height), 6))
        # Seconds are told from the number that the file gives to frame 0, which is 1 where frames count from 1.
        self.first = 1 if len(self.frame) and raw.frame.min() >= -1 and raw.label is None else 0
        self._boxes = truth.boxes[list(CORNERS)].to_numpy()
        self._known = np.flatnonzero(truth.boxes["video"].is_in(self.video.unique().implode()).to_numpy())
        self._by_truth = len(some) > _MANY * len(self._known) > 0
        self._pairs: dict[tuple[int, float | None], tuple[Ints, Ints]] = {}
        self._values: dict[_Place, tuple[Floats, Floats]] = {}

    def list_sizes(self) -> list[tuple[float, float]]:
        """Sizes of images that corners may be pixels of, other than the one that is due."""
        sizes = [(float(w), float(h)) for w, h in (*_UNITS, *_SIZES, np.median(self.image_px, axis=0))]
        return [size for size in dict.fromkeys(sizes) if size != self.due]

    def is_plausible(self, place: _Place) -> bool:
        """Whether the boxes then are upright, and fill the image rather than a corner of it or far beyond."""
        boxes = place.convert(self.corners, self.unit_px, self.image_px, self.first_pixel) * np.tile(
            self.unit_px, 2
        )
        with np.errstate(invalid="ignore"):
            upright = (boxes[:, 2] >= boxes[:, 0]) & (boxes[:, 3] >= boxes[:, 1])
        if upright.mean() < _UPRIGHT:
            return False
        reach = np.nanquantile(boxes[:, 2:], 0.95, axis=0)
        ratio = reach / np.maximum(np.quantile(self._boxes[:, 2:], 0.95, axis=0), 1e-6)
        return bool((ratio <= _FARTHEST).all() and (ratio >= _NEAREST).all())

    def mean(self, place: _Place) -> float:
        """Mean over rows, or true boxes, of the best overlap in the same frame."""
        return float(self.values(place).mean())

    def share(self, place: _Place) -> float:
        """Share of rows, or true boxes, that meet one of the other side by half."""
        return float((self.values(place) >= _MATCHED).mean())

    def is_better(self, one: _Place, other: _Place) -> bool:
        """Whether boxes overlap more in one reading than in another, far beyond chance, by rows or by true boxes.

        Boxes of a frame say nearly the same, and so do neighbouring frames: their mean is taken, and two count as one.
        """
        key = ["video", "frame"]
        frames = (
            pl.DataFrame({"video": self.video, "frame": self.frame}),
            self.truth.boxes.select(key)[self._known],
        )
        for table, mine, others in zip(frames, self._measure(one), self._measure(other), strict=True):
            gain = table.with_columns(gain=pl.Series(mine - others)).group_by(key).agg(pl.col("gain").mean())
            error = gain["gain"].to_numpy().std() / np.sqrt(max(len(gain) / 2, 1))
            if len(gain) >= _FEW and float(gain["gain"].to_numpy().mean()) >= max(
                _SHIFT_GAIN, _SHIFT_Z * error
            ):
                return True
        return False

    def values(self, place: _Place) -> Floats:
        """(rows or true boxes,) the best overlap of each; 0 in frames without another."""
        return self._measure(place)[self._by_truth]

    def _measure(self, place: _Place) -> tuple[Floats, Floats]:
        """(rows,) and (true boxes of the rows' videos,) the best overlap of each."""
        if place not in self._values:
            rows, boxes = self._pair(place)
            best = np.zeros(len(self.frame)), np.zeros(len(self._boxes))
            if len(rows):
                mine = self._convert(place, rows)
                overlap = np.nan_to_num(paired_iou(mine, self._boxes[boxes]), nan=0.0)
                overlap[(mine[:, 2] < mine[:, 0]) | (mine[:, 3] < mine[:, 1])] = 0
                np.maximum.at(best[0], rows, overlap)
                np.maximum.at(best[1], boxes, overlap)
            self._values[place] = best[0], best[1][self._known]
        return self._values[place]

    def lags(self, place: _Place, shift: int) -> bool:
        """Whether boxes lie where moving objects are so many frames before or after, and not in the same frame.

        That is told from few boxes: how far each is off along the way of its object, in frames, where overlap says little.
        """
        rows, boxes = self.match(place)
        way = self.truth.velocity_px[boxes]
        kept = np.isfinite(way).all(axis=1)
        rows, boxes, way = rows[kept], boxes[kept], way[kept]
        mine = self._convert(place, rows)
        off = (mine[:, :2] + mine[:, 2:] - self._boxes[boxes, :2] - self._boxes[boxes, 2:]) / 2
        objects, of = np.unique(self.truth.objects[boxes], return_inverse=True)
        along, squared = (np.bincount(of, (each * way).sum(axis=1), len(objects)) for each in (off, way))
        if len(objects) < _LAG_LEAST or squared.sum() <= 0:
            return False
        lag = along.sum() / squared.sum()
        # Boxes of one object are wrong alike: objects are what is drawn.
        error = (
            np.sqrt(((along - lag * squared) ** 2).sum() * len(objects) / (len(objects) - 1)) / squared.sum()
        )
        return bool(abs(lag - shift) <= 0.5 and abs(lag) >= 0.5 + _LAG_Z * error)

    def _convert(self, place: _Place, rows: Ints) -> Floats:
        """(m, 4) corners of some rows in pixels of the ground truth's images."""
        corners = place.convert(self.corners, self.unit_px, self.image_px, self.first_pixel)[rows]
        scaled: Floats = corners * np.tile(self.unit_px[rows], 2)
        return scaled

    def match(self, place: _Place | None = None) -> tuple[Ints, Ints]:
        """(m,) rows that meet a true box by half, as they stand or read in a way, and (m,) the number of that box."""
        place = place or _Place(sides=False)
        rows, boxes = self._pair(place)
        mine = self._convert(place, rows)
        overlap = np.nan_to_num(paired_iou(mine, self._boxes[boxes]), nan=0.0) if len(rows) else np.zeros(0)
        order = np.lexsort((-overlap, rows))
        first = np.ones(len(order), dtype=np.bool_)
        first[1:] = rows[order][1:] != rows[order][:-1]
        kept = order[first]
        kept = kept[overlap[kept] >= _MATCHED]
        return rows[kept], boxes[kept]

    def _pair(self, place: _Place) -> tuple[Ints, Ints]:
        key = (place.shift, place.rate)
        if key not in self._pairs:
            frame = place.move(self.frame, self.first)
            rows = pl.DataFrame({"video": self.video, "frame": frame}).with_row_index("row")
            boxes = self.truth.boxes.select(
                "video", pl.col("frame").cast(rows.schema["frame"])
            ).with_row_index("at")
            pairs = rows.join(boxes, on=["video", "frame"], maintain_order="left")
            self._pairs[key] = (
                pairs["row"].to_numpy().astype(np.int64),
                pairs["at"].to_numpy().astype(np.int64),
            )
        return self._pairs[key]


def _select_rows(raw: RawPredictions) -> Ints:
    """Numbers of the rows with the highest scores, in the order of the file."""
    first = np.nan_to_num(raw.scores[:, 0], nan=1.0)
    if len(first) <= _MOST_ROWS:
        return np.arange(len(first))
    kept = np.argpartition(-first, _MOST_ROWS)[:_MOST_ROWS]
    return np.sort(kept).astype(np.int64)


# Scores.


def _find_scale(raw: RawPredictions, truth: TrueBoxes) -> list[Correction]:
    """Scores of another scale."""
    from scipy.special import expit

    scores = raw.scores[np.isfinite(raw.scores)]
    if not len(scores):
        return []
    low, high = float(scores.min()), float(scores.max())
    outside = float(np.mean((scores < -_ROUNDING) | (scores > 1 + _ROUNDING)))
    # Whole numbers are classes or persons rather than a scale.
    if outside <= _OUTSIDE or np.all(scores == np.round(scores)):
        return []
    evidence = f"they run from {low:.4g} to {high:.4g}"
    if low < 0:
        says, remedy = "Scores are logits, not probabilities.", "Write the sigmoid of each score."
        finding = Diagnosis("logits", "wrong", says, evidence, remedy)
        return [Correction(finding, lambda rows: rows.rescale(expit))]
    if high <= 100 * (1 + _ROUNDING):
        says, remedy = "Scores are per cent, not probabilities.", "Divide each score by 100."
        finding = Diagnosis("percent", "wrong", says, evidence, remedy)
        return [Correction(finding, lambda rows: rows.rescale(lambda values: values / 100))]
    return []


def _find_inversion(raw: RawPredictions, truth: TrueBoxes) -> list[Correction]:
    """Scores that are low where the model is sure."""
    everything = np.arange(len(raw.video))
    some = everything if len(everything) <= _MOST_ROWS else everything[:: len(everything) // _MOST_ROWS]
    rows, boxes = _Compared(raw, truth, some).match()
    if raw.label is not None and truth.labels:
        named = [
            label in truth.labels[at] for label, at in zip(raw.label[some[rows]].tolist(), boxes, strict=True)
        ]
        rows = rows[np.array(named, dtype=np.bool_)]
    met = np.zeros(len(some), dtype=np.bool_)
    met[rows] = True
    area = measure_auc(np.nan_to_num(raw.scores[some, 0], nan=1.0), met)
    if area is None or area > _INVERTED:
        return []
    finding = Diagnosis(
        "inverted",
        "wrong",
        "Scores are low where boxes are right: costs or distances, not probabilities.",
        f"a row that is right has a higher score than one that is not in {area:.0%} of pairs",
        "Write 1 - score.",
    )
    return [Correction(finding, lambda rows: rows.rescale(lambda values: 1 - values))]


def measure_auc(score: Floats, right: Bools) -> float | None:
    """Share of pairs of a right and a wrong row in which the right one has the higher score; None of too few."""
    n, m = int(right.sum()), int((~right).sum())
    if min(n, m) < _FEW:
        return None
    values, place = np.unique(score, return_inverse=True)
    counts = np.bincount(place, minlength=len(values))
    rank = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return float((rank[right].sum() - n * (n + 1) / 2) / (n * m))


def _find_unscored(raw: RawPredictions, truth: TrueBoxes) -> list[Correction]:
    """Trackers that write -1 for the score they do not have."""
    if not (raw.scores == -1).all():
        return []
    finding = Diagnosis(
        "unscored",
        "wrong",
        "No box has a score: conf is -1, for which rows are refused.",
        f"all {len(raw.scores):,} rows",
        "Write 1 where the tracker keeps no score.",
    )
    return [Correction(finding, lambda rows: rows.with_changes(scores=np.ones_like(rows.scores)))]


# Tracks.


def _find_tracks(raw: RawPredictions, truth: TrueBoxes) -> list[Correction]:
    """Ids that stand for several objects: in one frame, or one after the other; or that are none."""
    if raw.tracks is None or len(raw.tracks) < _FEW:
        return []
    tracks = raw.tracks
    held = tracks >= 0
    named = np.unique(np.stack([_number_videos(raw)[held], tracks[held]]), axis=1)
    loose, n_ids = float(np.mean(~held)), named.shape[1]
    if loose >= _UPRIGHT or n_ids >= _UPRIGHT * len(tracks):
        seen = (
            f"{loose:.0%} of the ids are -1"
            if loose >= _UPRIGHT
            else f"{n_ids:,} ids for {len(tracks):,} boxes"
        )
        finding = Diagnosis(
            "no_tracks",
            "wrong",
            "Boxes are detections: no id stands in two frames.",
            seen,
            "Write the tracker's ids, or link the boxes with `roadaware link`; here they are linked by overlap.",
        )
        return [
            Correction(finding, lambda rows: rows.with_changes(tracks=_link(rows, np.zeros_like(tracks))))
        ]
    clip = _find_clips(raw, tracks)
    # Ids of one clip are others than those of the next.
    apart = np.where(held, tracks * (int(clip.max()) + 1) + clip, -1)
    linked = _link(raw, apart)
    found = []
    # Parts of one id are no interruptions of one object: in a frame together, or far from each other. One that is seen less
    # often may be a box beside the others, or a part of an object that is faster than a track reaches.
    parts, sizes = np.unique(
        np.stack([_number_videos(raw)[held], apart[held], linked[held]]), axis=1, return_counts=True
    )
    n_apart = np.unique(parts[:2], axis=1).shape[1]
    seen_parts = parts[:, sizes >= _SEEN]
    more = seen_parts.shape[1] - np.unique(seen_parts[:2], axis=1).shape[1]
    if more >= max(_REUSED_LEAST, _REUSED * n_apart):
        finding = Diagnosis(
            "ids_reused",
            "wrong",
            "Ids stand for several objects each.",
            f"{n_apart:,} ids are of {n_apart + more:,} objects that stand in one frame or far from each other",
            "Give each object of a video an id of its own, and never the same again.",
        )
        found.append(Correction(finding, lambda rows: rows.with_changes(tracks=_link(rows, apart))))
    if clip.any():
        at = int(np.flatnonzero(clip == 1)[0])
        there = (clip == 1) & (raw.video == raw.video[at]).to_numpy()
        finding = Diagnosis(
            "ids_restart",
            "wrong",
            "Ids begin anew in the middle of videos, as of a tracker that runs clip by clip.",
            f"what goes on has other ids from one frame to the next, as in frame "
            f"{raw.frame[there].min() + 1} of {raw.video[at]!r}",
            "Track videos whole, or join the tracks of their clips; here they are joined by overlap.",
        )
        found.append(
            Correction(
                finding, lambda rows: rows.with_changes(tracks=_join_clips(rows, _link(rows, apart), clip))
            )
        )
    return found


def _number_videos(raw: RawPredictions) -> Ints:
    return raw.video.rank("dense").to_numpy().astype(np.int64)


def _link(raw: RawPredictions, ids: Ints) -> Ints:
    """(n,) tracks from 1, those of one id in so many parts as it has objects; -1 stays where `ids` is.

    A box goes on with the part of its id that is nearest in the frames before, by no more than `_REACH` sizes of the box, and
    a little for each frame between; the nearest pairs first. Where an id has one box a frame, that is the distance from
    where it would be by now, if that is nearer.
    """
    middle, size = _measure_boxes(raw)
    step = np.nan_to_num(_measure_steps(raw, ids)[0])
    video, found = _number_videos(raw), np.full(len(ids), -1, dtype=np.int64)
    order = np.lexsort((raw.frame, ids, video))
    order = order[ids[order] >= 0]
    key = np.stack([video[order], ids[order]])
    cuts = np.flatnonzero((key[:, 1:] != key[:, :-1]).any(axis=0)) + 1
    count = 0
    for rows in np.split(order, cuts):
        heads: list[int] = []
        for at in np.split(rows, np.flatnonzero(np.diff(raw.frame[rows])) + 1) if len(rows) else ():
            before = np.array(
                [head for head in heads if raw.frame[at[0]] - raw.frame[head] <= _MOST_GAP], dtype=np.int64
            )
            gap = (raw.frame[at[0]] - raw.frame[before]).astype(np.float64)
            away = np.minimum(
                np.linalg.norm(middle[at][:, None] - middle[before][None], axis=2),
                np.linalg.norm(
                    middle[at][:, None] - (middle[before] + gap[:, None] * step[before])[None], axis=2
                ),
            )
            reach = np.maximum(size[at][:, None], size[before][None]) * _REACH * np.sqrt(gap)[None]
            for one, other in _pair_nearest(away / np.maximum(reach, 1e-9)):
                found[at[one]] = found[before[other]]
            for row in at[found[at] < 0].tolist():
                count += 1
                found[row] = count
            ended = {int(found[row]) for row in at.tolist()}
            heads = [head for head in heads if int(found[head]) not in ended] + at.tolist()
    return found


def _find_clips(raw: RawPredictions, ids: Ints) -> Ints:
    """(n,) the clip that each row is in, from 0 in each video: one ends where nearly all that goes on has another id.

    What goes on is told by overlap with where tracks move, so that a car that comes to where the next one was is none; after
    a cut to another scene next to nothing does. A tracker that begins anew counts from the start again; where no id that
    follows is one of before, far more has to go on.
    """
    corners = raw.corners * np.tile(raw.unit_px, 2)
    video, clip = _number_videos(raw), np.zeros(len(ids), dtype=np.int64)
    before, after = _measure_steps(raw, ids)
    for number in np.unique(video).tolist():
        rows = np.flatnonzero((video == number) & (ids >= 0))
        rows = rows[np.argsort(raw.frame[rows], kind="stable")]
        shots = np.split(rows, np.flatnonzero(np.diff(raw.frame[rows])) + 1)
        known: set[int] = set()
        for old, new in pairwise(shots):
            known.update(ids[old].tolist())
            gap = float(raw.frame[new[0]] - raw.frame[old[0]])
            # Old tracks where they would be now; one that has just begun moves as the new one does after.
            step = np.where(np.isnan(before[old])[None], after[new][:, None], before[old][None])
            moved = corners[old][None] + gap * np.nan_to_num(np.tile(step, 2))
            overlap = _pair_ious(corners[new], moved)
            # Alone where the one pair of its row and its column that overlaps by much is itself.
            much = overlap > _CLIP_RIVAL * np.maximum(overlap.max(axis=1)[:, None], overlap.max(axis=0)[None])
            alone = (much.sum(axis=1)[:, None] == 1) & (much.sum(axis=0)[None] == 1) & much
            pairs = list(zip(*np.nonzero(alone & (overlap >= _CLIP_IOU)), strict=True))
            changed = [int(ids[new[one]]) for one, other in pairs if ids[new[one]] != ids[old[other]]]
            if len(changed) < _CLIP_LEAST or len(changed) <= _CLIP_SHARE * len(pairs):
                continue
            again = sum(each in known for each in changed) >= len(changed) / 2
            if len(pairs) >= (_CLIP_MET if again else _CLIP_MET_NEW) * min(len(old), len(new)):
                clip[rows[np.searchsorted(raw.frame[rows], raw.frame[new[0]]) :]] += 1
    return clip


def _pair_ious(boxes: Floats, others: Floats) -> Floats:
    """(n, m) IoU of each box with the others that stand in its row.

    Args:
        boxes: (n, 4).
        others: (n, m, 4).
    """
    one = np.broadcast_to(boxes[:, None], others.shape).reshape(-1, 4)
    return paired_iou(one, others.reshape(-1, 4)).reshape(others.shape[:2])


def _measure_steps(raw: RawPredictions, ids: Ints) -> tuple[Floats, Floats]:
    """(n, 2) pixels a frame by which a box came from the one of its id before, and (n, 2) goes to the one after; NaN where
    there is none near in time, or several in one frame."""
    middle, _ = _measure_boxes(raw)
    video = _number_videos(raw)
    order = np.lexsort((raw.frame, ids, video))
    same = (np.diff(video[order]) == 0) & (np.diff(ids[order]) == 0) & (ids[order][1:] >= 0)
    gap = np.diff(raw.frame[order])
    # Of an id with several boxes in a frame nobody knows which one came from where.
    double = np.zeros(len(order), dtype=np.bool_)
    for end in (slice(1, None), slice(None, -1)):
        double[end] |= same & (gap == 0)
    fine = same & (gap > 0) & (gap <= _CLIP_STEP) & ~double[1:] & ~double[:-1]
    first, second = order[:-1][fine], order[1:][fine]
    step = (middle[second] - middle[first]) / gap[fine][:, None]
    before, after = np.full((2, len(ids), 2), np.nan)
    before[second], after[first] = step, step
    return before, after


def _join_clips(raw: RawPredictions, ids: Ints, clip: Ints) -> Ints:
    """(n,) tracks, those joined that go on from one clip of their video in the next.

    Args:
        raw: the rows.
        ids: (n,) tracks, each in one clip; -1 for none.
        clip: (n,) of the rows, from 0 in each video.
    """
    middle, size = _measure_boxes(raw)
    video, joined = _number_videos(raw), ids.copy()
    for number in np.unique(video[clip > 0]).tolist():
        rows = np.flatnonzero((video == number) & (ids >= 0))
        rows = rows[np.argsort(raw.frame[rows], kind="stable")]
        first = rows[np.unique(ids[rows], return_index=True)[1]]
        last = rows[len(rows) - 1 - np.unique(ids[rows][::-1], return_index=True)[1]]
        for later in range(1, int(clip[rows].max()) + 1):
            cut = raw.frame[rows[clip[rows] == later]].min()
            new = first[(clip[first] == later) & (raw.frame[first] < cut + _CLIP_GAP)]
            old = last[(clip[last] == later - 1) & (raw.frame[last] >= cut - _CLIP_GAP)]
            gap = (raw.frame[new][:, None] - raw.frame[old][None]).astype(np.float64)
            away = np.linalg.norm(middle[new][:, None] - middle[old][None], axis=2)
            reach = np.maximum(size[new][:, None], size[old][None]) * _REACH * np.sqrt(gap)
            for one, other in _pair_nearest(away / np.maximum(reach, 1e-9)):
                joined[ids == ids[new[one]]] = joined[old[other]]
    return joined


def _pair_nearest(share: Floats) -> list[tuple[int, int]]:
    """Pairs of row and column up to 1, each row and column once, the lowest first.

    Args:
        share: (n, m) of the distance that is allowed.
    """
    pairs: list[tuple[int, int]] = []
    taken: tuple[set[int], set[int]] = (set(), set())
    for place in np.argsort(share, axis=None, kind="stable").tolist():
        one, other = divmod(place, share.shape[1])
        if share[one, other] > 1:
            break
        if one not in taken[0] and other not in taken[1]:
            pairs.append((one, other))
            taken[0].add(one)
            taken[1].add(other)
    return pairs


def _measure_boxes(raw: RawPredictions) -> tuple[Floats, Floats]:
    """(n, 2) middles and (n,) mean sides of the boxes in pixels."""
    corners = raw.corners * np.tile(raw.unit_px, 2)
    return (corners[:, :2] + corners[:, 2:]) / 2, np.abs(corners[:, 2:] - corners[:, :2]).mean(axis=1)


# Classes.


def _find_classes(raw: RawPredictions, truth: TrueBoxes) -> list[Correction]:
    """Classes that are numbered otherwise, or columns of classes in another order."""
    some = _select_rows(raw)
    held = _Compared(raw, truth, some)
    rows, boxes = held.match()
    if len(rows) < _FEW or held.share(_Place()) < _SHARE:
        return []
    if raw.label is not None:
        if not truth.labels:
            return []
        weights = np.clip(np.nan_to_num(raw.scores[some[rows], 0], nan=1.0), 0, 1)
        return _find_numbers(
            raw.label[some[rows]], [truth.labels[at] for at in boxes], weights, truth.objects[boxes]
        )
    found: list[Correction] = []
    begin = 1
    for kind, labels in truth.columns.items():
        scores = raw.scores[some[rows], begin : begin + len(labels)]
        found += _find_order(
            kind, labels, scores, [truth.kinds[kind][at] for at in boxes], truth.objects[boxes], begin
        )
        begin += len(labels)
    return found


def _find_numbers(
    predicted: Ints, true: Sequence[frozenset[int]], weights: Floats, objects: Ints
) -> list[Correction]:
    """Numbers of classes that are one too high or low, or stand for others.

    Args:
        predicted: (n,) class of each row on a true box.
        true: (n) classes of that box.
        weights: (n,) scores: a row may name every class, and be sure of one.
        objects: (n,) which object each true box is of.
    """
    mine, theirs = np.unique(predicted), sorted(frozenset().union(*true))
    half, share_of_object = _split_objects(objects)
    weights = weights * share_of_object
    if not theirs or weights.sum() <= 0:
        return []
    several = np.array([[label in held for label in theirs] for held in true], dtype=np.float64)
    place = {label: at for at, label in enumerate(theirs)}

    def measure(meant: Ints, weights: Floats) -> float:
        """Share of the weight on rows whose class, if it were so, is one of the true box."""
        at = np.array([place.get(int(label), -1) for label in meant])
        return float((weights * np.where(at >= 0, several[np.arange(len(at)), at], 0)).sum() / weights.sum())

    right = {step: measure(predicted + step, weights) for step in (-1, 0, 1)}
    best = max((-1, 1), key=lambda step: right[step])
    if right[best] >= max(_LABEL_LEAST, _LABEL_TIMES * right[0]):
        finding = Diagnosis(
            "label_shift",
            "wrong",
            f"Class numbers are {'high' if best < 0 else 'low'} by one.",
            f"{right[0]:.0%} of the scores on true boxes are of a right class as written, {right[best]:.0%} if {best:+d}",
            f"Add {best:+d} to every class number.",
        )
        return [Correction(finding, lambda held: held.with_changes(label=_add(held.label, best)))]
    column = np.searchsorted(mine, predicted)
    counts = np.zeros((2, len(mine), len(theirs)))
    np.add.at(counts, (half, column), several * weights[:, None])
    # The share of a class's scores, not their sum: a class that is named in every row would take the most frequent one.
    fitted = counts / np.maximum(counts.sum(axis=2, keepdims=True), 1e-9)
    first = {int(mine[a]): theirs[b] for a, b in _assign(fitted[0]) if counts[0, a, b] > 0}
    meant = np.array([first.get(int(label), -1) for label in predicted])
    judged = np.where(half == 1, weights, 0)
    if judged.sum() <= 0 or len(np.unique(objects[half == 1])) < _OBJECTS:
        return []
    share, as_is = measure(meant, judged), measure(predicted, judged)
    if share < max(_LABEL_LEAST, 2 * _LABEL_TIMES * as_is):
        return []
    whole = counts.sum(axis=0)
    whole_fitted = whole / np.maximum(whole.sum(axis=1, keepdims=True), 1e-9)
    mapping = {int(mine[a]): theirs[b] for a, b in _assign(whole_fitted) if whole[a, b] > 0}
    listed = ", ".join(f"{a} is {b}" for a, b in list(mapping.items())[:6])
    finding = Diagnosis(
        "label_numbers",
        "wrong",
        "Classes are numbered otherwise than in the ground truth.",
        f"{as_is:.0%} of the scores on true boxes are of a right class as written, {share:.0%} if {listed}",
        f"Write the ground truth's numbers: {listed}{', ...' if len(mapping) > 6 else ''}.",
    )
    return [Correction(finding, lambda held: held.with_changes(label=_rename(held.label, mapping)))]


def _add(label: Ints | None, step: int) -> Ints | None:
    return None if label is None else label + step


def _rename(label: Ints | None, mapping: Mapping[int, int]) -> Ints | None:
    return None if label is None else np.array([mapping.get(n, n) for n in label.tolist()], dtype=np.int64)


def _find_order(
    kind: str,
    labels: tuple[str, ...],
    scores: Floats,
    true: Sequence[frozenset[int]],
    objects: Ints,
    begin: int,
) -> list[Correction]:
    """The order that the columns of one kind are in, where it is not that of the ground truth.

    Args:
        kind: of the labels.
        labels: in the order that is due.
        scores: (n, labels) of rows on true boxes.
        true: (n) classes of those boxes.
        objects: (n,) which object each true box is of.
        begin: the first column of the kind among all scores.
    """
    labelled = np.array([bool(held) for held in true])
    if labelled.sum() < _FEW or scores.shape[1] != len(labels):
        return []
    labelled &= np.isfinite(scores).all(axis=1)
    if labelled.sum() < _FEW:
        return []
    scores, objects = scores[labelled], objects[labelled]
    held = [true[row] for row in np.flatnonzero(labelled).tolist()]
    half, weights = _split_objects(objects)
    several = np.zeros((len(held), len(labels)), dtype=np.float64)
    for row, each in enumerate(held):
        several[row, list(each)] = 1
    top = scores.argmax(axis=1)
    counts = np.zeros((2, len(labels), len(labels)))
    np.add.at(counts, (half, top), several * weights[:, None])
    # Column c of the file holds class order[c]. An order that is fitted to half of the objects is judged on the others.
    tried: dict[str, Ints] = {
        "moved by one to the right": np.roll(np.arange(len(labels)), 1),
        "moved by one to the left": np.roll(np.arange(len(labels)), -1),
        "in the order of the alphabet": np.argsort(np.array(labels), kind="stable"),
        "reversed": np.arange(len(labels))[::-1],
        "in another order": _complete(counts[0]),
    }
    judged = np.where(half == 1, weights, 0)
    if len(np.unique(objects[half == 1])) < _OBJECTS:
        return []
    rows = np.arange(len(held))
    as_is = float((judged * several[rows, top]).sum() / judged.sum())
    right = {
        name: float((judged * several[rows, order[top]]).sum() / judged.sum())
        for name, order in tried.items()
    }
    name = max(right, key=lambda each: right[each])  # the first of equals: a named order before a fitted one
    if right[name] < max(_LABEL_LEAST, _LABEL_TIMES * as_is):
        return []
    order = _complete(counts.sum(axis=0)) if name == "in another order" else tried[name]
    seen = counts.sum(axis=(0, 2)) > 0
    first = ", ".join(
        f"{labels[k]!r} in place of {labels[c]!r}" for c, k in enumerate(order[:20]) if c != k and seen[c]
    )
    finding = Diagnosis(
        "class_order",
        "wrong",
        f"Columns of {kind} scores are {name}.",
        f"{as_is:.0%} of the boxes on true ones have a right {kind} as written, {right[name]:.0%} so",
        f"Write columns in the order of the ground truth's labels; now there stands {first[:200]}.",
    )
    inverse = np.argsort(order)

    def apply(rows: RawPredictions) -> RawPredictions:
        changed = rows.scores.copy()
        changed[:, begin : begin + len(labels)] = rows.scores[:, begin + inverse]
        return rows.with_changes(scores=changed)

    return [Correction(finding, apply)]


def _split_objects(objects: Ints) -> tuple[Ints, Floats]:
    """(n,) which half of the objects each row is of, and (n,) weights with which all objects count alike."""
    _, place, counts = np.unique(objects, return_inverse=True, return_counts=True)
    return place % 2, 1 / counts[place]


def _complete(counts: Floats) -> Ints:
    """(k,) the class of each column: the assignment with most hits; columns without evidence fill what is left."""
    order = np.full(len(counts), -1, dtype=np.int64)
    for column, label in _assign(counts):
        if counts[column, label] > 0:
            order[column] = label
    free = [n for n in range(len(counts)) if n not in set(order.tolist())]
    for empty in np.flatnonzero(order < 0).tolist():
        order[empty] = free.pop(free.index(empty) if empty in free else 0)
    return order


def _assign(counts: npt.NDArray[np.generic]) -> list[tuple[int, int]]:
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(np.asarray(counts, dtype=np.float64), maximize=True)
    return list(zip(rows.tolist(), columns.tolist(), strict=True))
