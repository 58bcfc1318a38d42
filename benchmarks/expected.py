"""What anticipation and a decision cost for each frame beside the event head: processor time of one core.

    OPENBLAS_NUM_THREADS=1 python -m benchmarks.expected [--tubes 30] [--frames 400]

Tubes drift over a stream of frames; each frame is anticipated as in a watch, and decided with the same tubes as tokens.
The features are drawn around the means that the event head knows: neither cost depends on them.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from roadaware.arrays import Floats
from roadaware.models.detector import FrameDetections
from roadaware.models.event_head.anticipation import ConstantVelocity, open_anticipation
from roadaware.models.event_head.decisions import DecisionNetwork, list_token_columns, make_tokens
from roadaware.models.event_head.head import EventHead, open_head
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.simulator.actors import AV_ACTIONS
from roadaware.tasks.events import Expectation, LinkedTubes
from roadaware.training.events.decisions import DecisionModule, read_tensors

_SIZE_PX, _FPS = (1280, 720), 12.0


def build_untaught_network(head: EventHead) -> DecisionNetwork:
    """A network of decisions that learnt nothing: it costs as much as any other."""
    torch.manual_seed(0)
    columns = list_token_columns(head.actions, head.locations)
    tensors = read_tensors(DecisionModule(len(columns), 0))
    tensors |= {"mean": np.zeros(len(columns), np.float32), "spread": np.ones(len(columns), np.float32)}
    return DecisionNetwork(tuple(AV_ACTIONS), columns, (), tensors, {})


def measure_frames(tubes: int, frames: int) -> Floats:
    """(frames, 2) milliseconds of processor time of anticipation and of a decision.

    Args:
        tubes: of each frame.
        frames: that are timed, behind 50 that are not.
    """
    rng = np.random.default_rng(0)
    head = open_head()
    expectation, velocity = Expectation(head, open_anticipation()), ConstantVelocity()
    network = build_untaught_network(head)
    corner = rng.uniform(0, 600, (tubes, 2))
    boxes = np.hstack([corner, corner + rng.uniform(20, 120, (tubes, 2))])
    drift = np.tile(rng.normal(0, 3, (tubes, 2)), 2)
    score = rng.uniform(0.3, 1, tubes).astype(np.float32)
    agents = rng.dirichlet(np.ones(len(ROAD_AGENTS)), tubes).astype(np.float32)
    numbers = rows = np.arange(tubes)
    found = np.zeros((50 + frames, 2))
    for k in range(50 + frames):
        boxes = boxes + drift
        x = head.tubes.mean + head.tubes.spread * rng.normal(size=(tubes, len(head.tubes.mean)))
        logits = head.tubes.logits(x)
        actions, locations = head.convert_logits(logits)
        _, speed = velocity.step(k / _FPS, numbers, boxes)
        seen = FrameDetections(k, boxes.astype(np.float32), score, agents, np.zeros(0, np.float32))
        linked = LinkedTubes(rows, numbers, x, logits)
        started = time.process_time()
        expectation.step(k / _FPS, seen, linked)
        between = time.process_time()
        network.decide(make_tokens(agents, actions, locations, boxes, speed, score, _SIZE_PX))
        found[k] = between - started, time.process_time() - between
    return 1e3 * found[50:]


def main() -> None:
    """Print medians and 95th percentiles."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tubes", type=int, default=30)
    parser.add_argument("--frames", type=int, default=400)
    asked = parser.parse_args()
    found = measure_frames(asked.tubes, asked.frames)
    for name, each in (("anticipation", found[:, 0]), ("decision", found[:, 1]), ("both", found.sum(axis=1))):
        print(f"{name}: median {np.median(each):.3f} ms, 95th percentile {np.percentile(each, 95):.3f} ms")


if __name__ == "__main__":
    main()
