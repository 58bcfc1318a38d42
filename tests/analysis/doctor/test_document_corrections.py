"""A mistake planted in a file of relations, sentences or sounds is named and undone; clean files are left alone."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fitting_predictions
import numpy as np
import pytest

from roadaware.analysis.corrected_scores import (
    CorrectedScores,
    Source,
    correct_file,
)
from roadaware.analysis.doctor.documents import FORMS, _find_shift
from roadaware.demo_data.chaos import write_chaos
from roadaware.errors import InputError

Change = Callable[[Any], Any]


def each_relation(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Change:
    """The same change of every prediction."""

    def apply(content: Any) -> Any:
        held = content.get("results", content)
        return {"results": {video: [change(each) for each in listed] for video, listed in held.items()}}

    return apply


def boxes_of(change: Callable[[list[float]], list[float]]) -> Change:
    return each_relation(
        lambda each: each | {side: [change(box) for box in each[side]] for side in ("sub_traj", "obj_traj")}
    )


def moved(step: int) -> Change:
    return each_relation(lambda each: each | {"duration": [n + step for n in each["duration"]]})


def shout(word: str) -> str:
    return word.upper().replace(" ", "_")


def inclusive(span: list[int]) -> list[int]:
    return [span[0], span[1] - 1]


def numbered(base: int) -> Change:
    """Words as their places in the ground truth's lists, which are in the order of the alphabet."""

    def apply(content: Any) -> Any:
        listed = [each for held in content["results"].values() for each in held]
        words = [sorted(TRUTH_WORDS["category"]), sorted(TRUTH_WORDS["predicate"])]
        assert listed
        return each_relation(
            lambda each: (
                each
                | {"triplet": [words[n % 2].index(word) + base for n, word in enumerate(each["triplet"])]}
            )
        )(content)

    return apply


TRUTH_WORDS: dict[str, list[str]] = {}

RELATIONS: dict[str, tuple[str, Change]] = {
    "video names": ("without their endings", lambda held: {"results": {f"{v}.mp4": x for v, x in held["results"].items()}}),
    "words": ("spelled otherwise", each_relation(lambda e: e | {"triplet": [shout(word) for word in e["triplet"]]})),
    "numbers from 0": ("numbers of classes, from 0", numbered(0)),
    "numbers from 1": ("numbers of classes, from 1", numbered(1)),
    "last frames": ("end with their last frame", each_relation(lambda e: e | {"duration": inclusive(e["duration"])})),
    "late by 6": ("late", moved(6)),
    "sides": ("width and height where", boxes_of(lambda b: [b[0], b[1], b[2] - b[0], b[3] - b[1]])),
    "exchanged axes": ("x and y exchanged", boxes_of(lambda b: [b[1], b[0], b[3], b[2]])),
    "other images": ("of 320x240", boxes_of(lambda b: [b[0] / 2, b[1] / 1.5, b[2] / 2, b[3] / 1.5])),
}  # fmt: skip


def each_span(change: Callable[[list[float]], list[float]]) -> Change:
    def apply(content: Any) -> Any:
        held = copy.deepcopy(content)
        for each in held["video_predictions"].values():
            each["sted"] = change(each["sted"])
        return held

    return apply


def each_box(change: Callable[[list[float]], list[float]], frames: int = 0) -> Change:
    def apply(content: Any) -> Any:
        held = copy.deepcopy(content)
        fresh = {}
        for key, each in held["predictions"].items():
            name, _, frame = key.rpartition("_")
            fresh[f"{name}_{int(frame) + frames}"] = {"boxes": [change(box) for box in each["boxes"]]}
        held["predictions"] = fresh
        return held

    return apply


def renamed(content: Any) -> Any:
    """Names in capitals, in a folder."""
    held = copy.deepcopy(content)
    held["video_predictions"] = {f"VIDEOS/{k}.AVI": v for k, v in held["video_predictions"].items()}
    held["predictions"] = {
        f"VIDEOS/{k.rpartition('_')[0]}.AVI_{k.rpartition('_')[2]}": v for k, v in held["predictions"].items()
    }
    return held


GROUNDING: dict[str, tuple[str, Change]] = {
    "names": ("other names than in the ground truth", renamed),
    "late by 12": ("frames late", each_span(lambda s: [n + 12 for n in s])),
    "box frames": ("late", each_box(lambda b: b, 10)),
    "sides": ("width and height where", each_box(lambda b: [b[0], b[1], b[2] - b[0], b[3] - b[1]])),
    "shares": ("shares of the image", each_box(lambda b: [b[0] / 640, b[1] / 360, b[2] / 640, b[3] / 360])),
}  # fmt: skip

SOUND: dict[str, tuple[str, Change]] = {
    "names": ("other names than in the ground truth", lambda held: {f"maps/{k}.wav": v for k, v in held.items()}),
    "transposed": ("transposed", lambda held: {k: np.ascontiguousarray(v.T) for k, v in held.items()}),
    "upside down": ("upside down", lambda held: {k: np.ascontiguousarray(v[::-1]) for k, v in held.items()}),
    "inverted": ("inverted", lambda held: {k: -v for k, v in held.items()}),
}  # fmt: skip
PLANTED = {"relations": RELATIONS, "grounding": GROUNDING, "sound": SOUND}
CASES = [(task, name) for task, planted in PLANTED.items() for name in planted]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Source]:
    root = tmp_path_factory.mktemp("crowds")
    write_chaos(root)
    for path in (root / "relations" / "truth").iterdir():
        held = json.loads(path.read_text())
        for word in (each["category"] for each in held["subject/objects"]):
            TRUTH_WORDS.setdefault("category", []).append(word)
        for each in held["relation_instances"]:
            TRUTH_WORDS.setdefault("predicate", []).append(each["predicate"])
    for kind, words in TRUTH_WORDS.items():
        TRUTH_WORDS[kind] = sorted(set(words))
    return {
        "relations": Source("relations", root / "relations/truth", root / "relations/pred.json"),
        "grounding": Source("grounding", root / "grounding/test_proc.json", root / "grounding/pred.json"),
        "sound": Source("sound", root / "sound/vggss.json", root / "sound/maps.npz"),
    }


@pytest.fixture(scope="module")
def clean(sources: dict[str, Source]) -> dict[str, CorrectedScores]:
    found = {task: correct_file(source) for task, source in sources.items()}
    assert {task: each.findings for task, each in found.items()} == dict.fromkeys(sources, ())
    return found


# One of each task is fast, the others slow.
@pytest.mark.parametrize(
    ("task", "name"),
    [
        pytest.param(*case, marks=pytest.mark.slow if place not in (0, 12, 14) else ())
        for place, case in enumerate(CASES)
    ],
)
def test_a_planted_mistake_is_named_and_undone(
    sources: dict[str, Source], clean: dict[str, CorrectedScores], task: str, name: str, tmp_path: Path
) -> None:
    says, change = PLANTED[task][name]
    source, form = sources[task], FORMS[task]
    planted, output = tmp_path / source.predictions.name, tmp_path / f"mended-{source.predictions.name}"
    form.write(change(form.load(source.predictions)), planted)
    found = correct_file(Source(source.task, source.truth, planted), output)
    assert says in " ".join(each.says for each in found.findings)
    assert len(found.findings) == 1
    assert found.after == pytest.approx(clean[task].before, abs=2e-3)
    assert found.before is None or found.before < (clean[task].before or 0)
    again = correct_file(Source(source.task, source.truth, output))
    assert again.findings == ()
    assert again.before == found.after


def test_scores_that_are_costs_of_relations_are_turned_round() -> None:
    truth, _ = fitting_predictions.relation_sets()
    right = [("v0", ["person", "watching", "dog"]), ("v1", ["person", "pushing", "dog"])]
    wrong = [("v0", ["dog", "watching", "person"]), ("v1", ["dog", "hugging", "dog"])]
    results: dict[str, list[dict[str, Any]]] = {"v0": [], "v1": []}
    for n in range(40):
        for rows, score in ((right, 0.1), (wrong, 0.9)):
            video, triplet = rows[n % 2]
            results[video].append({"triplet": triplet, "score": score + n / 1000})
    look = FORMS["relations"].looks[-1]
    (found,) = look({"results": results}, truth, lambda _: 0.0)
    assert found.finding.code == "inverted"
    assert look(found.content, truth, lambda _: 0.0) == []
    scores = [each["score"] for each in found.content["results"]["v0"]]
    assert scores[0] > scores[1]


@pytest.mark.parametrize("text", ["[]", "3", '{"results": [1]}', "", "{"])
def test_files_that_are_no_predictions_are_refused(
    sources: dict[str, Source], tmp_path: Path, text: str
) -> None:
    (tmp_path / "pred.json").write_text(text)
    for task in ("relations", "grounding"):
        if task == "grounding" and text.startswith('{"'):
            continue
        with pytest.raises(InputError):
            correct_file(Source(sources[task].task, sources[task].truth, tmp_path / "pred.json"))


@pytest.mark.parametrize("shift", [0, 3, -12, 30])
def test_late_spans_are_found_to_the_frame_though_ends_are_off(shift: int) -> None:
    """Four hundred spans whose ends are off by four frames: the middles' mean has a standard error of .16."""
    rng = np.random.default_rng(abs(shift))
    begin = rng.integers(0, 100, 400)
    true = np.stack([begin, begin + rng.integers(20, 60, 400)], axis=1).astype(np.float64)
    mine = np.round(true + rng.normal(0, 4, true.shape)) + shift
    wrong = rng.random(400) < 0.1
    mine[wrong] = np.array([0.0, 10.0]) + rng.integers(0, 100, (int(wrong.sum()), 1))
    step, error, before, after = _find_shift(mine, true)
    assert step == -shift
    assert 0.1 < error < 0.25
    assert after >= before
