"""Many configurations at once give what each gives by itself, and no step runs more often than it must."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import replace

import numpy as np
import pytest
from planted import Thing, World, capture, corners_in

from roadaware.corner_cases.captures import CommonObjects, SemanticMap
from roadaware.corner_cases.config import CopgConfig
from roadaware.corner_cases.copg import propose
from roadaware.protocols.copg_ablation import BEFORE, CHEAP, KNOBS, Bench, Variant, build_step_key

THINGS = (
    Thing(10, 2.5, height=0.8),
    Thing(14, -3, width=2.0, height=1.4),
    Thing(20, 6, width=2.5, height=2.0),
    Thing(35, -8, width=4.0, height=2.5),
)
WORLD = World(THINGS, rings=24, columns=400, noise_m=0.02)
TURNED = {
    "theta_deg": (4.0, 16.0),
    "min_points": (1, 30),
    "max_distance_m": (15.0, 100.0),
    "max_background": (0.1, 0.9),
    "max_common_iou": (0.0, 0.9),
    "background": (("sky",),),
    "background_by": ("box", "returns"),
    "min_common_score": (0.5,),
    "min_range_m": (11.0,),
    "ground_m": (0.3,),
    "ground_range_m": (15.0,),
    "ground_tilt_deg": (5.0,),
    "ground_share": (0.99,),
    "ground_draws": (3,),
    "ground_returns": (50,),
    "columns": (300,),
    "rows": (16,),
    "reach_rows": (3,),
    "reach_columns": (1, 4),
    "repair_rows": (1,),
    "standing_m": (0.0,),
    "max_width_m": (1.5,),
    "max_height_m": (1.0,),
    "min_height_m": (1.0,),
    "min_visible": (40,),
    "near_m": (10.0,),
    "margin_px": (0.0, 9.0),
    "min_side_px": (40.0,),
    "seed": (1,),
    "local_ground_m": (0.2,),
    "reach_m": ((0.7,), (0.4, 1.5)),
    "duplicate_iou": (0.3,),
    "ranking": ("learnt", "returns"),
    "most": (2,),
    "completion": ("learnt", "none"),
}


def seen(ringed=True):
    """The planted world with half of one thing shown as background, and two others detected."""
    plain = capture(WORLD, ringed=ringed)
    places = [corners_in(plain.camera, WORLD, thing) for thing in THINGS]
    classes = np.full((480, 640), 13, np.uint8)
    classes[:200] = 10
    x1, y1, x2, y2 = places[1].astype(int)
    classes[y1:y2, x1 : (x1 + x2) // 2] = 8
    common = CommonObjects(np.stack([places[2] + 5, places[3]]), np.array([0.9, 0.2]))
    return replace(plain, semantics=SemanticMap(classes), common=common)


def variants():
    """Each parameter of both configurations turned by itself, and one with every step left out that can be."""
    found = []
    for base in (CopgConfig(), CopgConfig.angle(), CopgConfig.reference()):
        found += [
            Variant(base, semantics=s, detections=d) for s, d in itertools.product((True, False), repeat=2)
        ]
        for knob, values in TURNED.items():
            found += [Variant(replace(base, **{knob: value})) for value in values]
    return found


def alone(capture, variant):
    """What plain proposing gives."""
    given = replace(
        capture,
        semantics=capture.semantics if variant.semantics else None,
        common=capture.common if variant.detections else None,
    )
    return propose(given, variant.config)


def assert_same(one, other):
    for name in ("cluster", "edges", "visible", "behind"):
        np.testing.assert_array_equal(getattr(one.boxes, name), getattr(other.boxes, name), strict=True)
    for name in ("background", "overlap", "scores", "intermediate", "final"):
        mine, theirs = getattr(one, name), getattr(other, name)
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_array_equal(mine, theirs, strict=True)
    np.testing.assert_array_equal(one.geometry.limited, other.geometry.limited)
    np.testing.assert_array_equal(one.geometry.clusters.of_return, other.geometry.clusters.of_return)


def test_every_knob_belongs_to_a_step():
    known = [knob for knobs in KNOBS.values() for knob in knobs] + list(CHEAP)
    assert set(known) == {each.name for each in dataclasses.fields(CopgConfig)} == set(TURNED)
    assert [knob for knob in set(known) if known.count(knob) > 1] == ["near_m"]
    assert all(set(BEFORE[part]) <= set(BEFORE[step]) for step in KNOBS for part in BEFORE[step])


@pytest.mark.slow
@pytest.mark.parametrize("ringed", [True, False])
def test_each_variant_gives_bit_for_bit_what_it_gives_alone(ringed):
    picture = seen(ringed)
    asked = variants()
    found = Bench(asked).propose(picture)
    for variant, each in zip(asked, found, strict=True):
        assert_same(each, alone(picture, variant))
    assert len({each.scores.tobytes() for each in found}) > 25


def test_several_knobs_at_once():
    rng = np.random.default_rng(0)
    picture = seen()
    asked = []
    for _ in range(20):
        knobs = rng.choice(list(TURNED), 6, replace=False)
        turned = {knob: TURNED[knob][rng.integers(len(TURNED[knob]))] for knob in knobs}
        asked.append(Variant(replace(CopgConfig.angle(), **turned)))
    for variant, each in zip(asked, Bench(asked).propose(picture), strict=True):
        assert_same(each, alone(picture, variant))


def test_each_step_runs_once_for_what_it_depends_on():
    asked = variants()
    bench = Bench(asked)
    bench.propose(seen())
    for step in KNOBS:
        using = [
            each.config
            for each in asked
            if (step != "background" or each.semantics) and (step != "overlaps" or each.detections)
        ]
        assert bench.counts[step] == len({build_step_key(step, config) for config in using}), step


def test_thresholds_and_limits_cost_no_step():
    turned = [CopgConfig(**{knob: value}) for knob in CHEAP for value in TURNED[knob]]
    bench = Bench([Variant(each) for each in turned])
    bench.propose(seen())
    assert dict(bench.counts) == dict.fromkeys(KNOBS, 1)


def test_cameras_of_one_sweep_share_its_geometry():
    bench = Bench([Variant(CopgConfig.angle()), Variant(CopgConfig(theta_deg=4.0))])
    for sweep in ("a", "a", "b", None, None):
        bench.propose(seen(), sweep)
    assert (bench.counts["check"], bench.counts["clusters"], bench.counts["projection"]) == (4, 8, 10)
