"""Annotated behaviour of a pedestrian: refused by default, since having such tags leaks the label."""

from __future__ import annotations

import numpy as np

from roadaware.arrays import Floats
from roadaware.errors import InputError, UsageError
from roadaware.statistics.ranking import roc_auc
from roadaware.tasks.crossing_inputs.observations import Observations

NEEDS = "boxes.action and look (JAAD, PIE, the simulator), and leave to leak (samples.leaks, leaks=True)"
ACTIONS, LOOKS = ("standing", "walking"), ("not-looking", "looking")
COLUMNS = ("walking", "looking", "tagged")


def encode_behaviour(seen: Observations, *, leaks: bool) -> Floats:
    """(n, t, 3) walking, looking, and 1 where a box has such tags; the first two are NaN without.

    The tag that says whether somebody is crossing is the answer itself and never given.

    Args:
        seen: n observations.
        leaks: that the caller knows what the tags give away.

    Raises:
        UsageError: if `leaks` is not set.
        InputError: if the boxes lack the tags.
    """
    lost = [column for column in ("action", "look") if column not in seen.scenes.boxes.columns]
    if lost:
        raise InputError(f"behaviour reads {NEEDS}; these boxes have no {' and no '.join(lost)}")
    walking, looking = seen.at_boxes("action", ACTIONS), seen.at_boxes("look", LOOKS)
    tagged = ~(np.isnan(walking) & np.isnan(looking))
    if not leaks:
        raise UsageError(
            "behaviour tags are refused. Annotators who had seen the whole video gave them, in JAAD only to "
            "those who interact with the driver, and everybody who crosses is among these. "
            f"{_told_by(seen, tagged.mean(axis=1))} samples.leaks: true in a "
            "recipe, leaks=True in Python, gives them all the same"
        )
    return np.stack([walking, looking, tagged.astype(np.float64)], axis=-1)


def _told_by(seen: Observations, share: Floats) -> str:
    """How well the presence of tags predicts the labels of these samples, in words.

    Args:
        seen: n observations.
        share: (n,) of their frames that have tags.
    """
    truth = seen.samples["label"].drop_nulls() if "label" in seen.samples.columns else None
    if truth is None or len(truth) < len(seen):
        return "How much they tell of these samples cannot be measured without answers."
    label = truth.to_numpy()
    found = {int(k): roc_auc(label == k, share) for k in np.unique(label)}
    known = {k: auc for k, auc in found.items() if auc is not None}
    if not known:
        return "These samples have one answer alone."
    best = max(known, key=lambda k: (known[k], k))
    names = seen.scenes.meta.vocabularies.get(str(seen.samples["kind"][0]), ())
    name = names[best] if best < len(names) else str(best)
    return f"On these samples, whether there are tags tells '{name}' with AUC {known[best]:.3f} by itself."
