"""The pedestrian job on real annotations, from reading to reproducing, each beside its plain way."""

from __future__ import annotations

import os
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.measure import call, python
from roadaware.datasets import read
from roadaware.metrics.pedestrians import PedestrianConfig, SampleScores, evaluate_samples
from roadaware.scenes.sampling import Iv2024, sample
from roadaware.scenes.tables import Scenes

_READ = """
import sys
from pathlib import Path
from roadaware.datasets import read
read('jaad', Path(sys.argv[1]), cache=sys.argv[2] == 'cache')
"""
_READ_PLAINLY = """
import sys
from pathlib import Path
import polars as pl
from roadaware.datasets import cvat, read
from roadaware.io import xml
def plain(documents, record, *, root, walker=None):
    walked = xml.walk_all(documents, record, root)
    rows = [table.with_columns(document=pl.lit(n, pl.UInt32)) for n, (_, table) in enumerate(walked)]
    return xml.Tables(pl.concat(rows), [tree for tree, _ in walked], [False] * len(walked))
cvat.scan_records = plain
read('jaad', Path(sys.argv[1]), cache=False, processes=1)
"""


def cold(data: Path) -> tuple[str, str, str]:
    """Read all of JAAD in a fresh process, no cache."""
    cost = min((python(_READ, str(_jaad(data)), "no") for _ in range(3)), key=lambda cost: cost.seconds)
    return (
        "JAAD cold, process start included",
        "3.5 s, 400 MB",
        f"{cost.seconds:.2f} s, {cost.peak_mb:.0f} MB",
    )


def cold_plain(data: Path) -> tuple[str, str, str]:
    """The same with lxml element by element in one process: the plain way."""
    cost = python(_READ_PLAINLY, str(_jaad(data)))
    return (
        "JAAD cold, every element by lxml, one process",
        "-",
        f"{cost.seconds:.2f} s, {cost.peak_mb:.0f} MB",
    )


def warm(data: Path) -> tuple[str, str, str]:
    """Read all of JAAD from the cache, in a process that has read it before, and in a fresh one."""
    inside = call(lambda: read("jaad", _jaad(data)))
    fresh = min(python(_READ, str(_jaad(data)), "cache").seconds for _ in range(3))
    return "JAAD from the cache", "0.1 s", f"{inside.seconds:.3f} s ({fresh:.2f} s with process start)"


def sampling(data: Path) -> tuple[str, str, str]:
    """Cut the samples of all splits."""
    scenes = _scenes(data)
    cost = call(lambda: sample(scenes, Iv2024.reference("action")))
    return "JAAD samples of all splits", "1 s", f"{cost.seconds:.2f} s"


def bootstrap(data: Path) -> tuple[str, str, str]:
    """A thousand resamples of every Table III metric, over pedestrians and over videos."""
    state = _released(data)
    config = PedestrianConfig.reference("action")
    cost = call(lambda: evaluate_samples(state, config, resamples=1000).summary, times=3)
    plain = call(lambda: _plain_draw(state), times=3)
    got = f"{cost.seconds:.2f} s (scikit-learn on drawn rows, AP and AUC alone: {2000 * plain.seconds:.0f} s)"
    return "1,000 resamples of every Table III metric, two units", "5 s", got


def reproduce(data: Path) -> tuple[str, str, str]:
    """`reproduce iv2024` in a fresh process with an empty cache: reading, baselines, tables."""
    environment = {
        **os.environ,
        "ROADAWARE_HOME": str(Path(os.environ["ROADAWARE_HOME"]) / str(time.time_ns())),
    }
    code = "import sys; from roadaware.cli import main; sys.exit(main(sys.argv[1:]))"
    cost = python(code, "reproduce", "iv2024", "--data", str(data), environment=environment)
    return "reproduce iv2024, cold", "15 s", f"{cost.seconds:.1f} s, {cost.peak_mb:.0f} MB"


def _plain_draw(state: SampleScores) -> None:
    """One draw the plain way: rows of the drawn pedestrians put together, scikit-learn on them."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    names, owner = np.unique(state.pedestrian, return_inverse=True)
    drawn = np.random.default_rng(0).integers(0, len(names), len(names))
    rows = np.concatenate([np.flatnonzero(owner == each) for each in drawn])
    average_precision_score(state.truth[rows], state.scores[rows, 0])
    roc_auc_score(state.truth[rows], state.scores[rows, 0])


@cache
def _scenes(data: Path) -> Scenes:
    return read("jaad", _jaad(data))


def _released(data: Path) -> SampleScores:
    """The released PedFormer action scores with their truth."""
    scenes = sample(_scenes(data), Iv2024.reference("action"))
    rows = scenes.samples.filter(scenes.samples["split"] == "test")
    scores = np.loadtxt(data / "pie" / "pf_action_jaad.csv", delimiter=",", ndmin=2)
    return SampleScores(
        scores=scores,
        truth=rows["label"].to_numpy(),
        pedestrian=rows["tube"].cast(str).to_numpy(),
        video=rows["video"].to_numpy(),
        tte_frames=rows["tte_frames"].to_numpy(),
        order=np.arange(len(rows)),
    )


def _jaad(data: Path) -> Path:
    found = sorted((data / "jaad").glob("*.zip")) or [data / "jaad"]
    return found[0]


BENCHMARKS = (cold, cold_plain, warm, sampling, bootstrap, reproduce)

if __name__ == "__main__":
    sys.exit("run `python -m benchmarks`")
