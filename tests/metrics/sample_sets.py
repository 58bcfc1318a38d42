"""Random sets of samples, for properties that hold for all of them."""

import numpy as np
from hypothesis import strategies as st

from roadaware.metrics.pedestrians import SampleScores

TASKS = ("action", "intention", "risk")


def random_set(seed, task="action", n=200, people=40, videos=12, classes=None, ties=False):
    """A set of samples with pedestrians of several samples each, in order of extraction."""
    rng = np.random.default_rng(seed)
    k = classes or {"action": 1, "intention": 3, "risk": 12}[task]
    raw = rng.random((n, k)) if k == 1 else rng.dirichlet(np.ones(k), size=n)
    if ties:
        raw = np.round(raw * 8) / 8
    who = np.sort(rng.integers(0, people, n))
    truth = rng.integers(0, max(2, k), n)
    names = np.array([f"v{p % videos}/p{p}" for p in who])
    return SampleScores(raw, truth, names, np.array([f"v{p % videos}" for p in who]), rng.integers(30, 91, n))


@st.composite
def sample_sets(draw, task, max_size=30):
    """Small sets with many ties, lone samples, missing classes and pedestrians in mixed order."""
    n = draw(st.integers(1, max_size))
    k = {"action": 1, "intention": 3}.get(task) or draw(st.sampled_from([2, 5, 6]))
    cells = draw(st.lists(st.integers(0, 4), min_size=n * k, max_size=n * k))
    scores = np.array(cells, float).reshape(n, k)
    if k == 1:
        scores = scores / 4
    elif draw(st.booleans()):
        scores = (scores + 0.25) / (scores + 0.25).sum(axis=1, keepdims=True)
    else:
        scores = scores / 4
    truth = draw(st.lists(st.integers(0, max(2, k) - 1), min_size=n, max_size=n))
    people = np.array(draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    tte = draw(st.lists(st.integers(0, 90), min_size=n, max_size=n))
    videos = np.array([f"v{p % 3}" for p in people])
    return SampleScores(scores, np.array(truth), people.astype(str), videos, np.array(tte))
