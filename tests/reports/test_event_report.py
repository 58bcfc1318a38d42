"""Pages of road events: what they state is in the data, undefined is never a number, names stay text."""

from __future__ import annotations

from types import SimpleNamespace

import polars as pl
import pytest
from event_examples import beside, counts, faults, panel, strip, summary
from lxml import html
from report_examples import PAYLOADS

from roadaware.config import to_dict
from roadaware.linking.config import LinkerConfig
from roadaware.metrics.detection.config import DetectionConfig
from roadaware.metrics.tracking import SCALES
from roadaware.reports.audit import build_stats_section
from roadaware.reports.configs import format_config_name
from roadaware.reports.event_tables import (
    build_calibration_block,
    build_class_ap_table,
    build_printed_table,
    build_tracking_table,
)
from roadaware.reports.event_text import format_tracking
from roadaware.reports.events import build_error_blocks, build_event_comparison_section, build_event_section
from roadaware.reports.page import SCRIPT, Mark, Section, report

CONFIG = to_dict(DetectionConfig.reference())


def section(name: str = "agent") -> Section:
    return build_event_section(
        summary(name),
        title=name,
        model=name,
        config=CONFIG,
        about={name: name},
        linker=to_dict(LinkerConfig.reference("ucf24")),
        panels={name: [panel(name)]},
        strips=[strip(name)],
        more=build_error_blocks(faults(name)),
        notes=[name],
    )


def comparison(name: str = "mine") -> SimpleNamespace:
    schema = {"metric": pl.String, "level": pl.String, "overlap": pl.String, "threshold": pl.String}
    schema |= {"kind": pl.String, "label": pl.String, "a": pl.Float64, "b": pl.Float64}
    schema |= {
        "difference": pl.Float64,
        "low_video": pl.Float64,
        "high_video": pl.Float64,
        "verdict": pl.String,
    }
    rows = [
        ("frame_map@0.5:agent", "frame", None, "0.5", "agent", None, 0.5, 0.4, 0.1, 0.02, 0.2, "better"),
        (
            "frame_map@0.75:agent",
            "frame",
            None,
            "0.75",
            "agent",
            None,
            0.2,
            0.3,
            -0.1,
            None,
            None,
            "no interval",
        ),
        (
            "frame_ap@0.5:agent:Ped",
            "frame",
            None,
            "0.5",
            "agent",
            "Ped",
            0.3,
            0.4,
            -0.1,
            -0.2,
            -0.05,
            "worse",
        ),
        (
            "frame_ap@0.5:agent:Car",
            "frame",
            None,
            "0.5",
            "agent",
            "Car",
            None,
            0.4,
            None,
            None,
            None,
            "undefined",
        ),
    ]
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return SimpleNamespace(table=table, names=(name, "theirs"), resamples=50, seed=0, config=CONFIG)


def texts(page: str) -> str:
    return " ".join(html.document_fromstring(page).text_content().split())


def test_the_section_states_means_with_intervals_and_configuration() -> None:
    said = texts(report([section()]))
    assert "mean average precision of boxes at 0.5: agent 25.0 % (20.0 to 30.0)" in said
    assert "mean average precision of the vehicle's action: 50.0 %" in said
    assert "DetectionConfig, reference" in said
    assert "LinkerConfig, reference" in said
    assert "Groups: tubes at 0.2" in said


def test_classes_without_truth_are_named_and_have_no_number() -> None:
    from roadaware.analysis.event_results import select_classes

    table = build_class_ap_table(select_classes(summary(), "agent"), "agent")
    assert [row[0] for row in table.rows] == ["agent"]
    assert table.caption.endswith("Without truth: b.")
    assert table.rows[0][1:3] == ("40", "40")
    assert table.rows[0][3] == Mark("25.00", "", "20.0 to 30.0")


@pytest.mark.parametrize("dataset", ["road", "ucf24"])
def test_linker_configurations_are_named(dataset: str) -> None:
    for config in (LinkerConfig.reference(dataset), LinkerConfig.default(dataset)):
        assert format_config_name(to_dict(config)) in ("reference", "default")
    assert format_config_name(to_dict(LinkerConfig(min_iou=0.33))) == "own"
    assert format_config_name(to_dict(DetectionConfig.default())) == "default"


def test_a_comparison_names_what_differs() -> None:
    said = texts(report([build_event_comparison_section(comparison())]))
    assert "Mine is better: frame_map@0.5:agent." in said
    assert "Classes in which they differ" in said
    assert "frame_ap@0.5:agent:Ped" in said
    assert "frame_ap@0.5:agent:Car" not in said
    assert "intervals over videos" in said


def test_counts_stand_beside_print_and_differences_are_listed() -> None:
    said = texts(report([build_stats_section(counts("agent"), beside(counts("agent")))]))
    assert "4 of 6 counts that the paper prints are as printed" in said
    assert "Not as printed" in said
    assert "1,200/120" in said
    assert "Classes that do not occur: agent b." in said
    assert "Not as printed" not in texts(report([build_stats_section(counts("agent"))]))


def test_printed_numbers_show_the_best_and_the_range() -> None:
    names = ["level", "threshold", "kind", "label", "obtained", "printed", "model", "table"]
    rows = [
        ("frame", "0.5", "agent", None, 40.0, 39.2, "I3D", "5"),
        ("frame", "0.5", "agent", None, 40.0, 57.9, "YOLOv5", "5"),
        ("frame", "0.5", "agent", None, 40.0, None, "unreadable", "5"),
    ]
    table = build_printed_table(pl.DataFrame(rows, schema=names, orient="row"))
    assert table.rows == (("agent", "boxes at 0.5", "40.0", "57.9", "YOLOv5 (Table 5)", "39.2 to 57.9", "2"),)


def test_calibration_without_predictions_is_undefined() -> None:
    names = ["group", "kind", "label", "predictions", "mean_score", "precision", "ece", "valid"]
    rows = [
        (None, "agent", None, 10, 0.5, 0.25, 0.25, True),
        (None, "event", None, 0, None, None, None, False),
    ]
    table = build_calibration_block("boxes", pl.DataFrame(rows, schema=names, orient="row"))
    assert table.rows[0] == ("agent", "10", "0.500", "0.250", "0.250")
    assert table.rows[1][-1] == Mark("undefined", "mute", "no predictions")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attribute", "terminal"])
def test_hostile_names_stay_text(name: str) -> None:
    text = PAYLOADS[name]
    sections = [section(text), build_event_comparison_section(comparison(text))]
    sections.append(build_stats_section(counts(text), beside(counts(text)), title=text))
    tree = html.document_fromstring(report(sections, title=text))
    assert tree.xpath("//script/text()") in ([], [SCRIPT])
    assert not tree.xpath("//img | //iframe | //object | //embed | //form | //link | //base")
    assert not [a for element in tree.iter() for a in element.attrib if a.startswith("on")]
    assert "\x1b" not in tree.text_content()


def test_tracking_metrics_are_per_cent_or_numbers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "delay_s", "positive")
    ends = {"low": None, "high": None}
    found = {"mota": 0.25, "switches": 3.0, "delay_s": 1.5}
    rows = {name: {"value": value, **ends} for name, value in found.items()}
    held = {str(row[0]): row[1] for row in build_tracking_table(rows).rows}
    assert list(held.values()) == ["25.00", "3", "1.50"]
    text = format_tracking(rows, "", intervals=False)
    assert [line.split()[-1] for line in text.splitlines()[2:]] == ["25.00", "3", "1.50"]
