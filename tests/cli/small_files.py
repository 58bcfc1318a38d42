"""Small files of scores and samples, and how a command ended."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Done:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """Standard output as strict JSON."""

        def refuse(name: str) -> None:
            raise ValueError(f"{name} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


Command = Callable[..., Done]


@dataclass(frozen=True)
class Files:
    """A scores file and a samples file that belong together."""

    scores: Path
    samples: Path
    values: np.ndarray
    truth: np.ndarray
    pedestrian: list[str]
    tte_frames: np.ndarray


def write_files(folder: Path, task: str = "action", people: int = 30, seed: int = 0) -> Files:
    """Seven samples of each pedestrian, five pedestrians a video, scores that know something."""
    rng = np.random.default_rng(seed)
    classes = {"action": 2, "intention": 3, "risk": 12}[task]
    each = rng.integers(0, classes, people)
    each[:classes] = np.arange(classes)
    truth = np.repeat(each, 7)
    tte = np.tile(np.arange(90, 29, -10), people)
    names = [f"0_{k // 5}_{k}b" for k in range(people) for _ in range(7)]
    drift = np.repeat(rng.normal(0, 0.6, (people, max(1, classes - (classes == 2)))), 7, axis=0)
    if task == "action":
        logits = 2.0 * (truth[:, None] - 0.5) + drift + rng.normal(0, 0.2, (len(truth), 1))
        values = 1 / (1 + np.exp(-logits))
    else:
        logits = 2.0 * np.eye(classes)[truth] + drift + rng.normal(0, 0.2, (len(truth), classes))
        values = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    scores, samples = folder / f"{task}.csv", folder / f"{task}_samples.csv"
    np.savetxt(scores, values, delimiter=",", fmt="%.18e")
    lines = ["truth,pedestrian,tte_frames,video"]
    lines += [f"{t},{n},{e},video_{n.split('_')[1]:0>4}" for t, n, e in zip(truth, names, tte, strict=True)]
    samples.write_text("\n".join(lines) + "\n")
    return Files(scores, samples, values, truth, names, tte)
