"""Scenes rendered into a folder, resumable, each whole or not there, by several workers."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np

from roadaware.config import to_dict
from roadaware.errors import DiskError, UsageError
from roadaware.io import sources
from roadaware.io.files import (
    build_disk_error,
    flush_folder,
    is_running,
    list_folder_names,
    note_written,
    read_regular,
    write_atomically,
)
from roadaware.io.folders import hold_folder
from roadaware.io.images import MaskWriter
from roadaware.io.parallel import HERE, Workers, run_parts
from roadaware.io.point_clouds import write_sweep
from roadaware.io.video import FINE_CRF, VideoWriter
from roadaware.scenes.store import is_saved, save
from roadaware.simulator.config import LidarConfig, SceneConfig
from roadaware.simulator.episode import Episode
from roadaware.simulator.make import format_scene_name, make_episode
from roadaware.simulator.mesh import build_camera
from roadaware.simulator.render import FAR_M, Picture, Stage, render
from roadaware.simulator.sensors import Lens, lidar_pose, simulate_sweep
from roadaware.simulator.sound import render_audio
from roadaware.simulator.synthetic_films import MARK
from roadaware.simulator.truth import SeenCollector, build_scene_tables, simulate_block_view
from roadaware.simulator.truth.seen import Seen
from roadaware.simulator.truth.tables import Sweep

# Video: an episode frame by frame into a folder, with images, masks, sweeps, sound and tables.

VIDEO, TABLES = "video.mp4", "tables"
_SOUND_RATE = 16_000


@dataclass(frozen=True)
class Kept:
    """Files of a scene besides its tables.

    Args:
        video: the video.
        masks: instance and semantic masks.
        depth: distances of pixels, in centimetres.
        pictures: draw the scene; without, everybody is a plain block before which nothing but blocks stands,
            and there are tables alone: no video, masks, depth, sweeps, sound or joints.

    Raises:
        UsageError: if something is to be kept of images that are not drawn.
    """

    video: bool = True
    masks: bool = True
    depth: bool = False
    pictures: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be had together."""
        if not self.pictures and (self.video or self.masks or self.depth):
            raise UsageError("without images there is no video, no mask and no depth to keep")

    @classmethod
    def tables_alone(cls) -> Self:
        """Nothing but tables, for models that look at boxes: many times faster."""
        return cls(video=False, masks=False, pictures=False)


@dataclass
class _Reel:
    """The files of a scene that grow with every frame."""

    video: Any = None
    instances: Any = None
    semantics: Any = None
    depth: Any = None
    blocks: Any = None
    sweeps: list[Sweep] = field(default_factory=list)


def render_scene(episode: Episode, folder: Path, *, kept: Kept | None = None) -> None:
    """Write a scene into a folder that is its alone; memory does not grow with its length.

    Args:
        episode: the scene.
        folder: exists and is empty.
        kept: what to write besides tables.

    Raises:
        DiskError: if the disk refuses.
    """
    kept = kept or Kept()
    if not kept.pictures:
        _write_tables(episode, folder, simulate_block_view(episode, joints=False), kept, ())
        return
    stage, collector = Stage(episode), SeenCollector(episode)
    lens = None if episode.look is None else Lens(episode, episode.look)
    with ExitStack() as stack:
        reel = _open_writers(episode, folder, kept, stack)
        for frame in range(episode.n_frames):
            soup = stage.soup(frame)
            camera = build_camera(episode.ego, episode.config, frame, episode.seed)
            image = render(soup, camera, episode.conditions, seed=episode.seed, frame=frame)
            image = image if lens is None else lens.taken(image, camera, frame)
            collector.add(frame, camera, image, soup)
            _expose(reel, episode, image, frame)
            if episode.config.lidar is not None:
                reel.sweeps.append(_write_lidar_sweep(stage, episode, episode.config.lidar, folder, frame))
        while reel.blocks is not None and (block := next(reel.blocks, None)) is not None:
            reel.video.write_sound(block)
    _write_tables(episode, folder, collector.seen(), kept, reel.sweeps)


def _write_tables(episode: Episode, folder: Path, seen: Seen, kept: Kept, sweeps: Sequence[Sweep]) -> None:
    files = {"path": VIDEO} if kept.video else {}
    save(build_scene_tables(episode, seen, files=files, sweeps=sweeps), folder / TABLES)
    about: dict[str, Any] = {
        "name": episode.name,
        "conditions": to_dict(episode.conditions),
        "category": episode.category,
    }
    if episode.look is not None:
        about["look"] = to_dict(episode.look)
    _write_json(folder / ABOUT, about)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(content, indent=2, sort_keys=True) + "\n").encode())


def _open_writers(episode: Episode, folder: Path, kept: Kept, stack: ExitStack) -> _Reel:
    camera, reel = episode.config.camera, _Reel()
    if kept.video:
        rate = _SOUND_RATE if episode.config.sound else None
        size = (camera.width_px, camera.height_px)
        crf = FINE_CRF if episode.look is None else episode.look.crf
        writer = VideoWriter(folder / VIDEO, *size, camera.fps, sound_rate=rate, comment=MARK, crf=crf)
        reel.video = stack.enter_context(writer)
        reel.blocks = iter(render_audio(episode)) if episode.config.sound else None
    if kept.masks:
        reel.instances = stack.enter_context(MaskWriter(folder / "instances.zip"))
        reel.semantics = stack.enter_context(MaskWriter(folder / "semantics.zip", 8))
    if kept.depth:
        reel.depth = stack.enter_context(MaskWriter(folder / "depth.zip"))
    return reel


def _expose(reel: _Reel, episode: Episode, image: Picture, frame: int) -> None:
    if reel.video is not None:
        reel.video.write(image.rgb)
        # Sound as far as the images are, so that neither waits for the other in memory.
        time_s = (frame + 1) / episode.config.camera.fps
        while reel.blocks is not None and reel.video.n_samples < time_s * _SOUND_RATE:
            block = next(reel.blocks, None)
            if block is None:
                reel.blocks = None
            else:
                reel.video.write_sound(block)
    if reel.instances is not None:
        # PNG holds 16 bits at most.
        reel.instances.write(image.instance.astype(np.uint16))
        reel.semantics.write(image.semantic)
    if reel.depth is not None:
        reel.depth.write_depth(image.depth_m)


def _write_lidar_sweep(
    stage: Stage, episode: Episode, config: LidarConfig, folder: Path, frame: int
) -> Sweep:
    """A sweep over everything around, also behind the camera."""
    pose = lidar_pose(episode.ego, config, frame)
    soup = stage.around(frame, min(config.range_m, FAR_M))
    found = simulate_sweep(soup, pose, config, seed=episode.seed, frame=frame)
    name = f"lidar/{frame:06d}.bin"
    (folder / "lidar").mkdir(exist_ok=True)
    write_sweep(folder / name, found)
    return Sweep(frame, name, len(found))


FORMAT, FORMAT_VERSION, MAIN, SCENES = "roadaware-simulation", 1, "simulation.json", "scenes"
_TOLD = {
    "version": "another version of the format",
    "config": "another config",
    "kept": "other files",
    "seed": "another seed",
}
ABOUT, _ORDER = "scene.json", "order"
"""What is said of a scene beside its tables, and the note in it on what it was made of."""
_UNFINISHED = re.compile(r"\.(?P<name>.+)\.unfinished-(?P<process>\d{1,10})")


@dataclass(frozen=True)
class Order:
    """A request for scenes.

    Args:
        config: of all scenes.
        seed: of the set, at least 0.
        scenes: how many, at least 1.
        kept: what is written of each besides its tables.
    """

    config: SceneConfig
    seed: int = 0
    scenes: int = 1
    kept: Kept = field(default_factory=Kept)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UsageError(f"the seed is at least 0, not {self.seed}")
        if not 1 <= self.scenes <= 100_000:
            raise UsageError(f"1 to 100,000 scenes can be made, not {self.scenes:,}")

    @property
    def names(self) -> list[str]:
        """Of the scenes."""
        return [format_scene_name(self.config, number) for number in range(self.scenes)]


def generate_scenes(
    order: Order,
    folder: Path,
    *,
    workers: Workers = HERE,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Make the scenes that a folder does not have yet; those that it has are left as they are.

    A scene is made in a folder of its own that gets its name when it is finished. What an earlier run left
    unfinished is removed, if that run is over.

    Args:
        order: what is to be made.
        folder: where to: new, empty, or that of the same order; more scenes may be asked for.
        workers: where scenes are made, and how many at a time.
        progress: called with the number of scenes done and the total.

    Returns:
        The number of scenes made now.

    Raises:
        UsageError: if the folder holds other things, or scenes of another order or that are not whole, another
            process is at work in it, or workers cannot be started.
        DiskError: if the disk refuses; finished scenes stay.
        FindingsError: if some could not be made, once the others are.
    """
    with hold_folder(folder):
        head = _claim(order, folder)
        room = folder / SCENES
        _sweep(room)
        due = _find_due_scenes(order, head, room)
        done = order.scenes - len(due)
        if progress is not None:
            progress(done, order.scenes)

        def count(number: int, _: object) -> None:
            nonlocal done
            done += 1
            if progress is not None:
                progress(done, order.scenes)

        try:
            work = partial(_make, order, folder, head)
            names = order.names
            run_parts(
                work,
                due,
                workers,
                what="scenes",
                name=names.__getitem__,
                done=count,
                folder=folder,
                before=done,
            )
        except DiskError as error:
            stay = (
                f"{done:,} of {order.scenes:,} scenes are finished and stay; the same command makes the rest"
            )
            raise DiskError(f"{error}\n  {stay}.") from error
        finally:
            _sweep(room)
        return len(due)


def _find_due_scenes(order: Order, head: Mapping[str, Any], room: Path) -> list[int]:
    """Numbers of the scenes that are not there yet.

    Raises:
        UsageError: if one is there that is not whole, or was made for another order or under another number.
    """
    due, wrong = [], []
    for number, name in enumerate(order.names):
        path = room / name
        if is_saved(path / TABLES):
            # Scenes of earlier versions do not say what they were made for.
            with suppress(OSError, ValueError, RecursionError, AttributeError):
                note = json.loads(read_regular(path / ABOUT, limit=1 << 20)).get(_ORDER)
                if note not in (None, _digest_scene(head, number)):
                    wrong.append(name)
        else:
            due.append(number)
            if path.is_dir() and list_folder_names(path):
                wrong.append(name)
    if wrong:
        raise UsageError(
            f"{room} holds scenes that are not whole, or were made for another order: "
            f"{', '.join(wrong[:3])}{', ...' if len(wrong) > 3 else ''}; remove them, and the same command makes "
            "them anew, or name another folder"
        )
    return due


def _digest_scene(head: Mapping[str, Any], number: int) -> str:
    """Digest of what a scene is made of."""
    made_of = [{name: head[name] for name in ("config", "kept", "seed")}, number]
    return sources.digest(json.dumps(made_of, sort_keys=True).encode())


def _make(order: Order, folder: Path, head: Mapping[str, Any], number: int) -> None:
    name = format_scene_name(order.config, number)
    target = folder / SCENES / name
    # Beside the target, so that renaming stays within one file system and is atomic; the process is in the
    # name so that others can tell what is abandoned from what is being made.
    room = target.with_name(f".{name}.unfinished-{os.getpid()}")
    try:
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(parents=True)
        render_scene(make_episode(order.config, order.seed, number), room, kept=order.kept)
        about = json.loads((room / ABOUT).read_bytes())
        _write_json(room / ABOUT, {**about, _ORDER: _digest_scene(head, number)})
        _name(room, target)
        # The name, too, must be on the disk before the scene counts as finished.
        flush_folder(target.parent)
    except OSError as error:
        shutil.rmtree(room, ignore_errors=True)
        raise build_disk_error(target, 1, error) from error
    except BaseException:
        shutil.rmtree(room, ignore_errors=True)
        raise


def _name(room: Path, target: Path) -> None:
    """Give a finished scene its name; where another run of the same order was faster, its scene stays.

    Raises:
        OSError: whatever the system says.
    """
    try:
        room.rename(target)
        note_written(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        shutil.rmtree(room, ignore_errors=True)


def _claim(order: Order, folder: Path) -> dict[str, Any]:
    """Write what is made into the folder, or see that it says the same already; what it says.

    Raises:
        UsageError: if it holds something else.
    """
    # A config as folders say it; those that are older than looks or staging say nothing of them.
    config = order.config
    recorded = to_dict(config)
    unsaid = {name for name in ("looks", "staging") if getattr(config, name) is None}
    head = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "config": {key: value for key, value in recorded.items() if key not in unsaid},
        "kept": _describe_outputs(order.kept),
        "seed": order.seed,
        "scenes": order.scenes,
    }
    try:
        found = list_folder_names(folder)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise build_disk_error(folder, 0, error) from error
    if found:
        known: object = None
        with suppress(OSError, ValueError, RecursionError):
            # The folder may be anybody's: its file may be huge, no JSON, or nested too deeply.
            known = json.loads((folder / MAIN).read_bytes()[: 1 << 20])
        if not isinstance(known, dict) or known.get("format") != FORMAT:
            names = ", ".join(found[:5]) + (", ..." if len(found) > 5 else "")
            raise UsageError(f"{folder} holds other things ({names}); name a new or empty folder with --out")
        # `scenes` is not compared: a folder may be given more of the same.
        for key, what in _TOLD.items():
            if known.get(key) != head[key]:
                raise UsageError(
                    f"{folder} holds scenes of {what}{_differing(known.get(key), head[key])}; the same command "
                    "goes on with them, another one needs another folder"
                )
    _write_json(folder / MAIN, head)
    try:
        (folder / SCENES).mkdir(exist_ok=True)
    except OSError as error:
        raise build_disk_error(folder, 0, error) from error
    return head


def _describe_outputs(kept: Kept) -> dict[str, object]:
    """What is kept, as folders say it; those that are older than a field lack it and have its default."""
    record = to_dict(kept)
    return (
        record
        if not record["pictures"]
        else {key: value for key, value in record.items() if key != "pictures"}
    )


def _differing(there: object, asked: object, path: str = "") -> str:
    """The first setting in which two differ, as it is there and as it is asked for."""
    if isinstance(there, dict) and isinstance(asked, dict):
        for key in sorted({*there, *asked}):
            if there.get(key) != asked.get(key):
                return _differing(there.get(key), asked.get(key), f"{path}.{key}".lstrip("."))
    text = f"{path} is " if path else ""
    return f" ({text}{str(there)[:60]} there, {str(asked)[:60]} here)"


def _sweep(folder: Path) -> None:
    """Remove what processes that are over, or this one between two scenes, left unfinished."""
    with suppress(OSError):
        for path in list(folder.iterdir()):
            match = _UNFINISHED.fullmatch(path.name)
            if match and (int(match["process"]) == os.getpid() or not is_running(int(match["process"]))):
                shutil.rmtree(path, ignore_errors=True)
