"""Film: an episode frame by frame into a folder, with pictures, masks, sweeps, sound and tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from roadaware.config import to_dict
from roadaware.errors import UsageError
from roadaware.scenes.disk import atomic_write
from roadaware.scenes.simulator.camera import camera_of
from roadaware.scenes.simulator.config import LidarConfig
from roadaware.scenes.simulator.episode import Episode
from roadaware.scenes.simulator.lenses import Lens
from roadaware.scenes.simulator.render import Picture, render
from roadaware.scenes.simulator.stage import FAR_M, Stage
from roadaware.scenes.simulator.truth import SeenCollector, blocks_seen, scene_tables
from roadaware.scenes.simulator.truth.seen import Seen
from roadaware.scenes.simulator.truth.sensing import Sweep
from roadaware.scenes.store import save

VIDEO, TABLES = "video.mp4", "tables"
_SOUND_RATE = 16_000


@dataclass(frozen=True)
class Kept:
    """What is written of a scene besides its tables.

    Args:
        video: the film.
        masks: instance and semantic masks.
        depth: distances of pixels, in centimetres.
        pictures: draw the scene; without, everybody is a plain block before which nothing but blocks stands,
            and there are tables alone: no film, masks, depth, sweeps, sound or joints.

    Raises:
        UsageError: if something is to be kept of pictures that are not drawn.
    """

    video: bool = True
    masks: bool = True
    depth: bool = False
    pictures: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be had together."""
        if not self.pictures and (self.video or self.masks or self.depth):
            raise UsageError("without pictures there is no film, no mask and no depth to keep")

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


def shoot(
    episode: Episode, folder: Path, *, kept: Kept | None = None, progress: Callable[[int], None] | None = None
) -> None:
    """Write a scene into a folder that is its alone; memory does not grow with its length.

    Args:
        episode: the scene.
        folder: exists and is empty.
        kept: what to write besides tables.
        progress: told how many frames are done.

    Raises:
        DiskError: if the disk refuses.
    """
    kept = kept or Kept()
    if not kept.pictures:
        _write_tables(episode, folder, blocks_seen(episode, joints=False), kept, ())
        return
    stage, collector = Stage(episode), SeenCollector(episode)
    lens = None if episode.look is None else Lens(episode, episode.look)
    with ExitStack() as stack:
        reel = _opened(episode, folder, kept, stack)
        for frame in range(episode.n_frames):
            soup = stage.soup(frame)
            camera = camera_of(episode.ego, episode.config, frame, episode.seed)
            picture = render(soup, camera, episode.conditions, seed=episode.seed, frame=frame)
            picture = picture if lens is None else lens.taken(picture, camera, frame)
            collector.add(frame, camera, picture, soup)
            _expose(reel, episode, picture, frame)
            if episode.config.lidar is not None:
                reel.sweeps.append(_swept(stage, episode, episode.config.lidar, folder, frame))
            if progress is not None:
                progress(frame + 1)
        _close(reel)
    _write_tables(episode, folder, collector.seen(), kept, reel.sweeps)


def _write_tables(episode: Episode, folder: Path, seen: Seen, kept: Kept, sweeps: Sequence[Sweep]) -> None:
    files = {"path": VIDEO} if kept.video else {}
    save(scene_tables(episode, seen, files=files, sweeps=sweeps), folder / TABLES)
    about: dict[str, Any] = {
        "name": episode.name,
        "conditions": to_dict(episode.conditions),
        "category": episode.category,
    }
    if episode.look is not None:
        about["look"] = to_dict(episode.look)
    atomic_write(folder / "scene.json", (json.dumps(about, indent=2, sort_keys=True) + "\n").encode())


def _opened(episode: Episode, folder: Path, kept: Kept, stack: ExitStack) -> _Reel:
    from roadaware.scenes.mask_files import MaskWriter
    from roadaware.scenes.media import FINE_CRF, VideoWriter
    from roadaware.scenes.synthetic_films import MARK

    camera, reel = episode.config.camera, _Reel()
    if kept.video:
        rate = _SOUND_RATE if episode.config.sound else None
        size = (camera.width_px, camera.height_px)
        crf = FINE_CRF if episode.look is None else episode.look.crf
        writer = VideoWriter(folder / VIDEO, *size, camera.fps, sound_rate=rate, comment=MARK, crf=crf)
        reel.video = stack.enter_context(writer)
        reel.blocks = _heard(episode) if episode.config.sound else None
    if kept.masks:
        reel.instances = stack.enter_context(MaskWriter(folder / "instances.zip"))
        reel.semantics = stack.enter_context(MaskWriter(folder / "semantics.zip", 8))
    if kept.depth:
        reel.depth = stack.enter_context(MaskWriter(folder / "depth.zip"))
    return reel


def _heard(episode: Episode) -> Any:
    from roadaware.scenes.simulator.sound import mix

    return iter(mix(episode))


def _expose(reel: _Reel, episode: Episode, picture: Picture, frame: int) -> None:
    if reel.video is not None:
        reel.video.write(picture.rgb)
        _sound_up_to(reel, (frame + 1) / episode.config.camera.fps)
    if reel.instances is not None:
        reel.instances.write(picture.instance.astype(np.uint16))
        reel.semantics.write(picture.semantic)
    if reel.depth is not None:
        reel.depth.write_depth(picture.depth_m)


def _sound_up_to(reel: _Reel, time_s: float) -> None:
    """Sound as far as the pictures are, so that neither waits for the other in memory."""
    while reel.blocks is not None and reel.video.n_samples < time_s * _SOUND_RATE:
        block = next(reel.blocks, None)
        if block is None:
            reel.blocks = None
        else:
            reel.video.write_sound(block)


def _close(reel: _Reel) -> None:
    while reel.blocks is not None and (block := next(reel.blocks, None)) is not None:
        reel.video.write_sound(block)


def _swept(stage: Stage, episode: Episode, config: LidarConfig, folder: Path, frame: int) -> Sweep:
    """A sweep over everything around, also behind the camera."""
    from roadaware.scenes.simulator.lidar import lidar_pose, sweep
    from roadaware.scenes.sweep_files import write_sweep

    pose = lidar_pose(episode.ego, config, frame)
    soup = stage.around(frame, min(config.range_m, FAR_M))
    found = sweep(soup, pose, config, seed=episode.seed, frame=frame)
    name = f"lidar/{frame:06d}.bin"
    (folder / "lidar").mkdir(exist_ok=True)
    write_sweep(folder / name, found)
    return Sweep(frame, name, len(found))
