"""The audit finds each planted defect, counts it right, and says nothing of sound data."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from defective import VIDEOS, Person, dataset, sound

from roadaware.analysis.audit import Audit, Example, Finding, audit, render
from roadaware.datasets import read
from roadaware.demo_data import write_demo
from roadaware.errors import InputError, UsageError
from roadaware.scenes.sampling import Iv2024
from roadaware.scenes.tables import Scenes

REFERENCE = Iv2024.reference("action")
ALWAYS = {"class-balance"}
BY_DESIGN = {"identifier-leak", "attribute-leak", "behaviour-tag-leak"}


def changed(who: str, **changes: object) -> list[Person]:
    """The sound people, one of them changed."""
    found = [person for person in sound() if person.name == who]
    assert len(found) == 1
    return [replace(person, **changes) if person.name == who else person for person in sound()]


def the(name: str, scenes: Scenes, protocol: Iv2024 = REFERENCE) -> Finding:
    found = audit(scenes, protocol).finding(name)
    assert found is not None, f"{name} found nothing"
    return found


def test_sound_data_pass_but_for_what_jaad_does_by_design() -> None:
    found = audit(dataset(sound()), REFERENCE)
    assert {finding.name for finding in found.findings} == ALWAYS | BY_DESIGN
    assert set(found.skipped) == {"region-off-screen", "past-critical-point", "sample-counts"}


def test_crossing_without_an_annotated_event() -> None:
    persons = changed("0_3_2b", event=None, source="none", tagged=0)
    found = the("crossing-without-event", dataset(persons))
    assert (found.severity, found.count, found.out_of) == ("serious", 7, 14)
    assert found.table is not None
    assert found.table.rows == (("train", 0, 14, 0, 2), ("val", 0, 14, 0, 2), ("test", 7, 14, 1, 2))
    assert found.examples == (Example("video_0003", "0_3_2b", 127),)
    assert "7 of 14 crossing test samples" in found.sentence
    assert audit(dataset(persons), Iv2024.default("action")).finding("crossing-without-event") is None
    assert the("crosser-without-event", dataset(persons)).examples == (Example("video_0003", "0_3_2b", 0),)


def test_crossing_inside_the_observation() -> None:
    # Event at 120: the observations end at frames 30, 40, ..., 90, so tags from 61 on meet three.
    persons = changed("0_3_1b", tagged=61)
    found = the("crossing-observed", dataset(persons))
    assert (found.count, found.out_of) == (3, 14)
    assert found.examples[0].pedestrian == "0_3_1b"
    assert audit(dataset(persons), Iv2024.default("action")).finding("crossing-observed") is None


def test_tags_of_others_that_show_a_crossing_are_counted_beside() -> None:
    persons = changed("0_3_3b", tagged=0)
    found = audit(dataset(persons), REFERENCE)
    assert found.finding("crossing-observed") is None
    denied = found.finding("tags-against-attribute")
    assert denied is not None
    assert (denied.count, denied.out_of) == (1, 9)
    assert denied.table is not None
    assert denied.table.rows == (("not-crossing", 1),)
    assert denied.measures == {
        "subset_crossing_by_attribute": 6,
        "subset_crossing_by_tags": 7,
        "subset_pedestrians": 18,
    }


def test_an_identifier_that_gives_the_answer_away() -> None:
    # 2 crossers with 7 samples each; the refuser (b) has 7 and so have the other three: AUC = 1 - 7 / 28 / 2.
    found = the("identifier-leak", dataset(sound()))
    assert (found.count, found.out_of) == (14, 14)
    assert found.measures["auc"] == pytest.approx(1 - 0.25 / 2)
    assert found.measures["f1"] == pytest.approx(2 * (14 / 21) / (1 + 14 / 21))
    assert found.measures["not_crossing_samples"] == 7
    for name in ("attribute-leak", "behaviour-tag-leak"):
        assert the(name, dataset(sound())).measures["auc"] == found.measures["auc"]


def test_an_identifier_that_tells_nothing_passes() -> None:
    persons = [replace(person, name=person.name.removesuffix("b") + "b") for person in sound()]
    assert set(audit(dataset(persons), REFERENCE).passed) >= BY_DESIGN


def test_a_crossing_attribute_without_a_tag() -> None:
    found = the("attribute-against-tags", dataset(changed("0_1_1b", tagged=None)))
    assert (found.count, found.out_of) == (1, 6)
    assert found.examples[0].pedestrian == "0_1_1b"


@pytest.mark.parametrize(("tagged", "late", "early"), [(100, 1, 0), (129, 0, 0), (105, 0, 0), (104, 1, 0)])
def test_an_event_far_from_the_first_crossing_frame(tagged: int, late: int, early: int) -> None:
    found = audit(dataset(changed("0_2_1b", tagged=tagged)), REFERENCE).finding("event-far-from-tags")
    if late + early == 0:
        assert found is None
    else:
        assert found is not None
        assert found.measures == {"event_after_tag": late, "event_before_tag": early}
        assert found.examples[0].note == f"first tagged as crossing at {tagged}"


def test_an_event_where_the_track_has_no_box() -> None:
    frames = [frame for frame in range(130) if frame != 120]
    found = the("event-outside-track", dataset(changed("0_1_1b", frames=frames)))
    assert (found.count, found.out_of) == (1, 6)
    assert found.examples == (Example("video_0001", "0_1_1b", 120),)


def test_an_event_of_somebody_who_does_not_cross() -> None:
    found = the("event-without-crossing", dataset(changed("0_1_3b", event=0, source="annotated")))
    assert (found.count, found.out_of, found.measures) == (1, 3, {"at_first_box": 1})


def test_gaps_are_counted_with_the_frames_that_lack_a_box() -> None:
    frames = [*range(50), *range(53, 130)]
    found = the("track-gaps", dataset(changed("0_3_4", frames=frames)))
    assert (found.count, found.out_of) == (1, 18)
    assert found.examples == (Example("video_0003", "0_3_4", 0, "3 of 130 frames without a box"),)
    assert found.measures == {"samples_of_these_tracks": 7}


def test_boxes_outside_the_image_and_without_area() -> None:
    outside = the("boxes-outside-image", dataset(changed("0_1_4", left=1900.0, frames=range(110))))
    assert (outside.count, outside.out_of) == (110, 17 * 130 + 110)
    assert outside.examples[0] == Example("video_0001", "0_1_4", 0, "1900.0, 400.0, 1940.0, 500.0")
    assert len(outside.examples) == 5
    flat = the("boxes-without-area", dataset(changed("0_1_4", width=0.0)))
    assert flat.count == 130


def test_two_tracks_of_one_name() -> None:
    persons = sound()
    persons[4] = replace(persons[4], name=persons[3].name)
    found = the("repeated-names", dataset(persons))
    assert found.count == 2


def test_a_vehicle_that_mostly_does_one_thing() -> None:
    found = the("vehicle-action", dataset(sound(), actions=["decelerating", "decelerating", "stopped"]))
    assert (found.count, found.out_of) == (24, 36)
    assert found.table is not None
    assert found.table.rows == (("decelerating", 24), ("stopped", 12))


def test_videos_in_two_splits_and_in_none() -> None:
    videos = {**VIDEOS, "video_0003": ("default/test", "default/train"), "video_0004": ("other/test",)}
    found = audit(dataset(sound(), videos), REFERENCE)
    shared, lost = found.finding("videos-in-two-splits"), found.finding("videos-in-no-split")
    assert shared is not None
    assert shared.examples == (Example("video_0003", None, None, "default/test, default/train"),)
    assert lost is not None
    assert lost.examples == (Example("video_0004"),)


def test_rejected_rows_are_named() -> None:
    rows = [
        ("boxes", "annotations/video_0001.xml", 12, "box 3", "xtl > xbr"),
        ("files", "annotations/video_0009.xml", None, None, "truncated"),
    ]
    found = the("rejected", dataset(sound(), rejected=rows))
    assert (found.count, found.out_of) == (2, 18 * 130 + 2)
    assert found.examples[0] == Example("annotations/video_0001.xml", "box 3", 12, "xtl > xbr")
    assert found.examples[1] == Example("annotations/video_0009.xml", None, None, "truncated")


def test_boxes_left_of_the_image_get_the_last_region_in_print() -> None:
    persons = changed("0_3_4", left=-200.0)
    found = the("region-off-screen", dataset(persons), Iv2024.reference("risk"))
    assert (found.count, found.out_of) == (7, 42)
    assert audit(dataset(persons), Iv2024.default("risk")).finding("region-off-screen") is None


def test_observations_behind_what_the_annotators_saw() -> None:
    # Windows of 15 frames start at 0, 10, ..., 40: those from 30 and 40 run past the critical point, 40.
    places = {
        f"set0{k}/video_0001": (f"default/{split}",) for k, split in enumerate(("train", "val", "test"), 1)
    }
    persons = [Person(f"{k}_1_{n}", place) for k, place in enumerate(places, 1) for n in range(2)]
    plain = dataset(persons, places, name="PIE")
    points = {"exp_start_point": 0, "critical_point": 40, "intention_prob": 0.9, "event_frame": 120}
    scenes = plain.with_tables(tubes=plain.tubes.with_columns(pl.lit(v).alias(k) for k, v in points.items()))
    found = the("past-critical-point", scenes, Iv2024.reference("intention"))
    assert (found.count, found.out_of) == (4, 10)
    assert found.examples[0] == Example("set03/video_0001", "3_1_0", 30)
    honest = audit(scenes, Iv2024.default("intention"))
    assert "past-critical-point" in honest.passed


def test_class_balance_says_what_a_constant_answer_is_worth() -> None:
    found = the("class-balance", dataset(sound()))
    assert (found.count, found.out_of) == (28, 42)
    assert found.table is not None
    assert found.table.columns == ("label", "train", "val", "test")
    assert found.table.rows == (("not-crossing", 28, 28, 28), ("crossing", 14, 14, 14))


def test_findings_come_by_severity_and_twice_the_same() -> None:
    persons = changed("0_3_2b", event=None, source="none", tagged=0)
    first, second = (audit(dataset(persons), REFERENCE) for _ in range(2))
    assert first == second
    assert render(first) == render(second)
    order = ["serious", "warning", "note"]
    ranks = [order.index(finding.severity) for finding in first.findings]
    assert ranks == sorted(ranks)
    assert 0 < ranks.count(0) == len(first.of_severity("serious"))


def test_every_check_ends_in_exactly_one_list() -> None:
    from roadaware.analysis.audit import CHECKS

    for scenes, protocol in [(dataset(sound()), REFERENCE), (dataset(sound()), Iv2024.default("risk"))]:
        done = audit(scenes, protocol)
        names = [*(finding.name for finding in done.findings), *done.passed, *done.skipped]
        assert sorted(names) == sorted(CHECKS)


def test_json_holds_what_the_findings_hold() -> None:
    done = audit(dataset(changed("0_3_2b", event=None, source="none", tagged=0)), REFERENCE)
    told = json.loads(json.dumps(done.to_dict(), allow_nan=False))
    assert told["dataset"] == "JAAD"
    assert told["protocol"]["type"] == "Iv2024"
    assert sum(told["counts"].values()) == len(told["findings"]) == len(done.findings)
    first = told["findings"][0]
    assert (first["name"], first["count"], first["out_of"]) == ("crossing-without-event", 7, 14)
    assert first["examples"][0] == {"video": "video_0003", "pedestrian": "0_3_2b", "frame": 127, "note": ""}


def test_text_shows_every_finding_with_reason_and_advice() -> None:
    done = audit(dataset(changed("0_3_4", frames=[*range(50), *range(53, 130)])), REFERENCE)
    text = render(done)
    for finding in done.findings:
        assert f"[{finding.severity}] {finding.name}: " in text
    assert "1 of 18 tracks have gaps." in text
    assert "0_3_4 @0 (3 of 130 frames without a box)" in text
    assert "Nothing found by: " in text
    assert "Not checked: region-off-screen" in text
    assert max(map(len, text.splitlines())) <= 120


def test_text_gives_a_terminal_nothing_to_obey() -> None:
    frames = [*range(50), *range(53, 130)]
    persons = changed("0_3_4", name="0_3_4\x1b[2J\u202e", frames=frames)
    text = render(audit(dataset(persons), REFERENCE))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[2J\\u202e" in text


@pytest.mark.parametrize("empty", ["train", "val", "test"])
def test_an_empty_split_is_a_finding_and_the_others_are_audited(empty: str) -> None:
    videos = {video: () if splits == (f"default/{empty}",) else splits for video, splits in VIDEOS.items()}
    done = audit(dataset(sound(), videos), REFERENCE)
    found = done.finding("empty-split")
    assert found is not None
    assert (found.severity, found.count, found.out_of) == ("serious", 1, 3)
    assert f"1 of 3 splits of default have no samples: {empty} (no videos)." in found.sentence
    assert found.table is not None
    assert (empty, 0, 0, 0) in found.table.rows
    assert ("train" if empty != "train" else "test", 6, 6, 42) in found.table.rows
    balance = done.finding("class-balance")
    assert balance is not None
    assert balance.out_of == 42
    assert done.protocol["splits"] == ["train", "val", "test"]


def test_a_split_whose_pedestrians_give_no_sample_counts_as_empty() -> None:
    brief = [replace(p, frames=range(9), event=None) if p.video == "video_0003" else p for p in sound()]
    done = audit(dataset(brief), REFERENCE)
    found, leak = done.finding("empty-split"), done.finding("identifier-leak")
    assert found is not None
    assert "test (6 pedestrians" in found.sentence
    assert leak is not None
    assert "crossing val samples" in leak.sentence


def test_without_any_split_the_audit_says_where_the_lists_should_be() -> None:
    with pytest.raises(InputError, match="split lists were not found"):
        audit(dataset(sound(), dict.fromkeys(VIDEOS, ())), REFERENCE)


def test_a_protocol_of_another_dataset_is_refused() -> None:
    with pytest.raises(UsageError, match="pie"):
        audit(dataset(sound()), Iv2024.reference("action", "pie"))


@pytest.mark.parametrize(
    ("strip", "skipped"),
    [
        (lambda s: s.with_tables(boxes=s.boxes.drop("cross")), "crossing-observed"),
        (lambda s: s.with_tables(tubes=s.tubes.drop("age")), "attribute-leak"),
        (lambda s: s.with_tables(frames=s.frames.drop("vehicle_action")), "vehicle-action"),
    ],
)
def test_what_cannot_be_checked_is_said(strip: Callable[[Scenes], Scenes], skipped: str) -> None:
    done: Audit = audit(strip(dataset(sound())), REFERENCE)
    assert "have no" in done.skipped[skipped]
    assert skipped in render(done)


@pytest.mark.slow
def test_a_damaged_file_of_attributes_is_serious(tmp_path: Path) -> None:
    write_demo(tmp_path)
    damaged = tmp_path / "annotations_attributes" / "video_0022_attributes.xml"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    scenes = read("jaad", tmp_path, cache=False)
    held = scenes.tubes.filter((pl.col("video") == "video_0022") & pl.col("behaviour"))
    assert len(held)
    finding = audit(scenes, Iv2024.reference("action")).finding("label-unknown")
    assert (finding.count, finding.severity) == (len(held), "serious")
    assert {example.video for example in finding.examples} == {"video_0022"}


@pytest.mark.slow
def test_an_audit_without_what_it_looks_at_says_what_is_missing(tmp_path: Path) -> None:
    write_demo(tmp_path)
    scenes = read("jaad", tmp_path, cache=False)
    poor = scenes.with_tables(tubes=scenes.tubes.drop("event_source"))
    with pytest.raises(InputError, match=r"needs the tubes' \['event_source'\]"):
        audit(poor, Iv2024.reference("action"))
