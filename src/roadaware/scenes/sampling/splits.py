"""Which videos a protocol's splits hold, and what to do about a split that holds none."""

from __future__ import annotations

from roadaware.errors import InputError
from roadaware.scenes.sampling.configs import EventProtocol
from roadaware.scenes.tables import Scenes

_SETS = "PIE's splits follow from its folders: set01, 02, 04 are train, set05, 06 val, set03 test"


def filled_splits(scenes: Scenes, protocol: EventProtocol) -> tuple[str, ...]:
    """The splits of the protocol that hold at least one video of the scenes, in the protocol's order."""
    held = set(_names(scenes))
    return tuple(split for split in protocol.splits if f"{protocol.subset}/{split}" in held)


def videos_of(scenes: Scenes, protocol: EventProtocol, split: str) -> list[str]:
    """The videos of one split, sorted.

    Raises:
        InputError: if there are none; says where the split's list should be.
    """
    name = f"{protocol.subset}/{split}"
    if name in (names := _names(scenes)):
        return scenes.split_videos(name)
    dataset = scenes.meta.dataset or protocol.dataset.upper()
    if not names:
        raise InputError(
            f"no video of {dataset} is in any split: the split lists were not found",
            hint=_SETS
            if protocol.dataset == "pie"
            else "put the release's folder split_ids/ beside annotations/; "
            f"split_ids/{protocol.subset}/ holds train.txt, val.txt and test.txt",
        )
    where = _SETS if protocol.dataset == "pie" else f"complete its list, split_ids/{name}.txt"
    near = [other for other in names if other.startswith(f"{protocol.subset}/")] or names
    raise InputError(
        f"no video is in split '{name}' of {dataset}; there are videos in {', '.join(near)}",
        hint=f"{where}, and the annotations of its videos; or ask for another split",
    )


def _names(scenes: Scenes) -> list[str]:
    """All splits that hold a video, sorted."""
    if "splits" not in scenes.videos.columns:
        return []
    return [str(name) for name in scenes.videos["splits"].explode().drop_nulls().unique().sort()]
