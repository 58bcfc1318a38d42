"""The answers that belong to samples: whether the pedestrian crosses, means to, and where they end up."""

from __future__ import annotations

import numpy as np
import polars as pl

from roadaware.arrays import Bools, Ints
from roadaware.errors import InputError
from roadaware.geometry.regions import place_in_regions
from roadaware.scenes.sampling.configs import EventProtocol, Iv2024, Task
from roadaware.scenes.sampling.cutting import Cuts
from roadaware.scenes.sampling.tracks import Tracks
from roadaware.scenes.tables import Scenes

# Coordinates are kept as 32-bit floats and were written with two decimals (JAAD: at most three);
# rounding gives back the written number, and with it the published side of a region's border.
_WRITTEN_DECIMALS = 3


def vocabulary(protocol: EventProtocol) -> tuple[str, ...]:
    """The possible answers, in the order of their labels."""
    if protocol.task == "action":
        return ("not-crossing", "crossing")
    if protocol.task == "intention":
        return ("no-crossing", "unsure", "crossing")
    regions = protocol.risk_regions if isinstance(protocol, Iv2024) else 12
    return tuple(f"region_{region}" for region in range(regions))


def labels(scenes: Scenes, tracks: Tracks, cuts: Cuts, protocol: EventProtocol) -> Ints:
    """(n,) the answer to each sample, an index into `vocabulary`.

    Args:
        scenes: boxes and videos.
        tracks: the pedestrians.
        cuts: (n) their samples.
        protocol: what is asked.

    Raises:
        InputError: if risk is asked for and the width of a video is unknown.
    """
    task: Task = protocol.task
    if task == "action" or not isinstance(protocol, Iv2024):
        return tracks.crossing[cuts.track].astype(np.int64)
    if task == "intention":
        return _intention(tracks, protocol)[cuts.track]
    return _risk(scenes, tracks, cuts, protocol)


def crossing_observed(scenes: Scenes, tracks: Tracks, cuts: Cuts, frames: int) -> Bools:
    """(n,) whether a box inside the observation is tagged as crossing; False where there are no tags.

    Args:
        scenes: the boxes.
        tracks: the pedestrians.
        cuts: (n) their samples.
        frames: length of the observation.
    """
    if "cross" not in scenes.boxes.columns or scenes.boxes.is_empty():
        return np.zeros(len(cuts.start), dtype=np.bool_)
    tagged = scenes.boxes["cross"].cast(pl.String).eq("crossing").fill_null(False).to_numpy()
    before = np.concatenate(([0], np.cumsum(tagged[tracks.index.row])))
    begin, length = tracks.begin[cuts.track], tracks.length[cuts.track]
    first = begin + cuts.start
    last = begin + np.minimum(cuts.start + frames, length)
    return np.asarray(before[last] > before[first])


def _intention(tracks: Tracks, protocol: Iv2024) -> Ints:
    """(n,) class of each pedestrian's intention: below one third, between, from two thirds."""
    asked = tracks.frame["intention_prob"].cast(pl.Float32).fill_null(0.0).to_numpy()
    third, two_thirds = np.float32(1 / 3), np.float32(2 / 3)
    above = asked > third if protocol.intention_third == "below" else asked >= third
    return above.astype(np.int64) + (asked >= two_thirds)


def _risk(scenes: Scenes, tracks: Tracks, cuts: Cuts, protocol: Iv2024) -> Ints:
    """(n,) the region that holds the centre of the box at the end of the risk horizon."""
    ahead = cuts.start + protocol.observation_frames + protocol.risk_horizon_frames - 1
    place = tracks.begin[cuts.track] + np.minimum(ahead, tracks.length[cuts.track] - 1)
    boxes = scenes.boxes[tracks.index.row[place]]
    left, right = (boxes[c].cast(pl.Float64).to_numpy().round(_WRITTEN_DECIMALS) for c in ("x1_px", "x2_px"))
    centre = (left + right) / 2
    width = _widths(scenes, tracks, protocol)[cuts.track]
    region = np.floor(place_in_regions(centre, width, protocol.risk_regions))
    region = np.minimum(region, protocol.risk_regions - 1).astype(np.int64)
    off_left = protocol.risk_regions - 1 if protocol.risk_off_left == "last_region" else 0
    return np.where(region < 0, off_left, region)


def _widths(scenes: Scenes, tracks: Tracks, protocol: Iv2024) -> Ints:
    """(n,) the image width that counts for each pedestrian."""
    sizes = scenes.videos.select(pl.col("video").cast(pl.String), "width_px")
    held = tracks.frame.select(pl.col("video").cast(pl.String))
    widths = held.join(sizes, on="video", how="left", maintain_order="left")["width_px"]
    if widths.null_count():
        unknown = held.filter(widths.is_null())["video"].unique().sort().head(5).to_list()
        raise InputError(f"the width of the image is unknown for {unknown}; risk regions are shares of it")
    values = widths.to_numpy()
    if protocol.risk_width == "last_video" and len(values):
        values = np.full(len(values), values[-1])
    return np.asarray(values, dtype=np.int64)
