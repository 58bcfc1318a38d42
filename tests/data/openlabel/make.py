"""Write a tiny set in the format of ASAM OpenLABEL: two videos, each with a walker and a car."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = "sensor json"
MAIN = "street.json"
VIDEO = "street"
OTHERS = ()
BAD_ROW = "upside down"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: data.replace(b"20.5, 40", b"-20.5, 40", 1),
    "changed": lambda data: data.replace(b"20.5, 40", b"21.5, 40.5", 1),
    "same_size": lambda data: data.replace(b"20.5, 40", b"21.5, 40", 1),
}
OPTIONS = {"fps": 10}
WARNS = False


def make(root: Path, *, frames: int = 3) -> Path:
    """Write two videos.

    Args:
        root: where to; made with its parents.
        frames: of each.
    """
    root.mkdir(parents=True, exist_ok=True)
    for video in ("street", "yard"):
        (root / f"{video}.json").write_text(json.dumps(content(frames)))
    return root


def content(frames: int) -> dict[str, Any]:
    """A walker, and a car of which half is hidden."""

    def box(values: list[float], **said: bool) -> dict[str, Any]:
        attributes = {"boolean": [{"name": name, "val": value} for name, value in said.items()]}
        return {
            "object_data": {
                "bbox": [{"name": "shape", "val": values, **({"attributes": attributes} if said else {})}]
            }
        }

    span = [{"frame_start": 0, "frame_end": frames - 1}]
    shown = {
        str(n): {
            "objects": {"0": box([20.25 + n, 40.5, 20.5, 40]), "1": box([130, 65.25, 60, 30], occluded=True)}
        }
        for n in range(frames)
    }
    lens = {"intrinsics_pinhole": {"width_px": 640, "height_px": 480}}
    return {
        "openlabel": {
            "metadata": {"schema_version": "1.0.0"},
            "objects": {
                "0": {"name": "walker", "type": "pedestrian", "frame_intervals": span},
                "1": {"name": "parked", "type": "car", "frame_intervals": span},
            },
            "frames": shown,
            "frame_intervals": span,
            "streams": {"front": {"type": "camera", "stream_properties": lens}},
        }
    }
