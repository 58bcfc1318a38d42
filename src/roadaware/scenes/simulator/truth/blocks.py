"""Blocks: what is seen of an episode whose actors are plain blocks and where nothing else stands about."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats32, Ints32
from roadaware.scenes.simulator.camera import Camera, camera_of
from roadaware.scenes.simulator.episode import Episode
from roadaware.scenes.simulator.mesh import Soup
from roadaware.scenes.simulator.truth.seen import Seen, SeenCollector, pose_of

_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0.0, 1.0)])
_SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
_FACES = np.array([half for a, b, c, d in _SIDES for half in ((a, b, c), (a, c, d))])
_HEAD_M = (0.35, 0.35, 0.95)
RANGE_M = 140.0


def blocks_seen(episode: Episode, *, joints: bool = True) -> Seen:
    """What would be seen if everybody were a block and nothing else were there; for tables without pictures.

    Args:
        episode: the scene.
        joints: whether to look for joints, which takes most of the time.
    """
    collector = SeenCollector(episode, joints)
    for frame in range(episode.n_frames):
        camera = camera_of(episode.ego, episode.config, frame, episode.seed)
        soup = block_soup(episode, frame)
        collector.add(frame, camera, drawn(camera, soup), soup)
    return collector.seen()


def block_soup(episode: Episode, frame: int) -> Soup:
    """The blocks of all that is near in a frame.

    Args:
        episode: the scene.
        frame: of the scene.
    """
    eye = episode.ego.position[frame]
    held: list[tuple[int, Floats32]] = []
    for actor in episode.actors:
        row = actor.at(frame)
        if row is not None and np.hypot(*(actor.position[row, :2] - eye[:2])) < RANGE_M:
            shape = _block(actor.size_m, actor.position[row], float(actor.heading[row]))
            held.append((actor.number + 1, shape))
    for signal in episode.signals:
        if np.hypot(*(signal.position[:2] - eye[:2])) < RANGE_M:
            foot = signal.position - [0.0, 0.0, _HEAD_M[2] / 2]
            held.append((len(episode.actors) + signal.number + 1, _block(_HEAD_M, foot, signal.heading)))
    return _soup(held)


def _block(size: tuple[float, float, float], position: npt.ArrayLike, heading: float) -> Floats32:
    """(12, 3, 3) its triangles in the world."""
    c, s = np.cos(heading), np.sin(heading)
    corners = (_CORNERS * size) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + position
    triangles: Floats32 = corners[_FACES].astype(np.float32)
    return triangles


def _soup(held: list[tuple[int, Floats32]]) -> Soup:
    n = len(_FACES) * len(held)
    corners = np.concatenate([np.zeros((0, 3, 3), np.float32), *(shape for _, shape in held)])
    marks = np.repeat(np.array([number for number, _ in held], dtype=np.int32), len(_FACES))
    byte, single = np.zeros(n, np.uint8), np.zeros(n, np.float32)
    return Soup(
        corners, np.zeros((n, 3), np.float32), byte, byte, single, np.zeros((n, 3, 2), np.float32), marks
    )


def drawn(camera: Camera, soup: Soup) -> Ints32:
    """(h, w) int32 whose triangle is nearest in each pixel, 0 for none.

    Args:
        camera: that looks.
        soup: triangles marked by instance.
    """
    from roadaware.scenes.simulator.truth.seen_kernels import stack

    size = (camera.height_px, camera.width_px)
    mask, inverse = np.zeros(size, np.int32), np.zeros(size, np.float32)
    pose, lens = pose_of(camera)
    stack(np.require(soup.corners, np.float32, ("C", "W")), soup.instance, pose, lens, inverse, mask)
    return mask
