"""A reader of joints of some thousand weights, as a graph and as a file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from roadaware.models.catalogue.entries import LISTS

JOINTS = LISTS["joints"]


def tiny_pose_graph() -> object:
    """Four maps, each of one convolution of the crop; always the same weights."""
    from roadaware.models.graphs.graph import INPUT, Graph, Step

    rng, steps, weights, outputs = np.random.default_rng(0), [], {}, {}
    k = len(JOINTS)
    for name, channels in (("centre", 1), ("heat", k), ("regression", 2 * k), ("offset", 2 * k)):
        weights[f"w-{name}"] = rng.normal(0, 1e-3, (channels, 3, 3, 3)).astype(np.float32)
        fields = {"stride": 4, "dilation": 1, "groups": 1, "pad": True, "then": "none"}
        steps.append(Step("conv", f"made-{name}", (INPUT, f"w-{name}"), fields))
        outputs[name] = f"made-{name}"
        if name in ("centre", "heat"):
            steps.append(Step("sigmoid", f"sure-{name}", (f"made-{name}",)))
            outputs[name] = f"sure-{name}"
    return Graph(tuple(steps), weights, outputs)


def save_tiny_poses(path: Path) -> Path:
    """The file, as `models get` writes one."""
    from roadaware.models.graphs.runner import save_graph

    facts = {"task": "pose", "decoder": "movenet", "classes": list(JOINTS), "notes": {"name": "tiny"}}
    save_graph(path, tiny_pose_graph(), facts)  # type: ignore[arg-type]
    return path
