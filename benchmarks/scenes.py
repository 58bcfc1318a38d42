"""The four tasks on scenes: evaluation at full size from opened tables, beside its plain way."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks import scene_sets
from benchmarks.measure import call, python
from roadaware.metrics.actions import CONFIGS as ACTIONS
from roadaware.metrics.actions import evaluate as actions
from roadaware.metrics.grounding import CONFIGS as GROUNDING
from roadaware.metrics.grounding import evaluate as grounding
from roadaware.metrics.relations import CONFIGS as RELATIONS
from roadaware.metrics.relations import evaluate as relations
from roadaware.metrics.sound import CONFIGS as SOUND
from roadaware.metrics.sound import evaluate as sound
from roadaware.scenes.schema import CORNERS
from roadaware.scenes.tables import Predictions, Scenes

_Row = tuple[str, str, str]
_RESAMPLES = 1000


def scene_actions() -> _Row:
    """Action mAP at the size of AVA, as the official code and as we recommend."""
    what = "actions: 24,000 keyframes, 300,000 truths x labels, 1,000,000 scored boxes"
    names = ("ava-official", "mmaction2", "paper", "default")
    return what, "5 s", _timed(actions, ACTIONS, names, _ava, resamples=_RESAMPLES)


def scene_actions_memory() -> _Row:
    """The same in a fresh process, tables made and judged."""
    code = """
from benchmarks.scene_sets import ava
from roadaware.metrics.actions import CONFIGS
from roadaware.metrics.actions import evaluate
truth, predictions = ava()
evaluate(predictions, truth, CONFIGS["ava-official"]())
"""
    cost = python(code)
    return "actions, whole process", "1 GB", f"{(cost.peak_mb or 0) / 1e3:.2f} GB, {cost.seconds:.1f} s"


def scene_actions_plain() -> _Row:
    """A fiftieth of it in plain Python, which is the oracle of the tests, beside ours on the same."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "metrics" / "actions"))
    from plain_actions import Row, official  # type: ignore[import-not-found]

    truth, predictions = scene_sets.ava(keyframes=480, truths=6000, detections=20_000)

    def rows(held: Scenes | Predictions) -> list[Row]:
        table = held.labels.join(held.boxes, on="box", maintain_order="left")
        score = table["score"].to_list() if "score" in table.columns else [None] * len(table)
        ids = (table["label"] + 1).to_list()
        columns = [table[name].to_list() for name in ("video", "frame", *CORNERS)]
        return [Row(*row) for row in zip(*columns, ids, score, strict=True)]

    true, predicted = rows(truth), rows(predictions)
    plain = call(lambda: official(true, predicted, ()), times=1)
    config = ACTIONS["ava-official"]()
    ours = call(lambda: actions(predictions, truth, config), times=3)
    return (
        "a fiftieth of it in plain Python",
        "–",
        f"{plain.seconds:.2f} s (ours on the same: {ours.seconds:.3f} s)",
    )


def scene_relations() -> _Row:
    """Tubelet and frame metrics of a thousand videos."""
    what = "relations: 1,000 videos, 10,000 true and 200,000 predicted relations"
    names = ("vidvrd", "frame-sg-with", "frame-sg-no", "default")
    return what, "3 s", _timed(relations, RELATIONS, names, _relations, resamples=_RESAMPLES)


def scene_grounding() -> _Row:
    """Five hundred sentences of two hundred frames."""
    names = ("tubedetr-hcstvg", "hcstvg-official", "default")
    what = "grounding: 500 sentences of 200 frames"
    return what, "1 s", _timed(grounding, GROUNDING, names, _sentences, resamples=_RESAMPLES)


def scene_sound() -> _Row:
    """Five thousand maps as large as the images they are judged in, with the baselines."""
    names = ("vggss", "paper", "default")
    return "sound: 5,000 maps of 224 x 224", "5 s", _timed(sound, SOUND, names, _sounds, resamples=_RESAMPLES)


def _timed(
    evaluate: Callable[..., Any],
    configs: dict[str, Callable[[], Any]],
    names: tuple[str, ...],
    sets: Callable[[], tuple[Scenes, Predictions]],
    *,
    resamples: int,
) -> str:
    """Seconds under each config, compiled; and how long the resamples take under the last."""
    truth, predictions = sets()
    told = []
    for name in names:
        config = configs[name]()
        evaluate(predictions, truth, config)
        seconds = call(partial(evaluate, predictions, truth, config), times=2).seconds
        told.append(f"{name} {seconds:.2f} s")
    drawn = call(partial(evaluate, predictions, truth, config, resamples=resamples), times=1).seconds
    return f"{', '.join(told)}; {resamples:,} resamples {drawn - seconds:.1f} s more"


_ava = cache(scene_sets.ava)
_relations = cache(scene_sets.relations)
_sentences = cache(scene_sets.sentences)
_sounds = cache(scene_sets.sounds)

BENCHMARKS = (
    scene_actions,
    scene_actions_plain,
    scene_actions_memory,
    scene_relations,
    scene_grounding,
    scene_sound,
)
