"""What a network of crowds sees, hears and answers of videos: maps that are made once and kept, sounds, and answers.

Torch is imported when something is asked, not before.
"""

from __future__ import annotations

import hashlib
import io
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats32, Ints
from roadaware.errors import InputError
from roadaware.io.folders import write_bytes
from roadaware.io.video import CutOffError, NoSoundError, iterate_sound
from roadaware.metrics.grounding import decode_span
from roadaware.models.crowd.config import Task
from roadaware.scenes.tables import Predictions, Scenes
from roadaware.tasks.crowd import (
    CrowdSet,
    CrowdVideo,
    GroundedQuery,
    RelationRule,
    build_action_predictions,
    build_crowd_set,
    build_grounding_predictions,
    build_relation_predictions,
    build_sound_predictions,
    clip_around,
    decode_relations,
    has_others,
    list_people,
    scale_boxes,
    spread,
)
from roadaware.tasks.videos import Film, Footage

if TYPE_CHECKING:
    from torch import Tensor

    from roadaware.models.crowd.grounding import Encoded
    from roadaware.models.crowd.network import IntelliCare

_log = logging.getLogger("roadaware")
_MULTIPLE = 32
_AT_ONCE = 32
"""Frames that the trunk sees at once where maps are made."""
_LONGEST_S = 4 * 3600.0
_SLOTS_AT_ONCE, _BEFORE, _MOMENTS_AT_ONCE, _SENTENCES_AT_ONCE = 64, 8, 16, 16
_PICTURE_CELL_PX, _CROPS_AT_ONCE = 8, 64
_LIKELY, _MOST_SPANS = 0.01, 2048
"""Who may be spoken of by at least so much has a say in when it happens; and of so many spans the overlaps are measured."""
_SMOOTH_SLOTS = 4
"""Scores of actions and relations are means over so many frames that are looked at on either side: acts last some seconds."""


@dataclass(frozen=True)
class ClipConfig:
    """How videos are looked at; the defaults are those of the bundled recipes.

    Args:
        fps: frames a second that are looked at.
        size_px: height and width that images are made to fit in; they are padded to multiples of 32.
        frames: of a clip, but for sentences.
        most_frames: of a clip that a sentence is looked for in, evenly spread over it.
        sentence_s: length of the clips of a film that a sentence is looked for in.
        track_frames: around each frame, in which it is known where a person is; an odd number.
    """

    fps: float = 5.0
    size_px: tuple[int, int] = (360, 640)
    frames: int = 8
    most_frames: int = 100
    sentence_s: float = 12.0
    track_frames: int = 41


# What is seen: images, and the maps before the first dynamic layer.


def fit_size(height: int, width: int, most: tuple[int, int]) -> tuple[int, int]:
    """Height and width of an image that was made to fit; a smaller one stays as it is.

    Args:
        height, width: of the image.
        most: height and width that it is made to fit in.
    """
    share = min(1.0, most[0] / height, most[1] / width)
    return max(1, round(share * height)), max(1, round(share * width))


def pad_size(size: tuple[int, int]) -> tuple[int, int]:
    """The next multiples of 32 pixels."""
    return -(-size[0] // _MULTIPLE) * _MULTIPLE, -(-size[1] // _MULTIPLE) * _MULTIPLE


def normalise(images: npt.NDArray[np.uint8] | Tensor, size: tuple[int, int]) -> Tensor:
    """(3, T, H, W) images as the trunk takes them, padded with zeros to the right and below.

    Args:
        images: (T, h, w, 3) uint8.
        size: H and W.
    """
    import torch
    from torch.nn import functional

    from roadaware.models.retinanet3d.detector import Fit

    held = torch.as_tensor(images).float() / 255
    held = (held - torch.tensor(Fit().mean)) / torch.tensor(Fit().std)
    bottom, right = size[0] - held.shape[1], size[1] - held.shape[2]
    return functional.pad(held.permute(3, 0, 1, 2), (0, right, 0, bottom))


def normalise_crops(crops: Tensor) -> Tensor:
    """(n, 3, rows, columns) crops as `people.CropLayers` takes them.

    Args:
        crops: the same in 0 to 255, as `Footing.crops` gives them.
    """
    from roadaware.models.refine import MEAN, STD

    mean, std = (crops.new_tensor(each, dtype=crops.float().dtype)[:, None, None] for each in (MEAN, STD))
    return (crops.float() / 255 - mean) / std


def measure_reach(network: IntelliCare) -> tuple[int, int]:
    """Frames before and after that a frame of the map before the dynamic layers can depend on, at most."""
    from roadaware.models.retinanet3d.layers import TimeConv

    tail = tuple(f"{name}." for name, _ in network.trunk.steps()[network.trunk.cut :])
    kernels = [
        part
        for name, part in network.trunk.named_modules()
        if isinstance(part, TimeConv) and not f"{name}.".startswith(tail)
    ]
    before = sum(part.kernel_size[0] - 1 for part in kernels)
    return before, 0 if all(part.causal for part in kernels) else before


def name_stem(network: IntelliCare) -> list[str]:
    """Names of the tensors before the dynamic layers."""
    tail = tuple(f"{name}." for name, _ in network.trunk.steps()[network.trunk.cut :])
    return [f"trunk.{name}" for name in network.trunk.state_dict() if not name.startswith(tail or ("\0",))]


class Footing:
    """What is seen and heard of videos: images, maps before the dynamic layers, and sounds.

    Maps and sounds are kept in a folder, a file for each video, named by what it was made of: by weights, size, rate and
    the file of the video. Each is whole or not there, so that work that was cut off goes on.

    Args:
        of: the videos.
        folder: of what is kept; None to keep nothing, so that maps are made whenever they are asked for.
        size_px: height and width that images are made to fit in.
        cache_bytes: of images that are kept in memory.
    """

    def __init__(
        self, of: CrowdSet, folder: Path | None, size_px: tuple[int, int], cache_bytes: int = 0
    ) -> None:
        self.of, self.folder = of, folder
        films = [video.film for video in of.videos]
        self.sizes = [fit_size(film.height, film.width, size_px) for film in films]
        self.footage = Footage(films, self.sizes, cache_bytes)
        self._weights = ""
        self._open: dict[Path, npt.NDArray[Any]] = {}
        self._waves: dict[str, npt.NDArray[Any]] = {}
        self._last_colours: dict[str, npt.NDArray[Any]] = {}

    def use(self, network: IntelliCare) -> None:
        """Say whose maps are kept.

        Args:
            network: with the weights that it has from now on before its dynamic layers.
        """
        from roadaware.models.tensor_files import digest_tensors

        state = network.state_dict()
        names = name_stem(network)
        self._weights = digest_tensors({name: state[name].cpu() for name in names})

    def scale(self, video: int) -> tuple[float, float]:
        """Pixels of the network's image in one of the video, in width and height."""
        film, (height, width) = self.of.videos[video].film, self.sizes[video]
        return width / film.width, height / film.height

    def pictures(self, video: int, slots: Ints) -> Tensor:
        """(T, h, w, 3) uint8 images of slots, rising or repeated."""
        import torch

        frames = self.of.videos[video].frames[slots].tolist()
        return torch.from_numpy(np.stack(self.footage.pictures(video, frames)))

    def _path(self, video: int, what: str, *made_of: Any) -> Path | None:
        if self.folder is None:
            return None
        film = self.of.videos[video].film
        stamp = (film.picture(film.frames[0]) if film.is_pictures else Path(film.path)).stat()
        known = [film.video, film.n_frames, stamp.st_size, stamp.st_mtime_ns, *made_of]
        name = hashlib.blake2b(json.dumps(known).encode(), digest_size=16).hexdigest()
        return self.folder / f"{name}.{what}.npy"

    def _map_path(self, video: int) -> Path | None:
        frames = self.of.videos[video].frames
        seen = hashlib.blake2b(frames.astype(np.int64).tobytes(), digest_size=8).hexdigest()
        return self._path(video, "map", self._weights, self.sizes[video], seen)

    def has_map(self, video: int) -> bool:
        """Whether the map of a video is kept."""
        path = self._map_path(video)
        return path is not None and self._read(path) is not None

    def make_map(self, video: int, network: IntelliCare) -> Tensor:
        """(C, T, h, w) float16 the map of a video before the dynamic layers; it is kept where there is a folder.

        Args:
            video: its number.
            network: as `use` was told.
        """
        import torch

        path = self._map_path(video)
        kept = None if path is None else self._read(path)
        if kept is not None:
            return torch.from_numpy(np.array(kept))
        device = next(network.parameters()).device
        count, padded = len(self.of.videos[video]), pad_size(self.sizes[video])
        (before, after), parts = measure_reach(network), []
        was = network.training
        network.eval()
        with torch.no_grad():
            for start in range(0, count, _AT_ONCE):
                low, high = max(0, start - before), min(count, start + _AT_ONCE + after)
                images = normalise(self.pictures(video, np.arange(low, high)), padded)
                found = network.stem(images.unsqueeze(0).to(device))[0]
                end = min(count, start + _AT_ONCE)
                parts.append(found[:, start - low : end - low].half().cpu())
        network.train(was)
        whole = torch.cat(parts, dim=1).contiguous()
        if path is not None:
            self._write(path, whole.numpy())
        return whole

    def map(self, video: int, slots: Ints) -> Tensor:
        """(C, T, h, w) float16 the kept map of slots.

        Raises:
            InputError: if it is not kept.
        """
        import torch

        path = self._map_path(video)
        kept = None if path is None else self._read(path)
        if kept is None:
            raise InputError("the map of this video was not made", where=self.of.videos[video].film.video)
        return torch.from_numpy(np.ascontiguousarray(kept[:, slots]))

    def colours(self, video: int, slots: Ints) -> Tensor:
        """(12, T, h, w) the colours of cells in -1 to 1, see `models.crowd.grounding.measure_colours`; kept like maps."""
        import torch

        from roadaware.models.crowd.grounding import measure_colours

        film, padded = self.of.videos[video].film, pad_size(self.sizes[video])
        frames = self.of.videos[video].frames
        seen = hashlib.blake2b(frames.astype(np.int64).tobytes(), digest_size=8).hexdigest()
        path = self._path(video, "colours", self.sizes[video], seen)
        own = f"{film.path}:{seen}"
        kept = self._last_colours.get(own) if path is None else self._read(path)
        if kept is None:
            parts = [
                measure_colours(
                    self.pictures(video, np.arange(start, min(len(frames), start + _AT_ONCE))), padded
                )
                for start in range(0, len(frames), _AT_ONCE)
            ]
            kept = torch.cat(parts, dim=1).numpy()
            if path is not None:
                self._write(path, kept)
            else:
                self._last_colours = {own: kept}
        return torch.from_numpy(np.ascontiguousarray(kept[:, slots])).float() / 127.5 - 1

    def crops(self, video: int, slots: Ints, boxes: Floats32) -> npt.NDArray[np.uint8]:
        """(n, 3, rows, columns) crops of people, see `normalise_crops`; kept like maps.

        Args:
            video: its number.
            slots: (n,) which image each is cut from.
            boxes: (n, 4) corners in pixels of the video.
        """
        import torch

        from roadaware.models.crowd.people import CROPS
        from roadaware.models.refine import MEAN, STD, cut_crops

        frames = self.of.videos[video].frames[slots].astype(np.int64)
        where = hashlib.blake2b(frames.tobytes() + boxes.astype(np.float32).tobytes(), digest_size=16)
        shape = (*CROPS.size_px, CROPS.context)
        path = self._path(video, "crops", self.sizes[video], where.hexdigest(), shape)
        try:
            # They are read whole: files that stay open would be too many
            if path is not None:
                kept: npt.NDArray[np.uint8] = np.load(path, allow_pickle=False)
                return kept
        except (OSError, ValueError, EOFError):
            pass
        asked, found = self.scaled(video, boxes), np.zeros((len(slots), 3, *CROPS.size_px), dtype=np.uint8)
        mean, std = (torch.tensor(each)[:, None, None] for each in (MEAN, STD))
        for slot in np.unique(slots).tolist():
            own = np.flatnonzero(slots == slot)
            image = normalise(self.pictures(video, np.array([slot])), pad_size(self.sizes[video]))[:, 0]
            crops, _ = cut_crops(image[None], asked[own], CROPS)
            found[own] = ((crops * std + mean) * 255).clamp(0, 255).round().to(torch.uint8).numpy()
        if path is not None:
            self._write(path, found)
        return found

    def shapes(self, video: int, boxes: Floats32) -> Tensor:
        """(n, 4) what crops do not show of boxes (n, 4), see `models.refine.describe_shape`."""
        from roadaware.models.refine import describe_shape

        return describe_shape(self.scaled(video, boxes), pad_size(self.sizes[video])[0])

    def scaled(self, video: int, boxes: Floats32) -> Tensor:
        """(n, ..., 4) boxes of a video in pixels of the network's image."""
        import torch

        return torch.from_numpy(scale_boxes(boxes, self.scale(video)))

    def sound(self, video: int) -> npt.NDArray[np.int16] | None:
        """(n, 2) samples of a film's sound at 16,000 a second, from frame 0 on; None where it has none."""
        film = self.of.videos[video].film
        if film.is_pictures:
            return None
        path = self._path(video, "sound", self.of.videos[video].begins_s)
        kept = self._waves.get(film.path) if path is None else self._read(path)
        if kept is None:
            kept = _read_wave(self.of.videos[video])
            if path is not None:
                self._write(path, kept)
            else:
                # The last one alone: questions come video by video where nothing is kept, and parts of a film
                # have its sound in common.
                self._waves = {film.path: kept}
        return kept if len(kept) else None

    def examples(self, video: int, at_s: float, side: int | None = None) -> Tensor | None:
        """(2, S, 96, 64) log-mels of the 3 s around a moment; None where nothing is heard there.

        Args:
            video: its number.
            at_s: the moment, in seconds after frame 0.
            side: the channel that takes the place of both (default: each for itself).
        """
        from roadaware.models.crowd.sound import RATE, SECONDS, hear

        wave = self.sound(video)
        if wave is None:
            return None
        first, last = (round((at_s + sign * SECONDS / 2) * RATE) for sign in (-1, 1))
        piece = wave[max(0, first) : max(0, last)]
        if not len(piece):
            return None
        heard = piece.astype(np.float32) / 32767
        return hear(heard[:, [side, side]] if side is not None else heard, RATE)

    def _read(self, path: Path) -> npt.NDArray[Any] | None:
        """What is kept, not yet read from the disk; None where it is not there, or not whole."""
        if path in self._open:
            return self._open[path]
        try:
            found: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return None
        self._open[path] = found
        return found

    def _write(self, path: Path, array: npt.NDArray[Any]) -> None:
        buffer = io.BytesIO()
        np.save(buffer, array, allow_pickle=False)
        write_bytes(path, buffer.getvalue())

    def __getstate__(self) -> dict[str, Any]:
        """Everything but open files: each process opens its own."""
        return {**self.__dict__, "_open": {}}


def _read_wave(video: CrowdVideo) -> npt.NDArray[np.int16]:
    """(n, 2) the sound of a film from frame 0 on at 16,000 samples a second; of length 0 where it has none."""
    from roadaware.models.crowd.sound import RATE

    seconds = min(_LONGEST_S, video.film.n_frames / video.fps + 1.0)
    first, begins_s = round(video.begins_s * RATE), max(0.0, video.begins_s)
    wave = np.zeros((round(seconds * RATE), 2), dtype=np.int16)
    end = 0
    try:
        for place, block in iterate_sound(Path(video.film.path), RATE, begins_s + seconds, begins_s):
            at = place - first
            low, high = max(0, at), min(len(wave), at + len(block))
            if low < high:
                wave[low:high] = np.clip(block[low - at : high - at], -1, 1) * 32767
                end = max(end, high)
    except NoSoundError:
        return wave[:0]
    except CutOffError as error:
        _log.warning("%s: its sound is heard as far as it is whole: %s", video.film.video, error.message)
    return wave[:end]


# What the network answers, as Predictions.


@dataclass(frozen=True, eq=False)
class LocatedSound:
    """Where a sound comes from.

    Args:
        sound: its number.
        map: (h, w) over the image, in cells of 8 pixels of the network's image.
        heard: score in [0, 1] that it is heard and its source seen; None where the network does not score that.
    """

    sound: int
    map: Floats32
    heard: float | None


@dataclass(eq=False)
class VideoAnswers:
    """Everything that a network answers about a video; empty where the network lacks the task.

    Args:
        boxes: (n,) numbers of the boxes that were asked about.
        actions: (n, classes) their scores in [0, 1].
        relations: subject and object to (T, predicates) scores in [0, 1] of each slot, 0 where it was not asked.
        sentences: one answer for each row of the video's sentences.
        sounds: one answer for each row of the video's sounds.
    """

    boxes: Ints
    actions: Floats32
    relations: dict[tuple[int, int], Floats32] = field(default_factory=dict)
    sentences: list[GroundedQuery] = field(default_factory=list)
    sounds: list[LocatedSound] = field(default_factory=list)


class Answerer:
    """A trained network, asked everything that a set can be asked about.

    Args:
        network: in `eval` mode.
        footing: what is seen and heard of the set's videos; whose maps it makes.
        clips: how videos are cut.
        every_box: ask about the boxes of every frame; else about those of the frames that are looked at.
        rule: how relations last.
        tasks: which are asked (default: all that the network has).
    """

    def __init__(
        self,
        network: IntelliCare,
        footing: Footing,
        clips: ClipConfig,
        *,
        every_box: bool = True,
        rule: RelationRule | None = None,
        tasks: Sequence[Task] | None = None,
    ) -> None:
        self.network, self.footing, self.clips, self.every_box = network, footing, clips, every_box
        self.rule, self.tasks = (
            rule or RelationRule(),
            tuple(network.config.tasks if tasks is None else tasks),
        )
        from roadaware.models.crowd.grounding import WordReader

        words, config = network.vocabulary.words, network.config
        self.reader = WordReader(words, config.max_tokens) if words else None
        self.left_out = 0

    def answer(
        self, scenes: Scenes, progress: Callable[[int, int, str], None] | None = None
    ) -> dict[Task, Predictions]:
        """Predictions by task.

        Args:
            scenes: whose boxes, tubes, sentences and sounds are asked about.
            progress: called with the videos done and the total.
        """
        of, tasks = self.footing.of, self.tasks
        if (
            "grounding" in tasks
            and self.network.compares_people
            and len(of.asks["grounding"])
            and not has_others(of)
        ):
            _log.warning("only those of whom the sentences speak have boxes: that it is they is given away")
        answers = []
        for number, video in enumerate(of.videos):
            found = self.ask(number)
            # Series of every pair are many numbers: what is read off them is kept.
            answers.append((found, decode_relations(video, found.relations, self.rule)))
            found.relations = {}
            if progress is not None:
                progress(number + 1, len(of.videos), "videos")
        if self.left_out:
            _log.warning(
                "%d pairs of people in crowds too large for all of them are not asked", self.left_out
            )
        found_all: dict[Task, Predictions] = {}
        for task in tasks:
            if task == "actions":
                scored = [(each.boxes, each.actions) for each, _ in answers]
                found_all[task] = build_action_predictions(scenes, of, scored)
            elif task == "relations":
                found_all[task] = build_relation_predictions(
                    scenes, of, [relations for _, relations in answers]
                )
            elif task == "grounding":
                sentences = [query for each, _ in answers for query in each.sentences]
                found_all[task] = build_grounding_predictions(scenes, of, sentences)
            else:
                sounds = [(sound.sound, sound.map) for each, _ in answers for sound in each.sounds]
                found_all[task] = build_sound_predictions(scenes, of, sounds)
        return found_all

    def ask(self, number: int) -> VideoAnswers:
        """Everything about a video; its map before the dynamic layers is made once for all tasks that see it.

        Raises:
            InputError: if the film cannot be read.
        """
        import torch

        tasks = self.tasks
        classes = len(self.network.vocabulary.actions)
        found = VideoAnswers(np.zeros(0, np.int64), np.zeros((0, classes), np.float32))
        with torch.no_grad():
            if "grounding" in tasks and self.network.compares_people:
                found.sentences = self._ask_sentences(number, None)
            tasks = tuple(task for task in tasks if task in self.network.path_tasks)
            if not tasks:
                return found
            stem = self.footing.make_map(number, self.network).float().unsqueeze(0)
            stem = stem.to(next(self.network.parameters()).device)
            if "actions" in tasks:
                found.boxes, found.actions = self._ask_actions(number, self._see(stem, "actions"))
            if "relations" in tasks:
                found.relations = self._ask_relations(number, self._see(stem, "relations"))
            if "grounding" in tasks:
                found.sentences = self._ask_sentences(number, stem)
            if "sound" in tasks and self.footing.of.videos[number].sounds:
                found.sounds = self._ask_sounds(number, self._see(stem, "sound"))
        return found

    def _see(self, stem: Tensor, task: Task) -> Tensor:
        """(1, C, T, h, w) the map as a task sees it, some frames at a time."""
        import torch

        parts = []
        for start in range(0, stem.shape[2], _SLOTS_AT_ONCE):
            low = max(0, start - _BEFORE)
            part = self.network.tail(stem[:, :, low : start + _SLOTS_AT_ONCE], task)
            parts.append(part[:, :, start - low :])
        return torch.cat(parts, dim=2)

    def _ask_actions(self, number: int, map: Tensor) -> tuple[Ints, Floats32]:
        """Numbers of boxes and their scores."""
        import torch

        video = self.footing.of.videos[number]
        rows = np.flatnonzero(video.person & (self.every_box | video.key))
        boxes, slots = self.footing.scaled(number, video.corners[rows]), torch.from_numpy(video.slot[rows])
        scores = [np.zeros((0, len(self.network.vocabulary.actions)), dtype=np.float32)]
        head = self.network.heads["actions"]
        tracks = np.zeros((len(rows), self.clips.track_frames, 4), dtype=np.float32)
        for slot in np.unique(video.slot[rows]).tolist():
            own = np.flatnonzero(video.slot[rows] == slot)
            there = rows[own]
            tracks[own] = video.track_around(
                video.tube[there], video.corners[there], slot, self.clips.track_frames
            )
        around, moment = self.footing.scaled(number, tracks), torch.from_numpy(video.frame[rows])
        by_crops = None if getattr(head, "crops", None) is None else self._score_crops(number, rows)
        # By frames, so that few maps of scenes are held at a time; boxes come by rising frame.
        window = self.network.config.window
        for start in range(0, map.shape[2], _MOMENTS_AT_ONCE):
            held = ((slots >= start) & (slots < start + _MOMENTS_AT_ONCE)).nonzero().flatten()
            if len(held):
                # A window of 0 is the whole video.
                low = max(0, start - window) if window else 0
                end = start + _MOMENTS_AT_ONCE + window if window else map.shape[2]
                clip = torch.zeros(len(held), dtype=torch.int64)
                part = map[:, :, low:end]
                crop_logits = None if by_crops is None else by_crops[held]
                found = head(
                    part, boxes[held], clip, slots[held] - low, around[held], moment[held], crop_logits
                )
                scores.append(found.sigmoid().float().cpu().numpy())
        whole = np.concatenate(scores)
        if self.network.config.form == "compact":
            for tube in np.unique(video.tube[rows]).tolist():
                own = np.flatnonzero(video.tube[rows] == tube)
                if tube >= 0:
                    whole[own] = _smooth(whole[own], video.slot[rows[own]])
        return video.box[rows], whole

    def _score_crops(self, number: int, rows: Ints) -> Tensor:
        """(n, actions) logits of the crops of people, means over their tracks.

        Args:
            number: of the video.
            rows: (n,) their boxes; of several frames near a slot those of somebody share one crop, of the nearest frame.
        """
        import torch

        video = self.footing.of.videos[number]
        head: Any = self.network.heads["actions"]
        # Somebody who is unknown is seen in each box for itself.
        tubes = np.where(video.tube[rows] >= 0, video.tube[rows], -1 - rows)
        order = np.lexsort((~video.key[rows], tubes, video.slot[rows]))
        keys, first, place = np.unique(
            np.stack([video.slot[rows], tubes], axis=1)[order], axis=0, return_index=True, return_inverse=True
        )
        boxes, device = video.corners[rows[order[first]]], next(head.parameters()).device
        logits = np.zeros((len(keys), len(self.network.vocabulary.actions)), dtype=np.float32)
        for start in range(0, len(video), _SLOTS_AT_ONCE):
            # Some slots at a time, so that few crops are held
            own = np.flatnonzero((keys[:, 0] >= start) & (keys[:, 0] < start + _SLOTS_AT_ONCE))
            if not len(own):
                continue
            crops, shapes = (
                self.footing.crops(number, keys[own, 0], boxes[own]),
                self.footing.shapes(number, boxes[own]),
            )
            for low in range(0, len(own), _CROPS_AT_ONCE):
                part = slice(low, low + _CROPS_AT_ONCE)
                seen = normalise_crops(torch.from_numpy(crops[part]).to(device))
                logits[own[part]] = head.crops(seen, shapes[part].to(device)).cpu().numpy()
        for tube in np.unique(keys[keys[:, 1] >= 0, 1]).tolist():
            own = np.flatnonzero(keys[:, 1] == tube)
            logits[own] = _smooth(logits[own], keys[own, 0])
        found = np.empty((len(rows), logits.shape[1]), dtype=np.float32)
        found[order] = logits[place.ravel()]
        return torch.from_numpy(found).to(device)

    def _ask_relations(self, number: int, map: Tensor) -> dict[tuple[int, int], Floats32]:
        """Subject and object to (T, predicates) scores."""
        import torch

        from roadaware.models.crowd.people import choose_pairs

        video, config = self.footing.of.videos[number], self.network.config
        predicates = len(self.network.vocabulary.predicates)
        found: dict[tuple[int, int], Floats32] = {}
        for slot in range(len(video)):
            rows = video.people(slot)
            rows = rows[video.tube[rows] >= 0]
            tubes, first = np.unique(video.tube[rows], return_index=True)
            if len(tubes) < 2:
                continue
            slots, frame = clip_around(video, slot, self.clips.frames)
            held = np.stack([video.track(int(tube), slots) for tube in tubes])
            held[:, frame] = video.corners[rows[first]]
            boxes = self.footing.scaled(number, held)
            clip = torch.zeros(len(tubes), dtype=torch.int64)
            pairs = choose_pairs(boxes[:, frame], clip, heights=config.pair_heights, most=config.max_pairs)
            self.left_out += pairs.left_out
            part = map[:, :, torch.from_numpy(slots)]
            tracks = video.track_around(tubes, video.corners[rows[first]], slot, self.clips.track_frames)
            scores = self.network.heads["relations"](
                part, boxes, clip, pairs.index, torch.tensor([frame]), self.footing.scaled(number, tracks)
            )
            for (subject, other), row in zip(pairs.index.tolist(), scores.sigmoid().numpy(), strict=True):
                key = (int(tubes[subject]), int(tubes[other]))
                series = found.setdefault(key, np.zeros((len(video), predicates), dtype=np.float32))
                series[slot] = row
        if config.form == "compact":
            for series in found.values():
                asked = series.any(axis=1)
                slots = np.flatnonzero(asked)
                series[slots] = _smooth(series[slots], slots)
        return found

    def _ask_sentences(self, number: int, stem: Tensor | None) -> list[GroundedQuery]:
        """Answers to the sentences of a video, clip by clip, so that a clip is seen once for all that are asked of it.

        Args:
            number: of the video.
            stem: its map before the dynamic layers; None where sentences are compared with people.
        """
        import torch

        video, found = self.footing.of.videos[number], dict[int, GroundedQuery]()
        clips: dict[bytes, list[int]] = {}
        for row, query in enumerate(video.queries):
            whole = video.find_slots(query.get("segment_start_frame"), query.get("segment_end_frame"))
            clips.setdefault(whole.tobytes(), []).append(row)
        for key, rows in clips.items():
            whole = np.frombuffer(key, dtype=np.int64)
            slots = spread(whole, min(self.clips.most_frames, self.network.config.max_frames))
            at_once = _SENTENCES_AT_ONCE if stem is None else 1
            for start in range(0, len(rows), at_once):
                part = rows[start : start + at_once]
                if self.reader is None:
                    raise InputError("sentences cannot be read: the network has no words")
                words = self.reader.encode([video.queries[row]["text"] for row in part])
                if stem is None:
                    answers = self._match_people(number, whole, slots, words)
                else:
                    map = self._see(stem[:, :, torch.from_numpy(slots.copy())], "grounding")
                    answers = self._look_in_cells(number, slots, map, words)
                for row, (at, boxes, span, score) in zip(part, answers, strict=True):
                    asked = int(video.queries[row]["query"])
                    found[row] = GroundedQuery(asked, number, at, boxes, span, score)
        return [found[row] for row in range(len(video.queries))]

    def _match_people(
        self, number: int, every: Ints, slots: Ints, words: Encoded
    ) -> list[tuple[Ints, Floats32, tuple[int, int], float]]:
        """Slots, boxes there, span among them and score of each sentence: the track of whom it speaks of; the whole image
        where nobody is seen.

        Args:
            number: of the video.
            every: (N,) slots of the clip.
            slots: (T,) those of them that are looked at.
            words: of the sentences.
        """
        import torch

        from roadaware.models.crowd.grounding import score_spans

        video, found = self.footing.of.videos[number], []
        tubes = list_people(video, slots)
        if not len(tubes):
            whole = np.array([0, 0, video.film.width, video.film.height], dtype=np.float32)
            return [(slots, np.tile(whole, (len(slots), 1)), (0, len(slots)), 0.0) for _ in words.ids]
        tracks = np.stack([video.track(int(tube), slots) for tube in tubes])
        owner = torch.zeros(len(tubes), dtype=torch.int64)
        clip = torch.zeros(len(words.ids), dtype=torch.int64)
        frames = self.clips.track_frames
        around = self.footing.scaled(
            number,
            np.stack(
                [
                    video.track_around(tubes, tracks[:, n], slot, frames)
                    for n, slot in enumerate(slots.tolist())
                ],
                axis=1,
            ),
        )
        colours = self.footing.colours(number, slots).unsqueeze(0)
        boxes = self.footing.scaled(number, tracks)
        matched = self.network.match(colours, words.ids, words.mask, boxes, owner, clip, tracks=around)
        for number_asked, chances in enumerate(matched.who.softmax(dim=1)):
            # When it happens is asked of all who may be spoken of: who it is is often wrong.
            likely = (chances >= min(_LIKELY, float(chances.max()))).nonzero().flatten()
            lasting = matched.lasting[number_asked].expand(len(likely), -1)
            each = score_spans(matched.inside[number_asked, likely], lasting).exp()
            span = choose_span(
                torch.einsum("p,pab->ab", chances[likely], each).cpu().numpy(), slots - every[0], len(every)
            )
            person = int(chances.argmax())
            score = float(matched.somebody[number_asked].sigmoid())
            found.append((every, video.track(int(tubes[person]), every), span, score))
        return found

    def _look_in_cells(
        self, number: int, slots: Ints, map: Tensor, words: Encoded
    ) -> list[tuple[Ints, Floats32, tuple[int, int], float]]:
        """Slots, boxes there, span among them and score of one sentence: a box of its own in each frame."""
        height, width = pad_size(self.footing.sizes[number])
        scale, film = self.footing.scale(number), self.footing.of.videos[number].film
        grounded = self.network.heads["grounding"](map, words.ids, words.mask)
        centre = grounded.boxes[-1, 0].float().cpu().numpy() * np.array([width, height] * 2)
        corners = np.concatenate(
            [centre[:, :2] - centre[:, 2:] / 2, centre[:, :2] + centre[:, 2:] / 2], axis=1
        )
        corners = scale_boxes(corners.astype(np.float32), (1 / scale[0], 1 / scale[1]))
        corners = np.clip(corners, 0, np.array([film.width, film.height] * 2, dtype=np.float32))
        span, sure = read_span(grounded.spans[-1, 0])
        return [(slots, corners, span, min(1.0, sure))]

    def _ask_sounds(self, number: int, map: Tensor) -> list[LocatedSound]:
        import torch

        from roadaware.models.crowd.sound import RATE, SECONDS, cover_cells, hear

        video, found = self.footing.of.videos[number], []
        padded, size = pad_size(self.footing.sizes[number]), self.footing.sizes[number]
        cells = (max(1, round(size[0] / _PICTURE_CELL_PX)), max(1, round(size[1] / _PICTURE_CELL_PX)))
        knows_deeds = getattr(self.network.heads["sound"], "deeds", None) is not None
        people: dict[int, tuple[Ints, Tensor]] = {}
        for sound in video.sounds:
            slots, _ = clip_around(video, sound["slot"], self.clips.frames)
            examples = self.footing.examples(number, video.seconds(sound["slot"]))
            if examples is None:
                examples = hear(np.zeros((RATE * SECONDS, 2), dtype=np.float32), RATE)
            asked = torch.tensor([sound["class"]])
            head: Any = self.network.heads["sound"]
            located = head(map[:, :, torch.from_numpy(slots)], examples[None], asked)
            shown, heard = located.logits.sigmoid(), None
            if self.network.config.form == "compact":
                # What is not heard, or not seen, has a weak map.
                heard = float(located.heard.sigmoid()[0])
                shown = shown * heard
            place = crop_map(shown[0], padded, size)
            slot = int(sound["slot"])
            if knows_deeds and slot not in people:
                people[slot] = self._measure_deeds(number, slot)
            rows, doing = people.get(slot, (np.zeros(0, dtype=np.int64), torch.zeros(0, 0)))
            if len(rows):
                logits = head.match_people(asked, doing)[0]
                source = int(logits[:-1].argmax())
                # Else nobody here does what sounds so: it comes from a thing, which only the map of cells knows.
                if logits[source] > logits[-1]:
                    box = self.footing.scaled(number, video.corners[rows[[source]]]).numpy()
                    place = cover_cells(box, size, cells).numpy() * np.float32(1 if heard is None else heard)
            found.append(LocatedSound(sound["sound"], place, heard))
        return found

    def _measure_deeds(self, number: int, slot: int) -> tuple[Ints, Tensor]:
        """Rows of the people of a slot, and (n, actions) what tracks say that they do there and in the slots around it."""
        import torch

        video = self.footing.of.videos[number]
        rows = video.people(slot)
        if not len(rows):
            return rows, torch.zeros(0, 0)
        near = np.arange(max(0, slot - _SMOOTH_SLOTS), min(len(video), slot + _SMOOTH_SLOTS + 1))
        around = []
        for other in near.tolist():
            boxes = [
                video.track(int(tube), np.array([other]))[0] if tube >= 0 else video.corners[row]
                for row, tube in zip(rows.tolist(), video.tube[rows].tolist(), strict=True)
            ]
            held = np.array(boxes, dtype=np.float32).reshape(-1, 4)
            around.append(video.track_around(video.tube[rows], held, other, self.clips.track_frames))
        height, width = pad_size(self.footing.sizes[number])
        scores = self.network.score_deeds(
            self.footing.scaled(number, np.concatenate(around)),
            torch.arange(len(near)).repeat_interleave(len(rows)),
            torch.tensor([width, height]),
        )
        if scores is None:
            return rows[:0], torch.zeros(0, 0)
        return rows, scores.view(len(near), len(rows), -1).mean(dim=0)


def _smooth(scores: Floats32, slots: Ints) -> Floats32:
    """(n, labels) means of scores over those of the slots (n,) around each."""
    near = (np.abs(slots[:, None] - slots) <= _SMOOTH_SLOTS).astype(np.float32)
    mean: Floats32 = near @ scores / near.sum(axis=1, keepdims=True)
    return mean


def choose_span(chances: Floats32, looked: Ints, frames: int) -> tuple[int, int]:
    """The span whose expected overlap (IoU) with the true one is greatest: first frame, and the one behind the last.

    Between two frames that are looked at a span begins or ends in the middle, where it does on average; one that begins with
    the first of them begins with the clip, and one that ends with the last ends with it. Of very many spans the 2,048
    likeliest are compared.

    Args:
        chances: (T, T) how likely each span is, from its first to its last frame of those that are looked at.
        looked: (T,) which frames of the clip these are, rising.
        frames: of the clip.
    """
    likeliest = np.argsort(-chances, axis=None, kind="stable")[:_MOST_SPANS]
    likeliest = likeliest[chances.ravel()[likeliest] > 0]
    first, last = np.divmod(likeliest, len(looked))
    edges = np.concatenate([[0], (looked[:-1] + looked[1:] + 1) / 2, [frames]])
    start, end = edges[first], edges[last + 1]
    shared = np.minimum(end[:, None], end) - np.maximum(start[:, None], start)
    shared = shared.clip(min=0)
    overlap = shared / ((end - start)[:, None] + (end - start) - shared)
    best = int((overlap @ chances.ravel()[likeliest]).argmax())
    low = int(start[best])
    return low, max(low + 1, int(end[best]))


def read_span(logits: Tensor) -> tuple[tuple[int, int], float]:
    """The likeliest span of (T, 2) logits of its first and last frame: first frame, the one behind the last; how likely."""
    held = logits.float().cpu().numpy()
    mask = np.ones((1, len(held)), dtype=np.bool_)
    start, end = decode_span(held[None, :, 0], held[None, :, 1], mask)[0].tolist()
    chance = logits.softmax(dim=0)
    return (start, end), float(chance[start, 0] * chance[end - 1, 1])


def crop_map(cells: Tensor, padded: tuple[int, int], size: tuple[int, int]) -> Floats32:
    """(h, w) a localisation map without the padding of the image, in cells of 8 pixels.

    Args:
        cells: (s, s) over the padded image.
        padded: height and width of that.
        size: height and width of the image in it.
    """
    from torch.nn import functional

    whole = (padded[0] // _PICTURE_CELL_PX, padded[1] // _PICTURE_CELL_PX)
    fine = functional.interpolate(
        cells[None, None].float(), size=whole, mode="bilinear", align_corners=False
    )[0, 0]
    rows, columns = (max(1, round(side / _PICTURE_CELL_PX)) for side in size)
    return np.ascontiguousarray(fine[:rows, :columns].cpu().numpy(), dtype=np.float32)


def predict_crowd(
    network: IntelliCare,
    scenes: Scenes,
    films: Sequence[Film],
    clips: ClipConfig | None = None,
    *,
    folder: Path | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> dict[Task, Predictions]:
    """What a network says of the boxes, tubes, sentences and sounds of scenes, task by task.

    Args:
        network: such as `open_crowd` gives it.
        scenes: whose they are.
        films: videos of them that can be opened; the others are not asked about.
        clips: how videos are looked at (default: as the bundled recipes do).
        folder: of maps that are kept (default: none are).
        progress: called with the videos done and the total.

    Returns:
        Task to Predictions, which the evaluators of that task take.

    Raises:
        InputError: if a film cannot be read.
    """
    clips = clips or ClipConfig()
    of = build_crowd_set(scenes, films, network.vocabulary, clips.fps)
    footing = Footing(of, folder, clips.size_px)
    footing.use(network)
    network.eval()
    return Answerer(network, footing, clips).answer(scenes, progress)
