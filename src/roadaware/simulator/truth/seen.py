"""Seen: how much of each actor and traffic light the camera shows in each frame, gathered while rendering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from roadaware.arrays import Floats, Floats32, Ints, Ints32
from roadaware.simulator import raster_kernels
from roadaware.simulator.episode import Episode
from roadaware.simulator.mesh import Camera, Soup, build_camera, transform_mesh
from roadaware.simulator.people import build_body_mesh, compute_joints, select_item
from roadaware.simulator.raster_kernels import WORK, collect_edges, stack
from roadaware.simulator.render import Picture, instance_boxes

LEAST_PX = 12
"""Fewer pixels of somebody are not worth a box."""
LEAST_SHARE = 0.08
"""A smaller share of somebody that is in view is not worth a box."""
LEAST_SIDE = 1 / 30
"""Nor is somebody whose longer side is a smaller part of the image's height: annotators pass over what is
far away, and ROAD has 4.6 boxes a frame."""
_PEOPLE = ("Ped", "Cyc", "Mobike")
_JOINTS = 17
_AROUND = np.array([-1, 0, 1])


@dataclass(frozen=True, eq=False)
class Seen:
    """Visibility: a row for each frame and instance that has pixels or would have some without occlusion.

    Args:
        frame: (n,) ascending.
        instance: (n,) number of the actor; signals follow the actors.
        visible_px: (n,) pixels that show it.
        visible: (n, 4) x1, y1, x2, y2 of these pixels; 0 where there are none.
        full: (n, 4) of its whole shape as far as it is in the image, also what is hidden.
        expected_px: (n,) pixels that would show it if nothing stood before it.
        joints: (n, 17, 3) x, y in pixels and whether they are seen (1) or not (0); NaN where it has none.
        bodies: (n, 4) as `full`, without what people hold; None where that was not looked for.
    """

    frame: Ints
    instance: Ints
    visible_px: Ints
    visible: Floats32
    full: Floats32
    expected_px: Ints
    joints: Floats32
    bodies: Floats32 | None = None

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def share(self) -> Floats:
        """(n,) which part of what is in the image is not hidden, 0 to 1."""
        share: Floats = np.minimum(1.0, self.visible_px / np.maximum(self.expected_px, 1))
        return share

    @property
    def enough(self) -> npt.NDArray[np.bool_]:
        """(n,) whether enough is seen for a box."""
        enough: npt.NDArray[np.bool_] = (self.visible_px >= LEAST_PX) & (self.share >= LEAST_SHARE)
        return enough

    def near(self, height_px: int) -> npt.NDArray[np.bool_]:
        """(n,) whether somebody is large enough for a box."""
        sides = self.full[:, 2:] - self.full[:, :2]
        return np.asarray(sides.max(axis=1, initial=0) >= LEAST_SIDE * height_px, dtype=np.bool_)

    def rows(self, kept: npt.NDArray[np.bool_]) -> Seen:
        """Some of the rows.

        Args:
            kept: (n,) which.
        """
        columns: list[Any] = [getattr(self, each.name) for each in fields(self)]
        chosen: list[Any] = [None if column is None else column[kept] for column in columns]
        return Seen(*chosen)


@dataclass(eq=False)
class SeenCollector:
    """Takes the images of an episode one after the other; a frame costs a row for each instance in view.

    Args:
        episode: whose images they are.
        joints: whether to look for joints, which takes most of the time; without they are NaN.
        bodies: whether the boxes of bodies without what they hold are looked for, in staged scenes.
    """

    episode: Episode
    joints: bool = True
    bodies: bool = True
    _parts: list[Seen] = field(default_factory=list)

    def add(self, frame: int, camera: Camera, image: Picture | Ints32, soups: Soup | Sequence[Soup]) -> Seen:
        """Take one frame; frames come in order.

        Args:
            frame: of the scene.
            camera: that looked.
            image: what it saw, or the (h, w) instance mask alone.
            soups: the triangles of the frame, marked by instance.

        Returns:
            What is seen in this frame.
        """
        mask = image if isinstance(image, np.ndarray) else image.instance
        count = len(self.episode.actors) + len(self.episode.signals)
        shown = instance_boxes(mask, count)
        shapes = compute_projected_boxes(camera, [soups] if isinstance(soups, Soup) else soups, count)
        kept = np.flatnonzero((shown[:, 4] > 0) | (shapes[:, 8] > 0))
        # A few pixels at an edge may be counted by one of two rules of rounding only.
        whole = np.maximum(shapes[kept, 8], shown[kept, 4]).astype(np.int64)
        full = _inside(shapes[kept], shown[kept, :4], camera)
        staged = self.bodies and self.episode.config.staging is not None
        part = Seen(
            np.full(len(kept), frame, dtype=np.int64),
            kept.astype(np.int64),
            shown[kept, 4].astype(np.int64),
            shown[kept, :4].astype(np.float32),
            full,
            whole,
            self._joints(frame, camera, mask, kept, shown[kept, 4]),
            self._bodies(frame, camera, kept, shown[kept, :4], full) if staged else None,
        )
        self._parts.append(part)
        return part

    def seen(self) -> Seen:
        """All frames that were taken."""
        if not self._parts:
            whole, four = np.zeros(0, dtype=np.int64), np.zeros((0, 4), dtype=np.float32)
            return Seen(whole, whole, whole, four, four, whole, np.zeros((0, _JOINTS, 3), dtype=np.float32))
        columns = [[getattr(part, each.name) for part in self._parts] for each in fields(Seen)]
        joined: list[Any] = [None if column[0] is None else np.concatenate(column) for column in columns]
        return Seen(*joined)

    def _bodies(self, frame: int, camera: Camera, kept: Ints, shown: Ints, full: Floats32) -> Floats32:
        """(k, 4) the boxes of whole shapes, and where somebody holds something those of their body alone."""
        found, count = full.copy(), len(self.episode.actors) + len(self.episode.signals)
        soups: list[Soup] = []
        places: list[int] = []
        for place, number in enumerate(kept.tolist()):
            actor = self.episode.actors[number] if number < len(self.episode.actors) else None
            row = None if actor is None or actor.kind != "Ped" else actor.at(frame)
            if actor is not None and row is not None and select_item(actor, row):
                mesh = build_body_mesh(actor, frame, bare=True)
                soups.append(transform_mesh(mesh, actor.position[row], float(actor.heading[row]), number + 1))
                places.append(place)
        if soups:
            shapes = compute_projected_boxes(camera, soups, count)[kept[places]]
            found[places] = _inside(shapes, shown[places], camera)
        return found

    def _joints(self, frame: int, camera: Camera, mask: Ints32, kept: Ints, pixels: Ints) -> Floats32:
        found = np.full((len(kept), _JOINTS, 3), np.nan, dtype=np.float32)
        for place, (number, count) in enumerate(zip(kept.tolist(), pixels.tolist(), strict=True)):
            if not self.joints:
                break
            if number >= len(self.episode.actors) or count < LEAST_PX:
                continue
            actor = self.episode.actors[number]
            if actor.kind in _PEOPLE and actor.at(frame) is not None:
                at, depth = camera.project(compute_joints(actor, frame))
                ahead = depth > 0
                found[place, ahead, :2] = at[ahead]
                # (17,) whether a joint lies on, or right beside, pixels of its owner: joints lie inside of
                # bodies.
                height, width = mask.shape
                inside = (at >= 0).all(1) & (at[:, 0] < width) & (at[:, 1] < height)
                x, y = np.where(inside, at.T, 0.0).astype(np.int64)[:, :, None] + _AROUND
                near = mask[np.clip(y, 0, height - 1)[:, :, None], np.clip(x, 0, width - 1)[:, None, :]]
                seen: npt.NDArray[np.bool_] = inside & (near == (number + 1)).any((1, 2))
                found[place, :, 2] = seen
        return found


def _inside(shapes: Floats, shown: Ints, camera: Camera) -> Floats32:
    """(k, 4) boxes of shapes as far as they are in the image.

    Of a shape that reaches out of the image, the part inside may be less wide and high than the whole.
    """
    # A shape that reaches behind the camera projects far too wide; its pixels are right, to within one.
    slack = np.array([-1.0, -1.0, 1.0, 1.0])
    low = np.array([0.0, 0.0, -np.inf, -np.inf])
    high = np.array([np.inf, np.inf, camera.width_px, camera.height_px])
    pixels = shapes[:, 4:8] + slack
    box = np.clip(
        np.where(slack < 0, np.maximum(shapes[:, :4], pixels), np.minimum(shapes[:, :4], pixels)), low, high
    )
    return np.where(shapes[:, 8:] > 0, box, shown).astype(np.float32)


def compute_projected_boxes(camera: Camera, soups: Sequence[Soup], count: int) -> Floats:
    """(n, 9) x1, y1, x2, y2 of each instance's shape and of its pixels in the image, and their number.

    Zeros for those not before the camera.
    """
    corners = np.concatenate([soup.corners[soup.instance > 0] for soup in soups])
    instance = np.concatenate([soup.instance[soup.instance > 0] for soup in soups])
    # One instance after the other: the mark in a pixel then tells
    # whether the same one has counted it already.
    order = np.argsort(instance, kind="stable")
    found = np.tile(np.array([*2 * [np.inf, np.inf, -np.inf, -np.inf], 0.0]), (count, 1))
    mark = np.full((camera.height_px, camera.width_px), -1, dtype=np.int32)
    pose, lens = get_camera_parameters(camera)
    triangles = np.require(corners[order], np.float32, ("C", "W"))
    group = instance[order].astype(np.int64) - 1
    raster_kernels.measure(triangles, group, pose, lens, found)
    edges, which = np.empty((len(group), WORK)), np.empty(len(group), np.int32)
    k = collect_edges(triangles, pose, lens, np.array(mark.shape), False, edges, which)
    raster_kernels.count(edges[:k], group[which[:k]], mark, found)
    # Whoever has no triangle in view still holds the infinities that minima begin with.
    found[~np.isfinite(found).all(1)] = 0.0
    return found


def get_camera_parameters(camera: Camera) -> tuple[Floats, Floats]:
    """(3, 4) from the world to the camera, and (4,) focal lengths and the middle in pixels."""
    lens = np.array([camera.intrinsics[k] for k in ((0, 0), (1, 1), (0, 2), (1, 2))])
    return np.ascontiguousarray(camera.camera_SE3_world[:3]), lens


# Blocks: what is seen of an episode whose actors are plain blocks and where nothing else stands about.

_CORNERS = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (0.0, 1.0)])
_SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
_FACES = np.array([half for a, b, c, d in _SIDES for half in ((a, b, c), (a, c, d))])
_HEAD_M = (0.35, 0.35, 0.95)
RANGE_M = 140.0


def simulate_block_view(episode: Episode, *, joints: bool = True) -> Seen:
    """Visibility with actors as plain blocks; for tables without images.

    Args:
        episode: the scene.
        joints: whether to look for joints, which takes most of the time.
    """
    collector = SeenCollector(episode, joints, bodies=False)
    for frame in range(episode.n_frames):
        camera = build_camera(episode.ego, episode.config, frame, episode.seed)
        soup = build_block_soup(episode, frame)
        collector.add(frame, camera, render_triangle_ids(camera, soup), soup)
    return collector.seen()


def build_block_soup(episode: Episode, frame: int) -> Soup:
    """The blocks of all that is near in a frame."""
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
    n = len(_FACES) * len(held)
    corners = np.concatenate([np.zeros((0, 3, 3), np.float32), *(shape for _, shape in held)])
    marks = np.repeat(np.array([number for number, _ in held], dtype=np.int32), len(_FACES))
    byte, single = np.zeros(n, np.uint8), np.zeros(n, np.float32)
    return Soup(
        corners, np.zeros((n, 3), np.float32), byte, byte, single, np.zeros((n, 3, 2), np.float32), marks
    )


def _block(size: tuple[float, float, float], position: npt.ArrayLike, heading: float) -> Floats32:
    """(12, 3, 3) its triangles in the world."""
    c, s = np.cos(heading), np.sin(heading)
    corners = (_CORNERS * size) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) + position
    triangles: Floats32 = corners[_FACES].astype(np.float32)
    return triangles


def render_triangle_ids(camera: Camera, soup: Soup) -> Ints32:
    """(h, w) int32 whose triangle is nearest in each pixel, 0 for none."""
    size = (camera.height_px, camera.width_px)
    mask, inverse = np.zeros(size, np.int32), np.zeros(size, np.float32)
    pose, lens = get_camera_parameters(camera)
    stack(np.require(soup.corners, np.float32, ("C", "W")), soup.instance, pose, lens, inverse, mask)
    return mask
