"""A grid of parameters: each turned by itself, nothing proposed twice, idle parameters left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from roadaware.corner_cases.config import CopgConfig
from roadaware.errors import UsageError
from roadaware.protocols.copg_ablation import GRID, INPUTS, build_cells, collect_variants


def test_the_usual_grid_turns_one_knob_at_a_time() -> None:
    rows, left_out = build_cells(["angle", "reference"])
    assert (len(rows), left_out) == (2 * (4 + 4 + 3 + 3 + 5 + 3), [])
    for row in rows:
        base = CopgConfig.reference() if row.base == "reference" else CopgConfig.angle()
        if row.knob != INPUTS:
            assert row.variant.config == replace(base, **{row.knob: row.value})
        assert row.unchanged == (
            row.variant.config == base and row.variant.semantics and row.variant.detections
        )
    variants, places = collect_variants(rows)
    assert len(variants) == len(set(variants)) == 2 * (3 + 1 + 3 + 2 + 2 + 4 + 2)
    assert all(variants[place] == row.variant for row, place in zip(rows, places, strict=True))


def test_knobs_of_steps_without_input_are_left_out() -> None:
    rows, left_out = build_cells(["angle"], semantics=False, detections=False)
    assert {row.knob for row in rows} == {INPUTS, "theta_deg", "min_points", "max_distance_m"}
    assert [row.value for row in rows if row.knob == INPUTS] == ["geometry alone"]
    assert left_out == [
        "max_background: no semantic maps are given",
        "max_common_iou: no detections are given",
    ]
    assert sum(row.unchanged for row in rows) == 4
    assert len(collect_variants(rows)[0]) == 1 + 3 + 2 + 2


def test_a_configurations_own_value_is_always_there() -> None:
    rows, _ = build_cells(["default"], {"theta_deg": (12, 4), "background_by": ("box",), "margin_px": (2.0,)})
    values = {
        knob: [row.value for row in rows if row.knob == knob] for knob in ("theta_deg", "background_by")
    }
    assert values == {"theta_deg": [4, 8.0, 12], "background_by": ["box", "returns"]}
    assert [row.value for row in rows if row.knob == "margin_px"] == [2.0, None]
    assert set(GRID) & {row.knob for row in rows} == {"theta_deg"}


@pytest.mark.parametrize(
    ("bases", "grid", "told"),
    [
        (["best"], GRID, "configurations are default, angle, reference; not best"),
        ([], GRID, "not none"),
        (["default"], {"theta": (4,)}, "there is no parameter 'theta'; there are background"),
        (["default"], {"theta_deg": (0,)}, "theta_deg should lie in"),
    ],
)
def test_wrong_grids_are_refused(bases: list[str], grid: dict[str, tuple[float, ...]], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        build_cells(bases, grid)
