"""Proposals of a whole set, after its images: followed over sweeps, and their cuboids as files of other tools."""

from __future__ import annotations

from pathlib import Path

from roadaware.arrays import Floats
from roadaware.corner_cases.runner import Order, load_run_inputs
from roadaware.corner_cases.tracking import track_proposals
from roadaware.errors import InputError, UsageError
from roadaware.formats.cuboid_labels import CuboidForm, write_cuboids
from roadaware.scenes.store import save
from roadaware.scenes.tables import Predictions

TRACKS, CUBOIDS = "tracks", "cuboids"
"""Folders beside the proposals: saved Predictions with tracks, and files of other tools."""


def require_poses(order: Order) -> None:
    """Refuse, before any work, what needs to know where the vehicle was.

    Args:
        order: what is proposed.

    Raises:
        UsageError: if the set does not say where the vehicle was.
        InputError: if the set cannot be read.
    """
    held = load_run_inputs(order)
    without = [moment for moment in held.moments if held.captures.world_from_lidar(moment) is None]
    if without:
        raise UsageError(
            f"tracks and boxes in the world need poses of the vehicle, which {len(without):,} of "
            f"{len(held.moments):,} images lack, {without[0].video} first; nuScenes and synthetic scenes have them"
        )


def save_tracks(order: Order, found: Predictions, folder: Path) -> tuple[Predictions, dict[str, int]]:
    """Follow proposals over the sweeps of each video, and save them; with counts of things and boxes.

    Args:
        order: what was proposed.
        found: its proposals.
        folder: where to; an earlier one is replaced.

    Raises:
        UsageError: if the set does not say where the vehicle was.
        DiskError: if the disk refuses.
    """
    tracked = track_proposals(found, load_run_inputs(order).captures, most=order.config.most)
    save(tracked, folder, overwrite=True)
    tubes = tracked.tubes
    return tracked, {
        "things": len(tubes),
        "boxes": len(tracked.boxes),
        "moving": int(tubes["moving"].sum()),
        "seen_again": int((tubes["sweeps"] > 1).sum()),
        "carried": int(tracked.boxes["carried"].sum()),
    }


def save_cuboids(
    order: Order, found: Predictions, folder: Path, forms: tuple[CuboidForm, ...]
) -> dict[str, int]:
    """Write the cuboids of proposals for other tools; how many of each form.

    Args:
        order: what was proposed.
        found: its proposals.
        folder: where to.
        forms: which.

    Raises:
        UsageError: if nuScenes' form is asked for and the set does not say where the vehicle was.
        DiskError: if the disk refuses.
    """
    held = load_run_inputs(order)
    cameras: dict[tuple[str, int], Floats] = {}
    poses: dict[tuple[str, int], Floats] = {}
    for moment in held.moments:
        try:
            camera = held.captures.camera(moment)
        except InputError:
            # Left out of the proposals, too, where the reason stands.
            continue
        cameras[moment.video, moment.frame] = camera.camera_SE3_lidar
        world = held.captures.world_from_lidar(moment)
        if world is not None:
            poses[moment.video, moment.frame] = world
    return write_cuboids(found, folder, forms, cameras=cameras, poses=poses)
