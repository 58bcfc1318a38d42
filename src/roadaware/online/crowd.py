"""A network of crowds beside a watch: who does what to whom, when a sentence happens, and where a sound comes from.

It looks once the watch has its tubes, at the same film: a film is cut into parts, the map of each part is made once, and all
tasks are asked about it. Torch is imported when a network is opened, not before.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from roadaware.arrays import Floats32, Ints
from roadaware.errors import InputError, UsageError
from roadaware.io.files import write_atomically
from roadaware.io.sources import to_printable
from roadaware.io.video import MediaError, NoSoundError, VideoReader, iterate_sound, read_sound
from roadaware.models.crowd.config import Task
from roadaware.online.events import CROWD, EVENTS, read_events
from roadaware.online.frames import SystemClock
from roadaware.online.setup import CROWDS, WEIGHTS
from roadaware.online.tables import build_stream_row
from roadaware.online.times import TABLES
from roadaware.online.video_files import VideoFile
from roadaware.scenes.schema import CORNERS, PEOPLE
from roadaware.scenes.store import open_predictions, save
from roadaware.scenes.tables import Meta, Predictions, Scenes
from roadaware.tasks.crowd import (
    CrowdSet,
    CrowdVideo,
    GroundedQuery,
    build_action_predictions,
    build_crowd_set,
    build_grounding_predictions,
    build_relation_predictions,
    build_sound_predictions,
    decode_relations,
)
from roadaware.tasks.crowd_answers import Answerer, ClipConfig, Footing
from roadaware.tasks.videos import Film

if TYPE_CHECKING:
    from roadaware.models.crowd.grounding import Encoded
    from roadaware.models.crowd.network import IntelliCare
    from roadaware.online.frames import Source

MOMENTS = "moments.parquet"
"""Beside the saved sets of a watch: the moments at which sounds were asked for."""
BUNDLED = WEIGHTS / CROWDS
"""The network of crowds that comes with roadaware, where one does."""
_PART_SLOTS = 400
"""Frames that are looked at in a part of a film: of each, maps of some hundred kilobytes are held at a time."""
_MOST_LISTED = 12
_STRANGE = 0.5
"""A sentence of which more is spelt or unknown than this share is said to be unlike what was learnt."""

# What is asked, and of whom: refused before the watch begins where it cannot be answered.


@dataclass(frozen=True)
class CrowdRule:
    """Scores from which on something is said to be found; the tables hold what is weaker, too.

    Args:
        action: in [0, 1], of each action for itself.
        relation: in [0, 1], of each predicate for itself.
        sentence: in [0, 1]; of networks that compare it with people how likely it speaks of anybody, of others (`CELLS`) the
            probability of the first frame times that of the last one.
        sound: in [0, 1], that a sound is heard and its source seen.
        every_s: seconds between two moments at which a sound is asked for.
    """

    action: float = 0.5
    relation: float = 0.5
    sentence: float = 0.5
    sound: float = 0.5
    every_s: float = 1.0


@dataclass(frozen=True, eq=False)
class CrowdQuestions:
    """A network of crowds and what it is asked.

    Args:
        network: in `eval` mode.
        path: its file.
        facts: what its file says of it.
        clips: how it looks at films.
        sentences: to be found.
        words: of these, as the network reads them; None without sentences.
        sounds: classes of sounds to be listened for.
        rule: from where on something is found.
    """

    network: IntelliCare
    path: Path
    facts: dict[str, Any]
    clips: ClipConfig
    sentences: tuple[str, ...] = ()
    words: Encoded | None = None
    sounds: tuple[str, ...] = ()
    rule: CrowdRule = field(default_factory=CrowdRule)

    @property
    def notes(self) -> dict[str, Any]:
        """What training wrote into the file."""
        found = self.facts.get("notes")
        return dict(found) if isinstance(found, dict) else {}

    def to_record(self) -> dict[str, Any]:
        """What a watch must have in common with another one to be the same, JSON-ready."""
        return {
            "weights": str(self.facts.get("digest")),
            "find": list(self.sentences),
            "listen": list(self.sounds),
        }

    def describe(self) -> dict[str, str]:
        """The row of the network among the models of a watch; see `setup.describe_models`."""
        bundled = self.path.resolve() == BUNDLED
        return {
            "task": "crowd",
            "name": to_printable(self.path.name, 60),
            "trained_on": to_printable(str(self.notes.get("data") or "not stated in its file"), 200),
            "licence": "Apache-2.0, comes with roadaware" if bundled else "not stated in its file",
            "digest": str(self.facts.get("digest", ""))[:16],
            "settings": f"{', '.join(self.network.config.tasks)}; {self.clips.fps:g} frames a second",
        }


def check_crowd_source(source: Source) -> Path:
    """The file of a source that can be looked at a second time.

    Raises:
        UsageError: if it is a camera, or a folder of images.
    """
    if source.live:
        raise UsageError(
            "--crowd needs a video file: it looks a second time, once the tubes are known, and a camera's frames do not "
            "come twice; record the camera, and watch the recording"
        )
    if source.path is None or not Path(source.path).is_file():
        raise UsageError("--crowd needs a video file, which has sound and a clock; these are images")
    return Path(source.path)


def open_crowd_questions(
    weights: Path | None, sentences: Sequence[str] = (), sounds: Sequence[str] = ()
) -> CrowdQuestions:
    """A network of crowds, with what it is asked.

    Args:
        weights: of the network, or the folder of a run that made it (default: the bundled one).
        sentences: to be found.
        sounds: to be listened for, of those that the network knows.

    Raises:
        UsageError: if no network is bundled and none is named, a sentence has no word, a sound is not known (names
            the nearest), or the network lacks the task.
        InputError, DamagedError: if the file is none of a network of crowds, or not whole.
    """
    path = BUNDLED if weights is None else weights
    if weights is None and not path.is_file():
        raise UsageError(
            "no network of crowds came with this installation; name its weights: --crowd model.safetensors\n  "
            "`roadaware train intellicare` makes one (docs/train.md, Networks of crowds)"
        )
    if path.is_dir():
        path = path / "model.safetensors"
    sentences = tuple(" ".join(text.split()) for text in sentences)
    if "" in sentences:
        raise UsageError("--find is empty: say what should be found, such as --find 'a man throws a stone'")
    from roadaware.models.crowd.grounding import WordReader
    from roadaware.models.crowd.network import open_crowd

    network, facts = open_crowd(path)
    known = network.config.tasks
    wanted: tuple[tuple[Task, str, tuple[str, ...]], ...] = (
        ("grounding", "--find", sentences),
        ("sound", "--listen", tuple(sounds)),
    )
    for task, option, asked in wanted:
        if asked and task not in known:
            raise UsageError(
                f"{option} needs a network with the task {task}; {to_printable(path.name, 60)} has {', '.join(known)}"
            )
    # The classes that are meant: `siren` stands for `siren (police)` and all others; the same one
    # twice is one question
    found: dict[str, None] = {}
    for sound in sounds:
        kinds = [label for label in network.vocabulary.sounds if label.startswith(f"{sound} (")]
        found |= dict.fromkeys([sound] if sound in network.vocabulary.sounds or not kinds else kinds)
    listened = tuple(found)
    network.vocabulary.find("sounds", listened)
    words = None
    if sentences:
        words = WordReader(network.vocabulary.words, network.config.max_tokens).encode(sentences)
    # From which scores on something is found, as the file says; the usual ones where it does not
    by_people = network.config.grounding == "people"
    notes = facts.get("notes")
    least = notes.get("least") if isinstance(notes, dict) else None
    usual = CrowdRule() if by_people else CrowdRule(sentence=CELLS)
    given = {
        name: float(value)
        for name, value in (least.items() if isinstance(least, dict) else ())
        if name in ("action", "relation", "sentence", "sound")
        and isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    }  # fmt: skip
    rule = replace(usual, **given)
    return CrowdQuestions(network, path, facts, _read_clips(facts), sentences, words, listened, rule)


def _read_clips(facts: dict[str, Any]) -> ClipConfig:
    """How films were looked at in training, as the file says; the usual way where it does not."""
    notes, usual = facts.get("notes"), ClipConfig()
    held = notes if isinstance(notes, dict) else {}

    def number(given: Any, low: float, high: float, default: float) -> float:
        good = isinstance(given, int | float) and not isinstance(given, bool) and low <= given <= high
        return float(given) if good else default

    size = held.get("size_px")
    sides = size if isinstance(size, list) and len(size) == 2 else usual.size_px
    around = int(number(held.get("track_frames"), 1, 1001, usual.track_frames))
    return ClipConfig(
        fps=number(held.get("fps"), 0.1, 120, usual.fps),
        size_px=(int(number(sides[0], 32, 4096, 360)), int(number(sides[1], 32, 4096, 640))),
        frames=int(number(held.get("frames"), 1, 1000, usual.frames)),
        most_frames=int(number(held.get("most_frames"), 1, 1000, usual.most_frames)),
        sentence_s=number(held.get("sentence_s"), 0.1, 3600, usual.sentence_s),
        track_frames=around if around % 2 else usual.track_frames,
    )


CELLS = 0.02
"""The least score of a sentence that is looked for in cells: four times that of a network without any idea, in a clip with
few frames."""


# Hearing alone, without a look.

_HEARD_RATE, _MOST_SOUND_S = 16_000, 7 * 24 * 3600.0


def hear_film(questions: CrowdQuestions, film: Path) -> pl.DataFrame:
    """`t_s`, `name` and `score`: how surely each sound is heard in the 3 s around a moment, wherever it comes from.

    It takes no image, and some hundredths of what `watch_crowd` takes. There are rows from the beginning of the sound track
    to its end; none without a sound track, and of a damaged one those up to there.

    Args:
        questions: whose sounds are listened for, every `rule.every_s`.
        film: a video. Times are seconds after its first image.

    Raises:
        UsageError: if the network is of the published form, which knows no classes of sounds.
        InputError: if it cannot be opened.
    """
    import torch

    from roadaware.models.crowd.sound import SECONDS, hear

    head: Any = questions.network.heads["sound"]
    columns = questions.network.vocabulary.find("sounds", questions.sounds)
    step_s, half_s = questions.rule.every_s, SECONDS / 2
    with contextlib.closing(VideoFile(film, SystemClock())) as video:
        start_s = video.start_s
    rows: list[tuple[float, str, float]] = []
    number, pieces = 0, _iterate_pieces(film)
    with torch.no_grad(), contextlib.suppress(MediaError):
        for first, held, whole in pieces:
            # Of a piece that goes on, moments whose 3 s reach beyond it come with the next one.
            until = first + len(held) - (0 if whole else round(half_s * _HEARD_RATE))
            while (middle := round((start_s + number * step_s) * _HEARD_RATE)) < until:
                around = round(half_s * _HEARD_RATE)
                wave = held[max(0, middle - around - first) : max(0, middle + around - first)]
                if len(wave):
                    scores = head.classify(hear(wave, _HEARD_RATE)[None])[0].sigmoid()
                    named = zip(questions.sounds, columns, strict=True)
                    rows.extend((number * step_s, name, float(scores[column])) for name, column in named)
                number += 1
    return pl.DataFrame(rows, {"t_s": pl.Float64, "name": pl.String, "score": pl.Float64}, orient="row")


def _iterate_pieces(film: Path) -> Iterator[tuple[int, Floats32, bool]]:
    """Pieces of the sound track that overlap by 3 s: place of the first sample, (n, 2) samples, and whether none follows.

    A gap in the track ends a piece, and what goes back in time is left out.
    """
    kept = 3 * _HEARD_RATE
    first, held, fresh = 0, np.zeros((0, 2), np.float32), list[Floats32]()
    fault: MediaError | None = None
    blocks = iterate_sound(film, _HEARD_RATE, _MOST_SOUND_S)
    while True:
        try:
            at, block = next(blocks)
        except StopIteration:
            break
        except MediaError as error:
            fault = error
            break
        end = first + len(held) + sum(map(len, fresh))
        if at > end + _HEARD_RATE // 10 and end > first:
            yield first, np.concatenate([held, *fresh]), True
            first, held, fresh = at, held[:0], []
        elif end == first:
            first = end = at
        if at < end - _HEARD_RATE // 10:
            continue
        fresh.append(block)
        if sum(map(len, fresh)) >= 10 * _HEARD_RATE:
            held, fresh = np.concatenate([held, *fresh]), []
            yield first, held, False
            first, held = first + max(0, len(held) - kept), held[-kept:]
    if fresh or len(held):
        yield first, np.concatenate([held, *fresh]), True
    if fault is not None:
        raise fault


# The second look.


class StoppedError(Exception):
    """Somebody asked to stop while the network looked."""


def watch_crowd(
    questions: CrowdQuestions,
    folder: Path,
    film: Path,
    *,
    frames: int,
    min_score: float = 0.0,
    stopped: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[str, Any]:
    """Ask a network about the film of a watch, and write a saved set for each task into its folder.

    Args:
        questions: and the network.
        folder: of the watch, whose tables and events are complete.
        film: the file that was watched.
        frames: of it that were watched, from the first on.
        min_score: boxes of tubes below it are passed over, as the watch does.
        stopped: asked between parts of the film whether to stop.
        progress: called with the parts done and the total.

    Returns:
        What was found, JSON-ready, for the summary: `says` has it in sentences.

    Raises:
        StoppedError: if it was asked to stop; nothing is written then.
        InputError: if the film cannot be read a second time.
        DiskError: if a set cannot be written.
    """
    network, clips, rule = questions.network, questions.clips, questions.rule
    scenes, looked, numbers = _read_people(folder, film, frames, min_score)
    whole = build_crowd_set(scenes, [looked], network.vocabulary, clips.fps)
    heard, sound_fault = _has_sound(film)
    parts = _cut_parts(whole.videos[0], questions, heard=heard)
    answers = _Answers()
    footing = Footing(CrowdSet(parts, whole.vocabulary, {}), None, clips.size_px)
    answerer = Answerer(network, footing, clips, every_box=False)
    for number, part in enumerate(parts):
        if stopped():
            raise StoppedError
        answers.add(part, number, answerer)
        if progress is not None:
            progress(number + 1, len(parts), "parts of the film")
    best = [answers.best_sentence(n) for n in range(len(questions.sentences))]
    loudest = [answers.best_sound(n) for n in range(len(questions.sounds))] if heard else []
    _write_sets(folder / CROWD, questions, scenes, whole, footing.of, answers, best, loudest)
    found: dict[str, Any] = {
        "network": questions.describe()["name"],
        "tasks": list(network.config.tasks),
        "frames": len(whole.videos[0]),
        "fps": clips.fps,
        "people": len(set(whole.videos[0].tube[whole.videos[0].person].tolist())),
        "pairs_left_out": answerer.left_out,
        "sound_track": heard,
        "sound_fault": sound_fault,
        "least": {"action": rule.action, "relation": rule.relation, "sentence": rule.sentence, "sound": rule.sound},
        "actions": answers.list_actions(network.vocabulary.actions, rule.action),
        "relations": answers.list_relations(network.vocabulary.predicates, rule.relation, numbers, whole.videos[0]),
        "sentences": [_describe_sentence(questions, n, each, footing.of) for n, each in enumerate(best)],
        "sounds": [
            answers.describe_sound(questions, n) for n in range(len(questions.sounds))
        ],
    }  # fmt: skip
    found["says"] = describe_crowd(found)
    return found


def _read_people(
    folder: Path, film: Path, frames: int, min_score: float
) -> tuple[Scenes, Film, dict[int, int]]:
    """The tubes of people that a watch reported, as scenes; the film; and tube to its number in the events."""
    tables = open_predictions(folder / TABLES)
    people: dict[int, bool] = {}
    for event in read_events(folder / EVENTS):
        agents = (event.get("labels") or {}).get("agent")
        if event.get("tube") is not None and agents is not None:
            # The newest word counts: what a tube is becomes surer.
            people[int(event["tube"])] = any(name.lower() in PEOPLE for name in agents)
    with VideoReader(film) as reader:
        rate, count = reader.fps, len(reader)
        height, width = reader.height_px, reader.width_px
    count = max(1, min(count, frames))
    video = str(tables.videos["video"][0])
    row = {"width_px": width, "height_px": height, "fps": rate, "n_frames": count}
    kept = [str(number) for number, person in people.items() if person]
    boxes = pl.DataFrame(
        schema={"box": pl.Int64, "video": pl.String, "frame": pl.Int64, "tube": pl.Int64}
        | dict.fromkeys(CORNERS, pl.Float32)
    )
    numbers: dict[int, int] = {}
    if kept and "tube" in tables.boxes.columns and "name" in tables.tubes.columns:
        tubes = tables.tubes.filter(pl.col("name").cast(pl.String).is_in(kept))
        numbers = {tube: int(name) for tube, name in tubes.select("tube", "name").iter_rows()}
        boxes = tables.boxes.filter(pl.col("tube").is_in(list(numbers)), pl.col("score") >= min_score)
        boxes = boxes.select("box", pl.col("video").cast(pl.String), "frame", "tube", *CORNERS)
    tubes = pl.DataFrame(
        {"tube": list(numbers), "video": [video] * len(numbers), "name": [str(n) for n in numbers.values()]},
        schema={"tube": pl.Int64, "video": pl.String, "name": pl.String},
    )
    scenes = Scenes(
        videos=build_stream_row(video, row), boxes=boxes, tubes=tubes, meta=Meta("a watch", "not stated")
    )
    return scenes, Film(video, str(film), count, height, width), numbers


def _has_sound(film: Path) -> tuple[bool, str]:
    """Whether a film has a sound track that can be read, and else why not."""
    try:
        read_sound(film, 0.0, 0.05)
    except NoSoundError:
        return False, "the film has no sound track"
    except InputError as error:
        return False, f"the sound of the film cannot be read: {error.message}"
    return True, ""


def _cut_parts(video: CrowdVideo, questions: CrowdQuestions, *, heard: bool) -> list[CrowdVideo]:
    """A film in parts, each with the people of its own frames, and what is asked of it.

    A sentence is looked for in clips of the length that was learnt, of which each begins in the middle of the one before;
    those that begin in a part reach over its end.
    """
    total, most = len(video), max(1, round(questions.clips.sentence_s * questions.clips.fps))
    hop = max(1, most // 2)
    begins = [start for start in range(0, total, hop) if start == 0 or start + most - hop < total]
    step = max(1, round(questions.rule.every_s * questions.clips.fps))
    known = questions.network.vocabulary.find("sounds", questions.sounds)
    parts = []
    for low in range(0, total, _PART_SLOTS):
        high = min(total, low + _PART_SLOTS)
        own = [start for start in begins if low <= start < high] if questions.sentences else []
        end = max([high, *(min(total, start + most) for start in own)])
        rows = video.key & (video.slot >= low) & (video.slot < high)
        part = replace(
            video, frames=video.frames[low:end], box=video.box[rows], frame=video.frame[rows],
            slot=video.slot[rows] - low, key=video.key[rows], corners=video.corners[rows], tube=video.tube[rows],
            person=video.person[rows], actions=video.actions[rows], sound=video.sound[rows], queries=[], sounds=[],
            _tracks={},
        )  # fmt: skip
        for start in own:
            last = min(total, start + most)
            clip = {
                "segment_start_frame": video.to_table(start),
                "segment_end_frame": video.to_table(last - 1) + 1,
            }
            part.queries.extend(
                {"query": n, "text": text, **clip} for n, text in enumerate(questions.sentences)
            )
        if heard:
            for slot in range(-low % step, high - low, step):
                at = part.seconds(slot)
                part.sounds.extend(
                    {"sound": n, "class": place, "slot": slot, "start_s": at, "end_s": at}
                    for n, place in enumerate(known)
                )
        parts.append(part)
    return parts


@dataclass(frozen=True)
class SoundMoment:
    """A sound at a moment of the film.

    Args:
        sound: number of the question.
        t_s: in seconds after frame 0 of the film.
        frame: of the tables.
        score: in [0, 1] that it is heard and its source seen; None where the network does not score that.
        box: x1, y1, x2, y2 of the source in pixels of the film.
    """

    sound: int
    t_s: float
    frame: int
    score: float | None
    box: tuple[float, float, float, float]


@dataclass(eq=False)
class _Answers:
    """What the parts of a film gave, gathered."""

    boxes: list[Ints] = field(default_factory=list)
    actions: list[Floats32] = field(default_factory=list)
    tubes: list[Ints] = field(default_factory=list)
    relations: list[tuple[int, int, int, int, int, float]] = field(default_factory=list)
    sentences: list[GroundedQuery] = field(default_factory=list)
    moments: list[SoundMoment] = field(default_factory=list)
    _best: dict[int, tuple[float, Floats32, SoundMoment]] = field(default_factory=dict)

    def add(self, part: CrowdVideo, number: int, answerer: Answerer) -> None:
        """Ask about a part; of series of pairs what lasts is kept, of maps of a sound the best."""
        found = answerer.ask(number)
        self.boxes.append(found.boxes)
        self.actions.append(found.actions)
        tubes = dict(zip(part.box.tolist(), part.tube.tolist(), strict=True))
        self.tubes.append(np.array([tubes[box] for box in found.boxes.tolist()], dtype=np.int64))
        self.relations += decode_relations(part, found.relations, answerer.rule)
        self.sentences += found.sentences
        for row, each in zip(part.sounds, found.sounds, strict=True):
            box = find_source(each.map, part.film)
            frame, at = part.to_table(row["slot"]), float(row["start_s"])
            moment = SoundMoment(each.sound, at, frame, each.heard, box)
            strength = float(each.map.max()) if each.heard is None else each.heard
            self.moments.append(moment)
            if each.sound not in self._best or strength > self._best[each.sound][0]:
                self._best[each.sound] = (strength, each.map, moment)

    def best_sentence(self, query: int) -> GroundedQuery:
        """The answer of the clip in which a sentence fits best; of equal ones the first."""
        return max((each for each in self.sentences if each.query == query), key=lambda each: each.score)

    def best_sound(self, sound: int) -> tuple[Floats32, SoundMoment]:
        """The map of the moment at which a sound is heard best, and that moment."""
        _, map, moment = self._best[sound]
        return map, moment

    def list_actions(self, labels: Sequence[str], least: float) -> list[dict[str, Any]]:
        """Of each action that was found how many do it, the most frequent first."""
        scores, tubes = np.concatenate(self.actions), np.concatenate(self.tubes)
        found = []
        for place, label in enumerate(labels):
            doing = scores[:, place] >= least
            if doing.any():
                people = len(np.unique(tubes[doing]))
                best = round(float(scores[:, place].max()), 4)
                found.append({"action": label, "people": people, "best": best})
        return sorted(found, key=lambda each: (-int(each["people"]), str(each["action"])))

    def list_relations(
        self, labels: Sequence[str], least: float, numbers: dict[int, int], video: CrowdVideo
    ) -> list[dict[str, Any]]:
        """Relations that were found, the strongest first; people have the numbers of the events."""
        ranked = sorted((each for each in self.relations if each[5] >= least), key=lambda each: -each[5])
        return [
            {
                "subject": numbers[subject], "object": numbers[other], "predicate": labels[predicate],
                "begin_s": _to_seconds(video, start), "end_s": _to_seconds(video, end), "score": round(score, 4),
            }
            for subject, other, predicate, start, end, score in ranked
        ]  # fmt: skip

    def describe_sound(self, questions: CrowdQuestions, sound: int) -> dict[str, Any]:
        """When a sound is heard, and where its source is at the best moment."""
        row: dict[str, Any] = {"sound": questions.sounds[sound], "found": False, "score": None, "moments": 0}
        if sound not in self._best:
            return row
        _, best = self.best_sound(sound)
        moments, least = [each for each in self.moments if each.sound == sound], questions.rule.sound
        return row | {
            "found": best.score is None or best.score >= least,
            "score": None if best.score is None else round(best.score, 4),
            "at_s": round(best.t_s, 2),
            "x_px": round((best.box[0] + best.box[2]) / 2),
            "y_px": round((best.box[1] + best.box[3]) / 2),
            "moments": len(moments),
            "heard": sum(each.score is not None and each.score >= least for each in moments),
        }


def find_source(map: Floats32, film: Film) -> tuple[float, float, float, float]:
    """x1, y1, x2, y2 in pixels of a film of the cells around the peak of a map that have half of its height or more.

    Args:
        map: (h, w) of 0 or more, over the image.
        film: whose size counts.
    """
    from scipy.ndimage import label

    areas, _ = label(map >= 0.5 * map.max())
    rows, columns = np.nonzero(areas == areas[np.unravel_index(int(map.argmax()), map.shape)])
    wide, high = film.width / map.shape[1], film.height / map.shape[0]
    low, end = (
        (columns.min() * wide, rows.min() * high),
        ((columns.max() + 1) * wide, (rows.max() + 1) * high),
    )
    return float(low[0]), float(low[1]), float(end[0]), float(end[1])


def _to_seconds(video: CrowdVideo, frame: int) -> float:
    return round((video.origin + video.ratio * frame) / video.fps, 2)


def _describe_sentence(
    questions: CrowdQuestions, number: int, best: GroundedQuery, of: CrowdSet
) -> dict[str, Any]:
    video = of.videos[best.video]
    start = video.to_table(int(best.slots[best.span[0]]))
    end = video.to_table(int(best.slots[best.span[1] - 1]) + 1)
    # By chance alone each of n frames is the first, or the last, with 1 / n.
    least = max(questions.rule.sentence, min(0.5, 4 / len(best.slots) ** 2))
    unknown, cut = 0.0, 0
    if questions.words is not None:
        unknown, cut = float(questions.words.unknown[number]), int(questions.words.cut[number])
    return {
        "sentence": questions.sentences[number],
        "found": best.score >= least and unknown < 1,
        "least": round(least, 4),
        "score": round(best.score, 4),
        "begin_s": _to_seconds(video, start),
        "end_s": _to_seconds(video, end),
        "unknown": round(unknown, 3),
        "cut": cut,
    }


# What is written.


def _write_sets(
    folder: Path,
    questions: CrowdQuestions,
    scenes: Scenes,
    whole: CrowdSet,
    parts: CrowdSet,
    answers: _Answers,
    best: Sequence[GroundedQuery],
    loudest: Sequence[tuple[Floats32, SoundMoment]],
) -> None:
    """A saved set for each task, as the evaluator of that task takes it."""
    tasks = questions.network.config.tasks
    found: dict[Task, Predictions] = {}
    if "actions" in tasks:
        found["actions"] = build_action_predictions(scenes, whole, [_fill_boxes(whole.videos[0], answers)])
    if "relations" in tasks:
        found["relations"] = build_relation_predictions(scenes, whole, [_join_relations(answers.relations)])
    if questions.sentences:
        tables = build_grounding_predictions(scenes, parts, best)
        texts = pl.DataFrame(
            {"query": list(range(len(questions.sentences))), "text": list(questions.sentences)}
        )
        found["grounding"] = tables.with_tables(
            queries=tables.queries.join(texts, on="query", maintain_order="left")
        )
    if loudest:
        video, moments = whole.videos[0].film.video, [moment for _, moment in loudest]
        rows = pl.DataFrame(
            {
                "sound": list(range(len(loudest))),
                "name": list(questions.sounds),
                "frame": [each.frame for each in moments],
                "t_s": [each.t_s for each in moments],
                "label": questions.network.vocabulary.find("sounds", questions.sounds),
            }
        )
        asked = scenes.with_tables(sounds=rows.select("sound", "name", video=pl.lit(video)))
        maps = build_sound_predictions(asked, whole, [(n, map) for n, (map, _) in enumerate(loudest)])
        found["sound"] = maps.with_tables(
            sounds=maps.sounds.join(rows.drop("name"), on="sound", maintain_order="left")
        )
    for task, tables in found.items():
        save(tables, folder / task, overwrite=True)
    if loudest:
        write_atomically(folder / MOMENTS, _encode_moments(answers.moments, questions.sounds))


def _encode_moments(moments: Sequence[SoundMoment], names: Sequence[str]) -> bytes:
    """The table of all moments at which sounds were asked for, as Parquet."""
    table = pl.DataFrame(
        {
            "sound": [each.sound for each in moments],
            "name": [names[each.sound] for each in moments],
            "frame": [each.frame for each in moments],
            "t_s": [each.t_s for each in moments],
            "score": pl.Series([each.score for each in moments], dtype=pl.Float64),
            **{side: [each.box[k] for each in moments] for k, side in enumerate(CORNERS)},
        }
    )
    stream = io.BytesIO()
    table.write_parquet(stream)
    return stream.getvalue()


def _fill_boxes(video: CrowdVideo, answers: _Answers) -> tuple[Ints, Floats32]:
    """Boxes of people with scores: those of the nearest frame that was looked at in which somebody has a box.

    A tube without a box in any frame that was looked at is not answered for.
    """
    asked, scores = np.concatenate(answers.boxes), np.concatenate(answers.actions)
    place = {box: row for row, box in enumerate(asked.tolist())}
    boxes, chosen = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for tube in np.unique(video.tube).tolist():
        own = np.flatnonzero(video.tube == tube)
        keyed = own[[box in place for box in video.box[own].tolist()]]
        if not len(keyed):
            continue
        # Rows come by rising frame.
        frames = video.frame[keyed]
        near = np.searchsorted((frames[1:] + frames[:-1]) / 2, video.frame[own])
        boxes.append(video.box[own])
        chosen.append(np.array([place[box] for box in video.box[keyed].tolist()], dtype=np.int64)[near])
    return np.concatenate(boxes), scores[np.concatenate(chosen)]


def _join_relations(
    rows: Sequence[tuple[int, int, int, int, int, float]],
) -> list[tuple[int, int, int, int, int, float]]:
    """Relations of the parts of a film, those that go on over a cut joined; the strongest first."""
    joined: dict[tuple[int, int, int], list[list[float]]] = {}
    for subject, other, predicate, start, end, score in sorted(rows, key=lambda each: each[:4]):
        held = joined.setdefault((subject, other, predicate), [])
        if held and held[-1][1] == start:
            before, length = held[-1], end - start
            share = length / (end - before[0])
            held[-1] = [before[0], end, before[2] * (1 - share) + score * share]
        else:
            held.append([start, end, score])
    found = [
        (*who, int(start), int(end), score) for who, held in joined.items() for start, end, score in held
    ]
    found.sort(key=lambda each: (-each[5], each[:5]))
    return found


# What was found, in sentences.


def describe_crowd(found: dict[str, Any]) -> list[str]:
    """What a network of crowds found, and where it found nothing, in sentences.

    Args:
        found: as `watch_crowd` gives it, but for `says`.
    """
    least, people, said = found["least"], found["people"], []
    count = "one person" if people == 1 else f"{people:,} people"
    if not people and {"actions", "relations"} & set(found["tasks"]):
        said.append(
            "No person was found, so that nobody was asked about: actions and relations need the detector's tubes of people."
        )
    if people and "actions" in found["tasks"]:
        named = [f"{each['action']} ({each['people']})" for each in found["actions"][:_MOST_LISTED]]
        more = len(found["actions"]) - len(named)
        if named:
            rest = f" and {more} more" if more > 0 else ""
            said.append(f"Of {count}, how many do what: {', '.join(named)}{rest}.")
        else:
            said.append(f"No action of {count} scores {least['action']:g} or more.")
    if people and "relations" in found["tasks"]:
        said += _describe_relations(found["relations"], people, least["relation"])
    if found["pairs_left_out"]:
        said.append(
            f"{found['pairs_left_out']:,} pairs of people were not asked about, in frames with more near pairs than the "
            "network takes: the nearest ones were."
        )
    said += [_say_sentence(each) for each in found["sentences"]]
    said += [_say_sound(each, found, least["sound"]) for each in found["sounds"]]
    return said


def _describe_relations(relations: Sequence[dict[str, Any]], people: int, least: float) -> list[str]:
    if people < 2:
        return ["Relations need two people; one was found."]
    if not relations:
        return [f"No relation between people scores {least:g} or more."]
    shown = [
        f"#{each['subject']} {each['predicate']} #{each['object']} ({_clock(each['begin_s'])} to {_clock(each['end_s'])})"
        for each in relations[:_MOST_LISTED]
    ]
    more = len(relations) - len(shown)
    return [
        f"Relations, the strongest first: {'; '.join(shown)}{f'; and {more:,} more' if more > 0 else ''}."
    ]


def _say_sentence(each: dict[str, Any]) -> str:
    text = to_printable(each["sentence"], 120)
    when = f"{_clock(each['begin_s'])} to {_clock(each['end_s'])}"
    if each["found"]:
        said = f"'{text}': {when}, score {each['score']:.3f}."
    elif each["unknown"] >= 1:
        said = f"'{text}': not found, since the network has learnt none of its words."
    else:
        said = f"'{text}': not found; its best place, {when}, scores {each['score']:.3f}, below {each['least']:g}."
    if 0 < each["unknown"] < 1:
        strange = f" {each['unknown']:.0%} of the pieces of this sentence are of words that the network has not learnt"
        said += strange + (": take the answer for a guess." if each["unknown"] >= _STRANGE else ".")
    if each["cut"]:
        said += f" It is too long: its last {each['cut']:,} pieces were not read."
    return said


def _say_sound(each: dict[str, Any], found: dict[str, Any], least: float) -> str:
    if not found["sound_track"]:
        return f"{each['sound']}: not listened for, since {found['sound_fault']}."
    if not each.get("moments"):
        return f"{each['sound']}: not listened for, the film is too short."
    at = f"at {_clock(each['at_s'])}"
    if each["score"] is None:
        return (
            f"{each['sound']}: the network does not say whether it is heard; if so, it comes from pixel ({each['x_px']}, "
            f"{each['y_px']}) {at}."
        )
    if not each["found"]:
        return (
            f"{each['sound']}: not heard, or its source is not seen; the best score, {at}, is {each['score']:.3f}, below "
            f"{least:g}."
        )
    return (
        f"{each['sound']}: heard in {each['heard']:,} of {each['moments']:,} moments; best {at}, score "
        f"{each['score']:.3f}, from pixel ({each['x_px']}, {each['y_px']})."
    )


def _clock(seconds: float) -> str:
    # Rounded first, so that 59.96 s is a minute, not 60.0 s
    minutes, rest = divmod(round(max(0.0, seconds), 1), 60)
    return f"{minutes:.0f}:{rest:04.1f}"
