"""Enforcement: every requirement holds afterwards, by the least change, and nothing else moves."""

from __future__ import annotations

import importlib.util
import itertools
import os
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import VOCABULARIES, generate_road_scenes
from roadaware.errors import InputError, UsageError
from roadaware.linking import enforcement
from roadaware.linking.config import LinkerConfig
from roadaware.linking.enforcement import (
    EnforcementConfig,
    Enforcer,
    enforce_requirements,
    extend_directionally,
    measure_distance,
)
from roadaware.linking.enforcement_kernels import UNPROVEN, place_scores
from roadaware.linking.link import link
from roadaware.linking.postprocessing import list_steps
from roadaware.metrics.requirements import RequirementConfig, evaluate_requirements
from roadaware.scenes.composites import product_of_marginals
from roadaware.scenes.requirements import (
    Requirements,
    bind_requirements,
    parse_requirements,
    read_requirements,
)

LABELS = ("Ped", "Car", "Cyc", "Xing", "Mov", "Stop", "Jun", "Pav")
HAS_PYSAT = importlib.util.find_spec("pysat") is not None
RULES = "not Ped not Car\nnot Car not Cyc\nPushObj not Ped Mov Stop\nPed Car Cyc\nnot PushObj Ped\nnot Mov not Stop\n"


def seeded(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311


def random_rules(rng: random.Random, n_labels: int = 6, n_clauses: int = 9) -> Requirements:
    """Clauses that can hold together: each of them is satisfied by one hidden assignment."""
    hidden = [rng.random() < 0.5 for _ in range(n_labels)]
    found: dict[frozenset[int], tuple[int, ...]] = {}
    while len(found) < n_clauses:
        labels = rng.sample(range(1, n_labels + 1), rng.randint(1, 4))
        clause = tuple(k if rng.random() < 0.5 else -k for k in labels)
        if any(hidden[abs(k) - 1] == (k > 0) for k in clause):
            found.setdefault(frozenset(clause), clause)
    return Requirements(LABELS[:n_labels], tuple(found.values()))


def brute_force_distances(rules: Requirements, scores: np.ndarray, threshold: float) -> list[float]:
    """For each row the least sum of |score - threshold| over labels that change sides, over all assignments."""
    limit = float(np.float32(threshold))
    found = []
    for row in scores.astype(np.float64).tolist():
        best = np.inf
        for there in itertools.product((False, True), repeat=len(row)):
            if all(any(there[abs(k) - 1] == (k > 0) for k in clause) for clause in rules.clauses):
                cost = sum(abs(s - limit) for s, t in zip(row, there, strict=True) if (s >= limit) != t)
                best = min(best, cost)
        found.append(best)
    return found


def is_satisfied(rules: Requirements, there: np.ndarray) -> bool:
    return all(
        any(row[abs(k) - 1] == (k > 0) for k in clause) for row in there.tolist() for clause in rules.clauses
    )


class TestLabels:
    @pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
    def test_nearest_is_the_nearest_of_all(self, threshold: float) -> None:
        rng, generator = seeded(1), np.random.default_rng(1)
        repaired = 0
        for _ in range(25):
            rules = random_rules(rng)
            bound = bind_requirements(rules, VOCABULARIES)
            scores = generator.random((12, 6)).astype(np.float32)
            labels, states = Enforcer(bound, EnforcementConfig(threshold)).find_labels(scores)
            expected = brute_force_distances(rules, scores, threshold)
            assert is_satisfied(rules, labels)
            assert measure_distance(scores, threshold, labels) == pytest.approx(expected, abs=1e-9)
            assert ((states > 0) == (labels != (scores >= np.float32(threshold))).any(axis=1)).all()
            repaired += int((states > 0).sum())
        assert repaired > 100

    def test_propagation_satisfies_and_is_never_nearer(self) -> None:
        rng, generator = seeded(2), np.random.default_rng(2)
        farther = 0
        for _ in range(25):
            rules = random_rules(rng)
            bound = bind_requirements(rules, VOCABULARIES)
            scores = generator.random((12, 6)).astype(np.float32)
            labels, _ = Enforcer(bound, EnforcementConfig(method="propagation")).find_labels(scores)
            assert is_satisfied(rules, labels)
            expected = brute_force_distances(rules, scores, 0.5)
            distances = measure_distance(scores, 0.5, labels)
            assert (distances >= np.array(expected) - 1e-9).all()
            farther += int((distances > np.array(expected) + 1e-6).sum())
        assert farther > 0

    @pytest.mark.skipif(not HAS_PYSAT, reason="python-sat is not installed")
    @pytest.mark.parametrize("threshold", [0.3, 0.5])
    def test_maxsat_finds_the_same(self, threshold: float) -> None:
        rng, generator = seeded(4), np.random.default_rng(4)
        for _ in range(8):
            bound = bind_requirements(random_rules(rng, 8, 14), VOCABULARIES)
            scores = generator.random((6, 8)).astype(np.float32)
            distances = [
                measure_distance(scores, threshold, Enforcer(bound, config).find_labels(scores)[0])
                for config in (EnforcementConfig(threshold), EnforcementConfig(threshold, "maxsat"))
            ]
            assert distances[0] == pytest.approx(distances[1], abs=1e-5)

    @pytest.mark.skipif(HAS_PYSAT, reason="python-sat is installed")
    def test_without_python_sat_it_says_how_to_get_it(self) -> None:
        bound = bind_requirements(parse_requirements("Ped"), VOCABULARIES)
        with pytest.raises(UsageError, match=r"roadaware\[logic\]"):
            Enforcer(bound, EnforcementConfig(method="maxsat")).find_labels(np.zeros((1, 41), np.float32))

    def test_labels_that_nobody_can_have_stay_absent(self) -> None:
        rules = parse_requirements("EmVeh Car Bus\nnot Car not Cyc\n")
        bound = bind_requirements(rules, {"agent": ("Car", "Cyc")})
        for method in ("nearest", "propagation"):
            labels, _ = Enforcer(bound, EnforcementConfig(method=method)).find_labels(
                np.zeros((1, 41), np.float32)
            )
            assert labels[0].nonzero()[0].tolist() == [rules.labels.index("Car")]

    def test_requirements_that_nothing_satisfies_here_are_refused(self) -> None:
        bound = bind_requirements(parse_requirements("EmVeh Bus\n"), {"agent": ("Car", "Cyc")})
        with pytest.raises(InputError, match="it lacks Bus, EmVeh"):
            Enforcer(bound, EnforcementConfig())
        clash = Requirements(("Ped", "Car"), ((1,), (2,), (-1, -2)))
        with pytest.raises(InputError, match="contradict"):
            Enforcer(bind_requirements(clash, VOCABULARIES), EnforcementConfig())

    def test_directional_extension_decides_without_going_back(self) -> None:
        rng = seeded(9)
        for _ in range(50):
            rules = random_rules(rng, 6, 10)
            literals, ends, order, begins = extend_directionally(rules.clauses, 6)
            clauses = [literals[a:b].tolist() for a, b in itertools.pairwise(ends)]
            assert sorted(order.tolist()) == list(range(6))
            for start in itertools.product((False, True), repeat=6):
                there = list(start)
                for place, label in enumerate(order.tolist()):
                    held = clauses[begins[place] : begins[place + 1]]
                    if not all(any(there[abs(k) - 1] == (k > 0) for k in clause) for clause in held):
                        there[label] = not there[label]
                    assert all(any(there[abs(k) - 1] == (k > 0) for k in clause) for clause in held)
                assert is_satisfied(rules, np.array([there]))

    def test_too_entangled_ones_are_refused(self, monkeypatch) -> None:
        rules = random_rules(seeded(0), 8, 20)
        extend_directionally(rules.clauses, 8)
        monkeypatch.setattr(enforcement, "_MOST_DIRECTED", 15)
        with pytest.raises(InputError, match="too entangled"):
            extend_directionally(rules.clauses, 8)

    def test_config_refuses_nonsense(self) -> None:
        for wrong in (
            {"threshold": 0},
            {"threshold": 1.5},
            {"method": "fast"},
            {"boxes": "some"},
            {"margin": 1},
        ):
            with pytest.raises(UsageError):
                EnforcementConfig(**wrong)


class TestScores:
    @pytest.mark.parametrize("threshold", [0.1, 0.5, 1.0])
    def test_scores_reach_the_threshold_exactly_where_labels_are(self, threshold: float) -> None:
        rng, generator = seeded(3), np.random.default_rng(3)
        for _ in range(10):
            bound = bind_requirements(random_rules(rng), VOCABULARIES)
            scores = generator.random((40, 6)).astype(np.float32)
            scores[generator.random(scores.shape) < 0.2] = 0
            scores[generator.random(scores.shape) < 0.2] = 1
            scores[generator.random(scores.shape) < 0.2] = threshold
            enforcer = Enforcer(bound, EnforcementConfig(threshold, margin=0.01))
            labels, _ = enforcer.find_labels(scores)
            found = place_scores(scores, labels, threshold, 0.01)
            limit = np.float32(threshold)
            assert ((found >= limit) == labels).all()
            moved = found != scores
            assert ((scores >= limit) != labels)[moved].all()
            assert (np.abs(found[moved] - limit) <= 0.01 + 1e-6).all()
            assert (found >= 0).all()
            assert (found <= 1).all()
            for side in (labels, ~labels):
                before, after = scores[moved & side], found[moved & side]
                order = np.argsort(before, kind="stable")
                assert (np.diff(after[order]) >= 0).all()


@pytest.fixture(scope="module")
def drive():
    scenes = generate_road_scenes(videos=3, frames=30, boxes_per_frame=5, seed=2)
    return scenes, simulate_detections(scenes, seed=3)


class TestPredictions:
    @pytest.mark.parametrize("method", ["nearest", "propagation"])
    @pytest.mark.parametrize("boxes", ["predicted", "all"])
    def test_no_box_violates_afterwards_and_all_else_stays(self, drive, method, boxes) -> None:
        scenes, predictions = drive
        rules = parse_requirements(RULES)
        judged = RequirementConfig((0.5,), boxes)
        before = evaluate_requirements(rules, predictions, None, scenes, judged)
        found, counts = enforce_requirements(
            predictions, rules, EnforcementConfig(method=method, boxes=boxes)
        )
        after = evaluate_requirements(rules, found, None, scenes, judged)
        assert before.value(0.5) > 0
        assert after.value(0.5) == 0
        assert counts.violating > 0
        assert counts.boxes == len(predictions.boxes)
        old, new = (np.array(each.boxes["scores"].to_list()) for each in (predictions, found))
        assert ((old != new).sum()) == counts.raised + counts.lowered
        others = found.boxes.drop("scores")
        assert others.equals(predictions.boxes.drop("scores"))
        assert list_steps(found)[-1]["step"] == "enforced"

    def test_nearest_changes_less_than_propagation(self, drive) -> None:
        rules = parse_requirements(RULES)
        nearest, other = (
            enforce_requirements(drive[1], rules, EnforcementConfig(method=method))[1].distance
            for method in ("nearest", "propagation")
        )
        assert nearest <= other + 1e-9

    def test_what_satisfies_is_not_touched(self, drive) -> None:
        rules = parse_requirements(RULES)
        once, _ = enforce_requirements(drive[1], rules)
        twice, counts = enforce_requirements(once, rules)
        assert counts.violating == counts.raised == counts.lowered == 0
        assert twice.boxes.equals(once.boxes)

    def test_products_of_marginals_are_made_anew(self, drive) -> None:
        products = product_of_marginals(drive[1])
        found, _ = enforce_requirements(products, parse_requirements(RULES))
        assert found.boxes.equals(product_of_marginals(found).boxes)
        assert not found.boxes.equals(products.boxes)

    def test_tubes_and_boxes_without_scores_are_refused(self, drive) -> None:
        rules = parse_requirements(RULES)
        with pytest.raises(InputError, match="found tubes"):
            enforce_requirements(link(drive[1], LinkerConfig.default("road")), rules)
        bare = drive[1].with_tables(boxes=drive[1].boxes.drop("scores"))
        with pytest.raises(InputError, match="scores of labels"):
            enforce_requirements(bare, rules)

    def test_a_set_without_boxes_stays_empty(self, drive) -> None:
        empty = drive[1].with_tables(boxes=drive[1].boxes.clear(), labels=drive[1].labels.clear())
        found, counts = enforce_requirements(empty, parse_requirements(RULES))
        assert found.boxes.is_empty()
        assert counts.boxes == counts.violating == 0


@pytest.mark.skipif("ROADAWARE_DATA_DIR" not in os.environ, reason="ROADAWARE_DATA_DIR is not set")
class TestRoadR:
    @pytest.fixture
    def bound(self):
        path = Path(os.environ["ROADAWARE_DATA_DIR"]) / "road_r" / "requirements_dimacs.txt"
        if not path.is_file():
            pytest.skip("no copy of ROAD-R's requirements below ROADAWARE_DATA_DIR")
        return bind_requirements(read_requirements(path), VOCABULARIES)

    @pytest.mark.parametrize("method", ["nearest", "propagation"])
    def test_all_243_hold_whatever_the_scores(self, bound, method) -> None:
        generator = np.random.default_rng(0)
        for scores in (
            generator.random((100, 41)),
            generator.beta(0.2, 2, (300, 41)),
            np.eye(41),
            np.ones((1, 41)),
        ):
            labels, states = Enforcer(bound, EnforcementConfig(method=method)).find_labels(
                scores.astype(np.float32)
            )
            assert not bound.violations(labels).any()
            assert not (states == UNPROVEN).any()

    @pytest.mark.skipif(not HAS_PYSAT, reason="python-sat is not installed")
    def test_nearest_is_that_of_maxsat(self, bound) -> None:
        scores = np.random.default_rng(1).beta(0.2, 1.5, (40, 41)).astype(np.float32)
        config = EnforcementConfig()
        found = [
            measure_distance(scores, 0.5, Enforcer(bound, each).find_labels(scores)[0])
            for each in (config, replace(config, method="maxsat"))
        ]
        assert found[0] == pytest.approx(found[1], abs=1e-4)
