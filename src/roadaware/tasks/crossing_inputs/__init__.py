"""Inputs of pedestrian predictors, built from scenes with samples."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError
from roadaware.models.crossing.inputs import Column, Held, InputName, InputSet, parse_input_name
from roadaware.scenes.tables import Scenes
from roadaware.tasks.crossing_inputs import boxes, facts, history, pose
from roadaware.tasks.crossing_inputs.crops import CategoryMap, Crop, Cutter, Cuttings, Pictures, Shares
from roadaware.tasks.crossing_inputs.footage import CropConfig, Films, Media, open_class_masks
from roadaware.tasks.crossing_inputs.observations import Observations, collect_observations

__all__ = ["CropConfig", "Media", "build_inputs", "describe_requirements", "list_inputs"]


_TABLES: dict[str, tuple[Callable[[Observations], Floats], str]] = {
    **boxes.FORMS,
    **facts.FORMS,
    **boxes.GRID_FORMS,
    "history": (history.describe_history, history.NEEDS),
}
_POSES = {"pose": pose.NEEDS, "pose:box": f"{pose.NEEDS}; boxes"}
_FILMS = "boxes with tubes, and the videos (media.root)"
_PICTURES = {
    "crop:box": _FILMS,
    "crop:context": _FILMS,
    "crop:surround": _FILMS,
    "maps": "boxes with tubes, and class masks: the simulator's, or PNGs (media.maps)",
}
_NEEDS = {
    **{name: needed for name, (_, needed) in _TABLES.items()},
    **_POSES,
    **_PICTURES,
    "behaviour": facts.BEHAVIOUR_NEEDS,
}
_MOST_PIXELS = 1024


def list_inputs() -> tuple[str, ...]:
    """The names of all inputs; what is an image is followed by `@` and its side, such as `crop:box@112`."""
    return tuple(_NEEDS)


def describe_requirements(name: str) -> str:
    """In words, which tables and files an input reads.

    Args:
        name: as `build_inputs` takes it, or as `list_inputs` gives it.

    Raises:
        UsageError: if there is no such input.
    """
    return _NEEDS[name if name in _NEEDS else _plain(_parse_input_name(name))]


def build_inputs(
    scenes: Scenes, split: str, names: Sequence[str], *, leaks: bool = False, media: Media | None = None
) -> InputSet:
    """Build the inputs of the samples of one split, in the order of `tasks.pedestrians.build_examples`.

    Images are cut when they are taken; everything else is in memory. What is unknown is NaN.

    Args:
        scenes: with `samples` cut by a protocol.
        split: train, val or test.
        names: of inputs, in the order in which a network is to be given them.
        leaks: give also inputs that leak the label.
        media: where videos, masks and files of poses lie.

    Raises:
        UsageError: if a name is unknown or given twice, one leaks, or the samples were not cut for the split.
        InputError: if the split has no samples, or the scenes lack what an input reads.
    """
    asked = {name: _parse_input_name(name) for name in names}
    if len(asked) < len(names) or not names:
        raise UsageError(f"inputs are named once each, and at least one; got {list(names)}")
    seen = collect_observations(scenes, split)
    columns = {
        **_cut(seen, {name: parts for name, parts in asked.items() if parts.kind == "crop"}, media),
        **_cut(seen, {name: parts for name, parts in asked.items() if parts.kind == "maps"}, media),
    }
    for name, parts in asked.items():
        if name not in columns:
            if parts.kind == "pose":
                values = pose.encode_pose(seen, media, parts.form)
            elif parts.kind == "behaviour":
                values = facts.encode_behaviour(seen, leaks=leaks)
            else:
                values = _TABLES[_plain(parts)][0](seen)
            if np.isinf(values).any():
                raise InputError(f"the input {name} holds numbers that are not finite")
            columns[name] = Held(np.ascontiguousarray(values, dtype=np.float32))
    return InputSet({name: columns[name] for name in names}, len(seen))


def _cut(seen: Observations, asked: dict[str, InputName], media: Media | None) -> dict[str, Column]:
    """Columns of images; those of one kind are cut in one pass."""
    if not asked:
        return {}
    maps = next(iter(asked.values())).kind == "maps"
    footage = open_class_masks(seen.scenes, media) if maps else Films(seen.scenes, media)
    given = media or Media()
    cutters: dict[str, Cutter] = {
        name: CategoryMap(parts.pixels, given.classes, given.crops.enlarge)
        if maps
        else Crop(parts.form, parts.pixels, given.crops)
        for name, parts in asked.items()
    }
    cuttings = Cuttings(seen, footage, cutters, given)
    return {name: (Shares if maps else Pictures)(cuttings, name) for name in asked}


def _plain(parts: InputName) -> str:
    return f"{parts.kind}:{parts.form}" if parts.form else parts.kind


def _parse_input_name(name: str) -> InputName:
    """The parts of a name that there is.

    Raises:
        UsageError: if there is none, with the nearest; or an image has no side, or another input has one.
    """
    parts = parse_input_name(name)
    plain = _plain(parts)
    if plain not in _NEEDS:
        near = difflib.get_close_matches(plain, _NEEDS, n=1)
        guess = f"; did you mean '{near[0]}'?" if near else "."
        raise UsageError(f"no input '{name}'{guess} There are {', '.join(list_inputs())}")
    if plain in _PICTURES and not 1 <= parts.pixels <= _MOST_PIXELS:
        raise UsageError(f"'{name}' is an image and needs its side in pixels: '{plain}@112'")
    if parts.pixels and plain not in _PICTURES:
        raise UsageError(f"'{name}' is no image; write '{plain}'")
    return parts
