"""Drawing of a watch on its frames: tubes, the own vehicle's action, and what a network of crowds found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
from PIL import Image, ImageDraw

from roadaware.arrays import Pixels
from roadaware.errors import RoadawareError
from roadaware.geometry.boxes import paired_iou
from roadaware.io.parquet import read_parquet
from roadaware.io.video import VideoReader
from roadaware.online.crowd import MOMENTS
from roadaware.online.events import CROWD, FILM
from roadaware.online.film import Film, find_first_shown
from roadaware.online.times import TABLES
from roadaware.reports.drawing import COLOURS, Arrow, CrowdFrame, draw_crowd
from roadaware.reports.lettering import Letters
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.store import is_saved, open_predictions

if TYPE_CHECKING:
    from roadaware.online.forecast_event import Outlook
    from roadaware.online.tubes import LiveTube
    from roadaware.online.watcher import Seen


# What is expected of pedestrians, drawn: a gauge beside each of them, and where they will be.

Colour = tuple[int, int, int]
_DRAWING_INK, _DRAWING_WHITE = (16, 16, 16), (255, 255, 255)
_SCALE: tuple[Colour, ...] = ((70, 190, 90), (255, 190, 0), (235, 50, 45))
"""Colours of the probabilities 0, 0.5 and 1."""
_LEAST_PX = 24
_WHERE: Colour = (255, 140, 0)


def get_risk_colour(probability: float) -> Colour:
    """From green over amber to red.

    Args:
        probability: in [0, 1].

    >>> get_risk_colour(0.0), get_risk_colour(0.5), get_risk_colour(1.0)
    ((70, 190, 90), (255, 190, 0), (235, 50, 45))
    """
    place = min(max(probability, 0.0), 1.0) * (len(_SCALE) - 1)
    first = min(int(place), len(_SCALE) - 2)
    low, high = _SCALE[first], _SCALE[first + 1]
    red, green, blue = (round(a + (place - first) * (b - a)) for a, b in zip(low, high, strict=True))
    return red, green, blue


def describe_forecast(outlook: Outlook | None) -> str | None:
    """The text beside a pedestrian; None where there is no forecast.

    Args:
        outlook: of the pedestrian.
    """
    if outlook is not None and outlook.unknown is not None:
        return f"crosses ? ({outlook.unknown})"
    if outlook is None or outlook.crossing is None:
        return None
    soon = "" if outlook.seconds is None else f", in {outlook.seconds:.1f} s"
    return f"crosses {100 * outlook.crossing:.0f} %{soon}"


def draw_gauge(pen: Any, box: Area, outlook: Outlook, size: tuple[int, int]) -> Area | None:
    """Draw a bar beside a box, filled from below as far as crossing is probable, with its interval in white.

    It stands on the left of the box, or on the right where there is no room, and is never lower than 24
    pixels.

    Args:
        pen: that draws.
        box: x1, y1, x2, y2 in pixels of the drawing.
        outlook: of the pedestrian.
        size: width and height of the drawing.

    Returns:
        The room that it takes; None where nothing is known of crossing.
    """
    if outlook.crossing is None:
        return None
    wide = max(4, min(size) // 100)
    left = box[0] - wide - 3 if box[0] >= wide + 3 else box[2] + 3
    bottom = min(box[3], size[1] - 1.0)
    top = max(0.0, min(box[1], bottom - _LEAST_PX))
    area = (left, top, left + wide, bottom)
    pen.rectangle((left - 1, top - 1, left + wide + 1, bottom + 1), fill=_DRAWING_INK)

    def level(share: float) -> float:
        return bottom - share * (bottom - top)

    pen.rectangle(
        (left, level(outlook.crossing), left + wide, bottom), fill=get_risk_colour(outlook.crossing)
    )
    if outlook.low is not None and outlook.high is not None:
        middle = left + wide / 2
        pen.line((middle, level(outlook.high), middle, level(outlook.low)), fill=_DRAWING_WHITE)
        for share in (outlook.low, outlook.high):
            pen.line((left, level(share), left + wide, level(share)), fill=_DRAWING_WHITE)
    return area


def draw_strip(pen: Any, outlooks: Sequence[Outlook], bottom: float, size: tuple[int, int]) -> Area | None:
    """Draw a cell for each region of the image, the brighter the likelier somebody will be in it.

    Args:
        pen: that draws.
        outlooks: of all pedestrians; each cell shows the largest of their probabilities.
        bottom: lower edge of the strip.
        size: width and height of the drawing.

    Returns:
        The room that it takes; None where nothing is known of regions.
    """
    known = [outlook for outlook in outlooks if outlook.regions]
    if not known:
        return None
    high, n = max(5, min(size) // 60), len(known[0].regions)
    for place in range(n):
        likely = max(outlook.regions[place] for outlook in known)
        shade = [round(a + likely * (b - a)) for a, b in zip(_DRAWING_INK, _WHERE, strict=True)]
        left, right = place * size[0] / n, (place + 1) * size[0] / n - 1
        is_known = any(outlook.region == place for outlook in known)
        pen.rectangle(
            (left, bottom - high, right, bottom),
            fill=tuple(shade),
            outline=_DRAWING_WHITE if is_known else _DRAWING_INK,
        )
    return 0.0, bottom - high, float(size[0]), bottom


Area = tuple[float, float, float, float]
_INK, _WHITE, _FAINT = (16, 16, 16), (255, 255, 255), (150, 150, 150)
_NOTICE = (255, 200, 60)
_SMALL, _PAD = 480, 2
_FAR_LINES = 3
"""A box lower and narrower than so many lines of words is far: only its number and agent are written."""
_STILL_SEEN, _STAYS = 0.5, 0.8
"""Probability from which on somebody is expected to be seen still, and overlap from which on a box stays where it is."""
_SECOND = ("action", "location")
_WHOLE = ("event", "duplex")


@dataclass(frozen=True)
class _Sign:
    """Lines of words with their ground.

    Args:
        lines: to write.
        widths: of each in pixels.
        step: from line to line.
        font: in which they are written.
    """

    lines: tuple[str, ...]
    widths: tuple[int, ...]
    step: int
    font: Letters

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return max(self.widths) + 2 * _PAD, self.step * len(self.lines) + 2 * _PAD


class LiveDrawing:
    """Draws frames of one stream; the colour of a tube is that of its agent.

    Small images are drawn larger, so that words can be read: 320x240 at twice its size.

    Args:
        agents: the labels of agents, which have colours.
        notice: what whoever looks at the video should know, on every frame of it; empty for nothing.
    """

    def __init__(self, agents: Sequence[str] = (), notice: str = "") -> None:
        self._notice = notice
        self._colours = {name: COLOURS[k % len(COLOURS)] for k, name in enumerate(agents)}

    def __call__(self, seen: Seen) -> Pixels:
        """The frame with everything on it.

        Args:
            seen: what a watch saw in a frame.

        Returns:
            (H * scale, W * scale, 3).
        """
        image = Image.fromarray(seen.frame.picture)
        scale = max(1, -(-_SMALL // max(1, min(image.size)))) if min(image.size) < _SMALL else 1
        if scale > 1:
            image = image.resize((image.width * scale, image.height * scale), Image.Resampling.BILINEAR)
        pen, font = ImageDraw.Draw(image), Letters(max(11, min(image.size) // 42))
        size = image.size
        bar = 0.0, float(size[1] - font.height - 2 * _PAD), float(size[0]), float(size[1])
        taken: list[Area] = [bar] if seen.vehicle else []
        outlooks = [tube.outlook for tube in seen.tubes if tube.outlook is not None]
        where = draw_strip(pen, outlooks, bar[1] - 1 if seen.vehicle else image.height - 1.0, image.size)
        taken += [where] if where else []
        taken.append(_title(pen, seen, font, self._notice))
        # Those that are near are drawn last, over the others, but choose the place of their words first.
        tubes = sorted(seen.tubes, key=lambda tube: _area(tube.box))
        for tube in tubes:
            _draw_expected(pen, tube, self._colour(tube), scale, image.size)
        for tube in tubes:
            colour = self._colour(tube)
            x1, y1, x2, y2 = _scale_box(tube, scale)
            if not (x2 - x1 < 1 or y2 - y1 < 1):
                line = max(1, min(image.size) // 240)
                pen.rectangle((x1, y1, x2, y2), outline=_INK, width=line + 1)
                pen.rectangle((x1, y1, x2, y2), outline=colour, width=line)
            if tube.outlook is not None:
                shown = draw_gauge(pen, _scale_box(tube, scale), tube.outlook, image.size)
                taken += [shown] if shown else []
        signs: list[tuple[LiveTube, _Sign, Area]] = []
        for tube in reversed(tubes):
            found = _place_sign(tube, scale, image.size, font, taken)
            if found is not None:
                signs.append((tube, *found))
                taken.append(found[1])
        # All lines before all words, so that none runs over words.
        for tube, _, at in signs:
            _draw_leader(pen, _scale_box(tube, scale), at, self._colour(tube))
        for tube, sign, at in signs:
            _write_sign(pen, tube, sign, at, self._colour(tube))
        _title(pen, seen, font, self._notice)  # over the boxes too
        # A cell for each action of the own vehicle along the lower edge, filled as far as its score goes.
        _, top, right_most, bottom = bar
        wide = right_most / max(1, len(seen.vehicle))
        for place, (name, score) in enumerate(seen.vehicle.items()):
            left, right = place * wide, (place + 1) * wide - 1
            is_doing = name in seen.doing
            pen.rectangle((left, top, right, bottom), fill=_INK)
            ground = (0, 96, 160) if is_doing else (56, 56, 56)
            pen.rectangle((left, top, left + (right - left) * min(1.0, max(0.0, score)), bottom), fill=ground)
            # As many letters as there is room for.
            words = name.removeprefix("AV-")
            most = right - left - 2 * _PAD
            while words and font.length(words) > most:
                words = words[:-1]
            font.write(pen, (left + _PAD, top + _PAD), words, _WHITE if is_doing else _FAINT)
        return np.asarray(image)

    def _colour(self, tube: LiveTube) -> tuple[int, int, int]:
        agent = next(iter(tube.labels.confirmed().get("agent", {})), "")
        return self._colours.get(agent, COLOURS[-1])


def _place_sign(
    tube: LiveTube, scale: int, size: tuple[int, int], font: Letters, taken: Sequence[Area]
) -> tuple[_Sign, Area] | None:
    """What a tube is, and room for it that covers no other words.

    Of a far tube, and of one beside which there is no room, only the first line and the forecast are
    written; of one with no room anywhere and no forecast, nothing.
    """
    lines, crosses = describe_tube(tube), describe_forecast(tube.outlook)
    always = (lines[0], crosses) if crosses else lines[:1]
    short, whole = _build_sign(always, font), _build_sign((*always, *lines[1:]), font)
    box = _scale_box(tube, scale)
    if max(box[2] - box[0], box[3] - box[1]) >= _FAR_LINES * short.step:
        at = _find_place(_beside(box, whole), whole, size, taken)
        if at is not None:
            return whole, at
    at = _find_place([*_beside(box, short), *_apart(box, short)], short, size, taken)
    if at is None and crosses:
        at = _inside(box[0], box[1] - short.size[1], *short.size, size)
    return None if at is None else (short, at)


def _draw_leader(pen: Any, box: Area, at: Area, colour: Colour) -> None:
    """A line from a sign to its box, where they do not touch."""
    if not _cross(at, (box[0] - _PAD, box[1] - _PAD, box[2] + _PAD, box[3] + _PAD)):
        start = _nearest(at, ((box[0] + box[2]) / 2, (box[1] + box[3]) / 2))
        pen.line((*start, *_nearest(box, start)), fill=colour)


def _write_sign(pen: Any, tube: LiveTube, sign: _Sign, at: Area, colour: Colour) -> None:
    """The first line in the colour of the tube, the forecast in that of its risk."""
    crosses = describe_forecast(tube.outlook)
    inks = {crosses: get_risk_colour(tube.outlook.crossing or 0.0)} if crosses and tube.outlook else {}
    pen.rectangle(at, fill=_INK)
    for place, line in enumerate(sign.lines):
        ink = colour if place == 0 else inks.get(line, _WHITE)
        sign.font.write(pen, (at[0] + _PAD, at[1] + place * sign.step), line, ink)


def describe_tube(tube: LiveTube) -> tuple[str, ...]:
    """The text on a tube: number, agent and score; actions and locations; event; notes.

    Args:
        tube: which.
    """
    labels = tube.labels.confirmed()
    agent = " ".join(f"{name} {100 * score:.0f}" for name, score in labels.get("agent", {}).items())
    lines = [f"#{tube.number} {agent}".rstrip()]
    second = [" ".join(labels[kind]) for kind in _SECOND if labels.get(kind)]
    lines += [" · ".join(second)] if second else []
    whole = next((name for kind in _WHOLE for name in labels.get(kind, {})), None)
    lines += [whole] if whole else []
    lines += describe_expected(tube)
    lines += [f"{name} {value:.2f}" for name, value in tube.notes.items()]
    return tuple(lines)


def describe_expected(tube: LiveTube) -> list[str]:
    """What a tube is expected to do, where that is something else than now: at most one line.

    Args:
        tube: which.
    """
    if tube.expected is None:
        return []
    ahead = f"in {tube.expected.ahead_s:g} s"
    if tube.expected.present < _STILL_SEEN:
        return [f"{ahead}: out of sight"]
    changes = tube.expected.changes()
    new = [name for kind in _SECOND for name in changes.get(kind, {})]
    return [f"{ahead}: {' · '.join(new)}"] if new else []


def _draw_expected(
    pen: Any, tube: LiveTube, colour: tuple[int, int, int], scale: int, size: tuple[int, int]
) -> None:
    """A dotted box where a tube is expected, and a line to its middle; nothing where it stays, or is gone."""
    if tube.expected is None or tube.expected.present < _STILL_SEEN:
        return
    if paired_iou(tube.box[None], tube.expected.box[None])[0] > _STAYS:
        return
    here, there = _scale_box(tube, scale), np.asarray(tube.expected.box, np.float64) * scale
    x1, x2 = (float(x) for x in np.clip(there[[0, 2]], 0, size[0] - 1))
    y1, y2 = (float(y) for y in np.clip(there[[1, 3]], 0, size[1] - 1))
    if x2 - x1 < 2 or y2 - y1 < 2:
        return
    middle = ((here[0] + here[2]) / 2, (here[1] + here[3]) / 2)
    pen.line((*middle, (x1 + x2) / 2, (y1 + y2) / 2), fill=colour)
    step = max(4, min(size) // 80)
    for x in np.arange(x1, x2, 2 * step).tolist():
        for y in (y1, y2):
            pen.line((x, y, min(x + step, x2), y), fill=colour)
    for y in np.arange(y1, y2, 2 * step).tolist():
        for x in (x1, x2):
            pen.line((x, y, x, min(y + step, y2)), fill=colour)


def _build_sign(lines: tuple[str, ...], font: Letters) -> _Sign:
    return _Sign(lines, tuple(round(font.length(line)) for line in lines), font.height, font)


def _beside(box: Area, sign: _Sign) -> list[tuple[float, float]]:
    """Corners of signs that touch a box: above it, below it, at its top or beside it."""
    x1, y1, x2, y2 = box
    wide, high = sign.size
    return [(x1, y1 - high), (x1, y2), (x1, y1), (x2, y1), (x1 - wide, y1), (x2 - wide, y1 - high)]


def _apart(box: Area, sign: _Sign) -> list[tuple[float, float]]:
    """Corners of signs further away above and below a box."""
    x1, y1, x2, y2 = box
    wide, high = sign.size
    return [(x, y) for n in (2, 3, 4) for x in (x1, x2 - wide) for y in (y1 - n * high, y2 + (n - 1) * high)]


def _find_place(
    corners: Sequence[tuple[float, float]], sign: _Sign, size: tuple[int, int], taken: Sequence[Area]
) -> Area | None:
    """The first room for a sign that covers no words; None where there is none."""
    places = (_inside(x, y, *sign.size, size) for x, y in corners)
    return next((place for place in places if not any(_cross(place, other) for other in taken)), None)


def _inside(x: float, y: float, wide: int, high: int, size: tuple[int, int]) -> Area:
    x, y = max(0.0, min(x, size[0] - wide)), max(0.0, min(y, size[1] - high))
    return x, y, x + wide, y + high


def _nearest(area: Area, point: tuple[float, float]) -> tuple[float, float]:
    """The point of an area that is nearest to another."""
    return min(max(point[0], area[0]), area[2]), min(max(point[1], area[1]), area[3])


def _cross(a: Area, b: Area) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _scale_box(tube: LiveTube, scale: int) -> Area:
    """The box of a tube in pixels of the drawing."""
    x1, y1, x2, y2 = (float(side) * scale for side in tube.box)
    return x1, y1, x2, y2


def _area(box: npt.NDArray[np.float64]) -> float:
    return float((box[2] - box[0]) * (box[3] - box[1]))


def _title(pen: Any, seen: Seen, font: Letters, notice: str) -> Area:
    """Number and time of the frame in the corner, with the notice under them; the room that they take."""
    width = float(pen.im.size[0]) - 2 * _PAD
    lines = [f"{seen.frame.number}  {seen.frame.t_s:.2f} s", *_wrap_words(notice, width, font)]
    wide = max(font.length(line) for line in lines) + 2 * _PAD
    area = (0.0, 0.0, float(wide), float(font.height * len(lines)))
    pen.rectangle(area, fill=_INK)
    for place, line in enumerate(lines):
        font.write(pen, (_PAD, place * font.height), line, _NOTICE if place else _WHITE)
    return area


def _wrap_words(words: str, width: float, font: Letters) -> list[str]:
    """The words in lines that fit a width."""
    lines: list[str] = []
    for word in words.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and font.length(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


_MOST_ACTIONS = 2
"""Words on a person; more would hide the next one."""
Corners = tuple[float, float, float, float]


class FoundCrowd:
    """What the sets in the folder of a watch say of each frame, as far as it was found.

    Args:
        folder: of the watch.
        found: what `watch_crowd` gave: its scores decide.
    """

    def __init__(self, folder: Path, found: Mapping[str, Any]) -> None:
        self._folder, self._least = folder / CROWD, found["least"]
        self._sentences = [bool(each["found"]) for each in found["sentences"]]
        self._frames: defaultdict[int, CrowdFrame] = defaultdict(CrowdFrame)
        for task, collect in (
            ("actions", self._collect_actions),
            ("relations", self._collect_relations),
            ("grounding", self._collect_sentences),
        ):
            if is_saved(self._folder / task):
                collect()
        if (self._folder / MOMENTS).is_file():
            self._collect_sounds()

    def __getitem__(self, frame: int) -> CrowdFrame:
        """What is drawn on a frame of the tables."""
        return self._frames.get(frame) or CrowdFrame()

    def _collect_actions(self) -> None:
        tables = open_predictions(self._folder / "actions")
        words = tables.meta.vocabularies["action"]
        if tables.boxes.is_empty():
            return
        scores = tables.boxes["scores"].to_numpy()
        rows = np.flatnonzero(scores.max(axis=1, initial=0.0) >= self._least["action"])
        for row, frame, *corners in (
            tables.boxes.with_row_index("row")[rows.tolist()].select("row", "frame", *CORNERS).iter_rows()
        ):
            best = np.argsort(-scores[row], kind="stable")[:_MOST_ACTIONS]
            named = [words[k] for k in best.tolist() if scores[row, k] >= self._least["action"]]
            self._frames[frame].actions.append((_to_corners(corners), " + ".join(named)))

    def _collect_relations(self) -> None:
        tables = open_predictions(self._folder / "relations")
        held = _index_boxes(tables.boxes)
        words = tables.meta.vocabularies.get("predicate", ())
        strong = tables.relations.filter(pl.col("score") >= self._least["relation"])
        for row in strong.sort("score", descending=True, maintain_order=True).iter_rows(named=True):
            colour = COLOURS[row["subject"] % (len(COLOURS) - 1)]
            for frame in range(row["start_frame"], row["end_frame"]):
                ends = held.get((row["subject"], frame)), held.get((row["object"], frame))
                if ends[0] is not None and ends[1] is not None:
                    arrow = Arrow(ends[0], ends[1], words[row["predicate"]], colour)
                    self._frames[frame].arrows.append(arrow)

    def _collect_sentences(self) -> None:
        tables = open_predictions(self._folder / "grounding")
        held = _index_boxes(tables.boxes)
        for row in tables.queries.iter_rows(named=True):
            if not self._sentences[row["query"]]:
                continue
            colour = COLOURS[row["query"] % (len(COLOURS) - 1)]
            for frame in range(row["start_frame"], row["end_frame"]):
                self._frames[frame].sentences.append((colour, row["text"]))
                corners = held.get((row["tube"], frame))
                if corners is not None:
                    self._frames[frame].spoken.append((corners, colour))

    def _collect_sounds(self) -> None:
        """Each moment stands for the frames until the next one of its sound."""
        moments = read_parquet(self._folder / MOMENTS)
        for _, part in moments.group_by("sound", maintain_order=True):
            frames = part["frame"].to_list()
            step = frames[1] - frames[0] if len(frames) > 1 else 1
            for row, start, end in zip(
                part.iter_rows(named=True), frames, [*frames[1:], frames[-1] + step], strict=True
            ):
                if row["score"] is None or row["score"] < self._least["sound"]:
                    continue
                corners = _to_corners([row[side] for side in CORNERS])
                for frame in range(start, end):
                    self._frames[frame].sounds.append((corners, row["name"]))


def _to_corners(sides: list[float]) -> Corners:
    return sides[0], sides[1], sides[2], sides[3]


def _index_boxes(boxes: pl.DataFrame) -> dict[tuple[int, int], Corners]:
    """Tube and frame to corners."""
    rows = boxes.select("tube", "frame", *CORNERS).iter_rows() if len(boxes) else ()
    return {(tube, frame): _to_corners(sides) for tube, frame, *sides in rows}


def draw_crowd_film(
    folder: Path,
    found: Mapping[str, Any],
    *,
    fps: float | None,
    width_px: int,
    sound: Path | None = None,
    start_s: float = 0.0,
    silent: Callable[[str], None] = lambda why: None,
    progress: Callable[[int, int, str], None] | None = None,
) -> bool:
    """Draw what was found on the video of a watch; the old video stands until the new one is whole.

    Args:
        folder: of the watch.
        found: what `watch_crowd` gave.
        fps: of the source; None where it is not known.
        width_px: of the images that were watched: the video may be larger.
        sound, start_s, silent: as of `online.film.Film`.
        progress: called with the frames done and the total.

    Returns:
        Whether there is a video to draw on.

    Raises:
        InputError: if the video cannot be read.
        DiskError: if the new one cannot be written.
    """
    path = folder / FILM
    if not path.is_file():
        return False
    crowd = FoundCrowd(folder, found)
    times = open_predictions(folder / TABLES).frames.sort("frame")
    frames, t_s = times["frame"].to_numpy(), times["t_s"].to_numpy().astype(np.float64)
    film = Film(path, fps, sound, start_s, silent)
    try:
        with VideoReader(path) as reader:
            scale = max(1, reader.width_px // width_px)
            first = find_first_shown(t_s, reader.fps or fps or 1.0)
            for number, image in enumerate(reader):
                shown = int(np.searchsorted(first, number, side="right")) - 1
                # The new video repeats frames as the old one does, and leaves the same gaps out.
                if first[shown] == number:
                    film.write(draw_crowd(image, crowd[int(frames[shown])], scale=scale), float(t_s[shown]))
                if progress is not None:
                    progress(number + 1, len(reader), "frames drawn")
        return film.close()
    except RoadawareError:
        film.abandon()
        raise
