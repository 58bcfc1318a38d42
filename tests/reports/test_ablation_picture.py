"""The image of turned parameters: one small image for each parameter and metric, said in words, too."""

from __future__ import annotations

import polars as pl

from roadaware.analysis.corner_tables import COLUMNS
from roadaware.reports.copg import plot_ablation


def rows(judged=True):
    found = []
    for config in ("default", "reference"):
        for knob, value, ar in (("theta_deg", "4", 0.1), ("theta_deg", "8", 0.2), ("margin_px", "null", 0.2)):
            row = dict.fromkeys(COLUMNS) | {"config": config, "knob": knob, "value": value}
            row |= {"unchanged": value != "4", "proposals": 30, "pictures": 6}
            if judged:
                row |= {"ar": ar, "ar_low": ar - 0.05, "ar_high": ar + 0.05, "ap": ar / 2}
            if knob == "theta_deg":
                row |= {"printed_ap": 0.02, "printed_ar": 0.05}
            found.append(row)
    return pl.DataFrame(found, schema=COLUMNS)


def test_a_panel_for_each_knob_and_metric():
    picture = plot_ablation(rows())
    panels = picture.figure.axes
    assert len(panels) == 2 * 3
    assert [panels[0].get_ylabel(), panels[2].get_ylabel(), panels[4].get_ylabel()] == [
        "AP",
        "AR",
        "proposals",
    ]
    assert [text.get_text() for text in panels[2].get_xticklabels()] == ["4", "8"]
    lines = {line.get_label(): line for line in panels[2].get_lines() if not line.get_label().startswith("_")}
    assert list(lines["default"].get_ydata()) == [0.1, 0.2]
    assert list(lines["printed, CODA-ONCE"].get_ydata()) == [0.05, 0.05]
    assert "theta_deg: AR is greatest, 0.200, at 8" in picture.caption


def test_without_truth_proposals_are_drawn_alone():
    picture = plot_ablation(rows(judged=False))
    assert [panel.get_ylabel() for panel in picture.figure.axes] == ["proposals", ""]
    assert "AR" not in picture.caption


def test_steps_alone_are_drawn_where_there_is_no_knob():
    found = rows().filter(pl.col("knob") == "margin_px").with_columns(knob=pl.lit("inputs"))
    assert len(plot_ablation(found).figure.axes) == 3
