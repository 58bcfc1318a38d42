"""Draw the image of the page on proposals again: `python docs/figures_corner_cases.py [SCENES]`."""

from __future__ import annotations

import io
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from PIL import Image

from roadaware.corner_cases.runner import Order, iterate_proposals, load_run_inputs
from roadaware.io.files import write_atomically
from roadaware.reports.copg import draw_sheet, draw_steps
from roadaware.scenes.sensors import open_frame
from roadaware.simulator.config import build_scene_config
from roadaware.simulator.generate import Order as Scenes
from roadaware.simulator.generate import generate_scenes

SCENE, FRAME, WIDTH_PX = "corner-cases-0003", 9, 1100
PART = (slice(180, 400), slice(120, 840))
"""Of the camera's images, where things are."""


def main() -> None:
    """Make four scenes of two seconds, and write docs/images/proposals.jpg of one of them."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(scratch)
        config = replace(build_scene_config("corner-cases"), seconds=2.0, sound=False)
        generate_scenes(Scenes(config, seed=0, scenes=4), root)
        order = Order("simulator", str(root), semantics="truth", detections="truth")
        moments = load_run_inputs(order).moments
        place = next(n for n, at in enumerate(moments) if (at.video, at.frame) == (SCENE, FRAME))
        moment, capture, found, scenes = next(iterate_proposals(order, range(place, place + 1)))
        picture = open_frame(scenes, root, moment.video, moment.frame)
        steps = draw_steps(found, capture, picture)
        whole = picture.shape
        steps = {name: step[PART] if step.shape == whole else step for name, step in steps.items()}
    held = io.BytesIO()
    Image.fromarray(draw_sheet(steps, width_px=WIDTH_PX, columns=2)).save(held, "JPEG", quality=80)
    target = Path(__file__).parent / "images" / "proposals.jpg"
    write_atomically(target, held.getvalue())
    print(target, f"{len(held.getvalue()) // 1000} kB")


if __name__ == "__main__":
    main()
