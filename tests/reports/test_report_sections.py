"""The sections: what they print is what was found, undefined stays undefined, verdicts are said in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from lxml import html
from report_examples import PAYLOADS, audit, cells, result, risk_state, scenes, state

from roadaware.analysis.compare import compare
from roadaware.config import digest, to_dict
from roadaware.errors import UsageError
from roadaware.metrics.pedestrians import PedestrianConfig, SampleScores, evaluate_samples
from roadaware.protocols.iv2024 import Question, Reproduction
from roadaware.reports.audit import audit_section, build_data_section
from roadaware.reports.configs import build_config_table, digest_config, format_config, format_config_name
from roadaware.reports.evaluation import (
    build_comparison_section,
    build_evaluation_section,
    build_metric_table,
    group_order,
    group_pictures,
    group_table,
    plot_evaluation,
    plot_story,
    split_group,
)
from roadaware.reports.page import SCRIPT, Block, Facts, Mark, Note, Pictures, Section, Table, report
from roadaware.reports.reproduction import build_question_sections, build_reproduction_section
from roadaware.scenes.sampling import PROTOCOLS, Iv2024
from roadaware.scenes.tables import Scenes, build_sample_predictions


def _plain(table: Table) -> dict[str, tuple[str, ...]]:
    """The first cell of every row to the others, as text with what stands below."""
    rows = {}
    for row in table.rows:
        texts = [f"{c.text} {c.below}".strip() if isinstance(c, Mark) else c for c in row]
        rows[texts[0]] = tuple(texts[1:])
    return rows


def _blocks(section: Section, kind: type[Block]) -> list[Block]:
    return [block for block in section.blocks if isinstance(block, kind)]


def _words(section: Section) -> str:
    tree = html.document_fromstring(report([section]))
    return " ".join(" ".join(map(str, tree.itertext())).split())


def test_the_metric_table_prints_value_size_and_both_intervals() -> None:
    of = state()
    found = result(of, resamples=50)
    rows = _plain(build_metric_table(found))
    row = found.row("average_precision")
    assert rows["average precision"] == (
        f"{row['value']:.3f}",
        "84",
        f"{row['low_pedestrian']:.3f} to {row['high_pedestrian']:.3f}",
        f"{row['low_video']:.3f} to {row['high_video']:.3f} †",
    )
    assert build_metric_table(found).cautions.startswith("† over too few units")
    assert len([row for row in build_metric_table(found).rows if len(row) > 1]) == len(found.of_group(None))


def test_undefined_is_printed_with_its_reason_and_never_as_a_number() -> None:
    lone = SampleScores(np.array([0.2, 0.3]), np.array([0, 0]), np.array(["a", "b"]))
    found = result(lone)
    rows = _plain(build_metric_table(found))
    assert rows["average precision"][0].startswith("undefined ")
    assert found.row("average_precision")["reason"] in rows["average precision"][0]
    says = build_evaluation_section(found).says
    assert any("metrics are undefined" in sentence for sentence in says)


def test_columns_of_intervals_stand_only_where_they_were_computed() -> None:
    of = state()
    assert build_metric_table(result(of)).columns == ("metric", "value", "n")
    without_videos = SampleScores(of.scores, of.truth, of.pedestrian)
    assert build_metric_table(result(without_videos, resamples=20)).columns[3:] == (
        "interval over pedestrians",
    )


def test_the_summary_states_the_headline_values() -> None:
    found = result(state(), resamples=50)
    section = build_evaluation_section(found, model="boosting")
    value = found.value("average_precision")
    assert f"Boosting reaches average precision {value:.3f} (" in section.says[0]
    assert "95 % intervals over pedestrians" in section.says[0]


def test_scenarios_are_sorted_as_people_count() -> None:
    groups = [f"scale={name}" for name in ("100-150", "0-80", "300+", "80-100")] + ["road=two-way", "rain"]
    assert sorted(groups, key=group_order) == [
        "rain",
        "road=two-way",
        "scale=0-80",
        "scale=80-100",
        "scale=100-150",
        "scale=300+",
    ]
    assert len({group_order(f"scale={name}") for name in ("1.2.3.4", "²", "9" * 400, "-", "")}) == 5
    assert split_group("speed=0-5; road=one-way") == ("speed (km/h) and road", "0-5, one-way")


def test_groups_get_a_table_a_picture_and_a_sentence() -> None:
    of = state()
    labels = ["state=walking" if k % 2 else "state=standing" for k in range(len(of))]
    found = result(of, groups=labels)
    table = group_table(found)
    assert table is not None
    assert set(_plain(table)) == {"state", "walking", "standing"}
    assert _plain(table)["walking"][0] == "42"
    assert len(group_pictures(found)) == 1
    assert any("lowest where state is" in sentence for sentence in build_evaluation_section(found).says)
    assert group_table(result(of)) is None
    assert group_pictures(result(of)) == []


@pytest.mark.parametrize("task", ["action", "intention", "risk"])
def test_configurations_are_named(task: str) -> None:
    reference, default = PedestrianConfig.reference(task), PedestrianConfig.default(task)  # type: ignore[arg-type]
    assert format_config_name(to_dict(reference)) == "reference"
    assert format_config_name(to_dict(default)) == "default"
    own = replace(reference, tte_sigma=0.4)
    assert format_config_name(to_dict(own)) == "own"
    assert digest_config(to_dict(own)) == digest(own)
    assert format_config(to_dict(reference)) == f"PedestrianConfig, reference ({digest(reference)})"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_protocols_are_named(name: str) -> None:
    for variant in ("reference", "default"):
        protocol = getattr(PROTOCOLS[name], variant)()
        assert variant in format_config_name(to_dict(protocol))
        assert digest_config(to_dict(protocol)) == digest(protocol)


def test_a_config_table_shows_the_fields_that_differ_and_lists_the_others() -> None:
    table = build_config_table(to_dict(replace(Iv2024.reference("action"), overlap=0.5)), "Sampling")
    rows = _plain(table)
    assert rows["overlap"] == ("0.5", "0.3", "0.3")
    assert rows["crossing observed"] == ("keep", "keep", "drop")
    assert "task" not in rows
    assert "task action" in table.caption
    assert table.caption.startswith("Iv2024, own (")


def test_an_unknown_config_is_printed_whole() -> None:
    table = build_config_table({"type": "Theirs", "a": None, "b": True, "c": [1, 2]}, "Config")
    assert _plain(table) == {"type": ("Theirs",), "a": ("undefined",), "b": ("yes",), "c": ("1, 2",)}


def test_a_comparison_says_who_is_better_in_words() -> None:
    small, times = state(), np.repeat(["a", "b", "c"], len(state().truth))
    weak = SampleScores(
        *(np.tile(small.scores, (3, 1)), np.tile(small.truth, 3)),
        *(np.strings.add(np.tile(names, 3), times) for names in (small.pedestrian, small.video)),
        np.tile(small.tte_frames, 3),
    )
    strong = SampleScores(0.1 + 0.8 * weak.truth, weak.truth, weak.pedestrian, weak.video, weak.tte_frames)
    config = PedestrianConfig.default("action")
    section = build_comparison_section(compare(strong, weak, config, resamples=100, names=("strong", "weak")))
    assert section.says[0].startswith("Strong is better than weak in balanced accuracy (1.000 against")
    same = build_comparison_section(compare(weak, weak, config, resamples=50, names=("one", "two")))
    assert same.says == (same.says[0],)
    assert "One and two: not different in" in same.says[0]
    assert any(isinstance(block, Pictures) for block in same.blocks)


def test_pictures_fit_the_task() -> None:
    of = state()
    drawn = plot_evaluation(of, result(of), labels=["not", "crossing"])
    titles = ["Precision over recall", "Reliability", "Score against time to event"]
    assert [picture.title for picture in drawn] == titles
    risk = risk_state()
    found = evaluate_samples(risk, PedestrianConfig.default("risk"))
    pictures = plot_evaluation(risk, found)
    assert [picture.title for picture in pictures] == [
        "Average precision over the image plane",
        "Reliability",
    ]
    assert "–" in pictures[0].svg()
    three = SampleScores(np.eye(3)[[0, 1, 2, 2]], np.array([0, 1, 2, 2]), np.array(["a", "b", "c", "d"]))
    intention = evaluate_samples(three, PedestrianConfig.default("intention"))
    named = plot_evaluation(three, intention, labels=["no", "unsure", "yes"])
    assert "no 1.000; unsure 1.000; yes 1.000" in named[0].caption
    empty = of.take(np.zeros(0, dtype=int))
    assert plot_evaluation(empty, result(of)) == []


def test_without_times_or_positives_the_rest_is_drawn() -> None:
    lone = SampleScores(np.array([0.2, 0.3]), np.array([0, 0]), np.array(["a", "b"]))
    assert [picture.title for picture in plot_evaluation(lone, result(lone))] == ["Reliability"]


def test_the_story_is_of_the_pedestrian_whose_score_swings_most() -> None:
    of = state()
    scores = np.full(len(of), 0.5)
    who = of.pedestrian == "v1/0_3b"
    scores[who] = np.linspace(0.1, 0.9, 7)
    swinging = SampleScores(scores, of.truth, of.pedestrian, of.video, of.tte_frames)
    picture = plot_story(scenes(of), swinging)
    assert picture.title == "One pedestrian over time: v1/0_3b"
    assert "Scores of crossing in order: 0.10, 0.23, 0.37, 0.50, 0.63, 0.77, 0.90." in picture.caption
    assert "Truth: crossing. The event (annotated) is at frame 100." in picture.caption
    other = plot_story(scenes(of, event=None), swinging, pedestrian="v0/0_1b")
    assert "There is no event." in other.caption


def test_a_story_needs_its_pedestrian_and_its_samples() -> None:
    of = state()
    with pytest.raises(UsageError, match="no pedestrian 'nobody'"):
        plot_story(scenes(of), of, pedestrian="nobody")
    with pytest.raises(UsageError, match="84 samples for 83 scores"):
        plot_story(scenes(of), of.take(np.arange(83)))


def test_data_are_counted_and_what_was_not_taken_is_listed() -> None:
    held = scenes(state())
    lost = pl.DataFrame(
        {
            "table": ["boxes", "boxes", "files"],
            "file": ["b.xml", "a.xml", "c.xml"],
            "line": pl.Series([1, 2, None], dtype=pl.Int64),
            "item": ["1", "2", None],
            "reason": ["no frame", "no frame", "empty"],
        }
    )
    section = build_data_section(held.with_tables(rejected=lost), about={"source": "jaad.zip"})
    assert section.says == (
        "JAAD holds 6 videos, 12 tracks, 1,440 boxes. 3 items were not taken, and a table says why.",
    )
    tables = {block.title: block for block in _blocks(section, Table)}
    assert _plain(tables["Not taken"])["boxes"] == ("no frame", "2", "a.xml")
    assert tables["Samples"].rows == (("test", "not-crossing", "56", "8"), ("test", "crossing", "28", "4"))
    assert _plain(tables["Splits"]) == {"default/test": ("6", "12")}
    assert "Nothing was rejected" in build_data_section(held).says[0]
    assert build_data_section(Scenes()).says[0].startswith("The set holds 0 videos")


def test_an_audit_prints_findings_reasons_numbers_and_places() -> None:
    section = audit_section(audit("here"))
    text = _words(section)
    assert section.says == ("399 of 769 samples have no event here", "Less serious: 1 notes.")
    for piece in ("why it matters it matters here", "52 %", "what to do do here", "AUC 0.939", "missing –"):
        assert piece in text
    tables = {block.title: block for block in _blocks(section, Table)}
    assert tables["Examples"].rows == (("here", "here", "7", "here"), ("–", "–", "–", "–"))
    assert tables[""].align == "lr"
    assert "duplicate names" in text
    assert "no tags here" in text


def test_a_clean_audit_says_so() -> None:
    clean = replace(audit(), findings=(), dataset="JAAD")
    assert audit_section(clean).says == ("1 checks found nothing wrong with JAAD.",)


def test_every_cell_stands_beside_what_was_printed() -> None:
    section = build_reproduction_section(Reproduction(cells("a reason"), {}))
    tables = {block.title: block for block in _blocks(section, Table)}
    table = tables["Table III, JAAD"]
    assert table.columns == ("metric", "PedFormer", "a reason", "a reason (ours)")
    rows = _plain(table)
    assert rows["precision"] == ("0.583 ✓ printed 0.58", "– printed 0.58", "0.505")
    assert rows["AUC"][0] == "0.579 ≈ printed 0.58 · 0.570 to 0.590"
    assert rows["hard F1"][0] == "0.320 ⇄ printed 0.58"
    assert rows["F1"] == ("0.700 ≠ printed 0.58", "", "–")
    assert _plain(tables["What the marks mean"])["✓ match"][0] == "1"
    whys = [row[2] for row in tables["Reasons"].rows]
    assert whys == [cell.why for cell in cells("a reason") if cell.why]
    assert section.says[0] == (
        "Of 5 printed cells, 4 can be computed; 2 of them agree with print; "
        "1 of those under a declared assumption; 1 are swapped in print; 1 differ."
    )


def test_released_scores_get_a_section_with_assumption_and_pictures() -> None:
    of = state()
    held = scenes(of)
    config = PedestrianConfig.reference("action")
    metrics = evaluate_samples(of, config)
    predictions = build_sample_predictions(held.samples, of.scores)
    question = Question("jaad-action@iv2024", held, predictions, metrics, {}, "one track is longer")
    found = Reproduction(cells(), {question.name: question})
    (section,) = build_question_sections(found)
    assert section.title == "PedFormer, jaad-action@iv2024"
    (pictures,) = _blocks(section, Pictures)
    assert isinstance(pictures, Pictures)
    assert len(pictures.items) == 4
    notes = _blocks(build_reproduction_section(found), Note)
    assert [note.text for note in notes if isinstance(note, Note)] == [
        "jaad-action@iv2024 rests on an assumption: one track is longer."
    ]
    facts = [block for block in build_reproduction_section(found).blocks if isinstance(block, Facts)]
    assert "PedestrianConfig, reference" in facts[-1].items[0][1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["attribute", "terminal"])
def test_hostile_names_stay_text_in_every_section(name: str) -> None:
    text = PAYLOADS[name]
    of = state(6, prefix=text)
    found = result(of, groups=[f"scale={text}"] * len(of))
    noted = replace(found, notes=(text,))
    pictures = plot_evaluation(of, found, labels=[text, text], name=text)
    sections = [
        build_data_section(scenes(of, dataset=text), about={text: text}),
        build_evaluation_section(
            noted,
            title=text,
            model=text,
            about={text: text},
            labels=[text, text],
            pictures=[*pictures, plot_story(scenes(of), of)],
        ),
        build_comparison_section(
            compare(of, of, PedestrianConfig.default("action"), resamples=5, names=(text, text))
        ),
        audit_section(audit(text)),
        build_reproduction_section(Reproduction(cells(text), {})),
    ]
    tree = html.document_fromstring(report(sections, title=text))
    assert tree.xpath("//script/text()") in ([], [SCRIPT])
    assert not tree.xpath("//img | //iframe | //object | //embed | //form | //link | //base")
    assert not [a for element in tree.iter() for a in element.attrib if a.startswith("on")]
    assert "\x1b" not in tree.text_content()


def test_a_full_report_is_small() -> None:
    of = state(60)
    held = scenes(of)
    found = result(of)
    pictures = [*plot_evaluation(of, found), plot_story(held, of)]
    sections = [
        build_data_section(held),
        build_evaluation_section(found, pictures=pictures),
        audit_section(audit()),
    ]
    assert len(report(sections).encode()) < 600_000
