"""Samples worked out by hand, one rule of the protocols at a time."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest
from made import Pedestrian, Place, scenes

from roadaware.errors import InputError, UsageError
from roadaware.scenes.sampling import Iv2022, Iv2024, Wacv2021, list_filled_splits, sample

ACTION = replace(Iv2024.reference("action"), splits=("train",))
HONEST = replace(Iv2024.default("action"), splits=("train",))
RISK = replace(Iv2024.reference("risk"), splits=("train",))
INTENTION = replace(Iv2024.reference("intention"), splits=("train",))


def cut(pedestrians, protocol, **options):
    return sample(scenes(pedestrians, **options), protocol).samples


def test_a_long_track_gives_seven_samples_from_three_seconds_to_one():
    samples = cut([Pedestrian("0_1_1b", range(200), "crossing", event=150)], ACTION)
    assert samples["tte_frames"].to_list() == [90, 80, 70, 60, 50, 40, 30]
    # 151 boxes up to the event; the first window starts at 151 - 15 - 90 = 46 and ends behind 46 + 14.
    assert samples["start_frame"].to_list() == [46, 56, 66, 76, 86, 96, 106]
    assert samples["end_frame"][0] == 61
    assert samples["event_frame"].unique().to_list() == [150]
    assert samples["label"].unique().to_list() == [1]
    assert samples["sample"].to_list() == list(range(7))


@pytest.mark.parametrize(
    ("boxes", "count"), [(44, 0), (45, 1), (54, 1), (55, 2), (104, 6), (105, 7), (300, 7)]
)
def test_the_number_of_samples_follows_the_length_up_to_the_event(boxes, count):
    long = Pedestrian("0_1_9b", range(400), "crossing", event=399)
    samples = cut([Pedestrian("0_1_1b", range(boxes), "crossing", event=boxes - 1), long], ACTION)
    assert samples.filter(pl.col("tube") == 0).height == count


def test_the_event_of_others_is_the_third_last_box_or_the_last():
    track = [Pedestrian("0_1_1", range(100))]
    assert cut(track, ACTION)["event_frame"].unique().to_list() == [97]
    assert cut(track, HONEST)["event_frame"].unique().to_list() == [99]


def test_a_crosser_without_event_is_invented_one_or_dropped():
    track = [
        Pedestrian("0_1_1b", range(100), "crossing"),
        Pedestrian("0_1_2b", range(100), "crossing", event=99),
    ]
    published = cut(track, ACTION)
    assert published.filter(pl.col("tube") == 0)["event_frame"].unique().to_list() == [97]
    assert published.filter(pl.col("tube") == 0)["event_source"].unique().to_list() == ["fallback"]
    assert cut(track, HONEST)["event_source"].unique().to_list() == ["annotated"]


def test_an_observation_that_shows_the_crossing_is_dropped_by_default():
    tags = ["not-crossing"] * 60 + ["crossing"] * 40
    track = [Pedestrian("0_1_1b", range(100), "crossing", event=99, cross=tags)]
    assert cut(track, ACTION)["start_frame"].to_list() == [0, 10, 20, 30, 40, 50]
    # Observations that begin at 46 or later would end at 60 or later.
    assert cut(track, HONEST)["start_frame"].to_list() == [0, 10, 20, 30, 40]
    notes = sample(scenes(track), HONEST).meta.notes["sampling"]["train"]
    assert notes["samples_crossing_observed"] == 1


def test_gaps_take_no_place():
    frames = [*range(50), *range(150, 200)]
    samples = cut([Pedestrian("0_1_1b", frames, "crossing", event=199)], ACTION)
    assert samples["start_frame"].to_list() == [0, 10, 20, 30, 40, 150]
    assert samples["end_frame"].to_list() == [15, 25, 35, 45, 155, 165]
    assert samples["tte_frames"].to_list() == [85, 75, 65, 55, 45, 35]


def test_rows_follow_videos_and_names_as_text():
    places = [Place("video_0002"), Place("video_0001"), Place("video_0003", ("default/test",))]
    tracks = [
        Pedestrian("0_2_9", range(47), video="video_0002"),
        Pedestrian("0_2_10", range(47), video="video_0002"),
        Pedestrian("0_1_5b", range(47), "not-crossing", video="video_0001"),
        Pedestrian("0_1_5p", range(47), video="video_0001"),
        Pedestrian("0_3_1", range(47), video="video_0003"),
    ]
    both = replace(ACTION, splits=("train", "test"))
    assert cut(tracks, both, places=places)["tube"].to_list() == [2, 1, 0, 4]
    assert cut(tracks, both, places=places)["split"].to_list() == ["train"] * 3 + ["test"]
    beh = replace(ACTION, pedestrians="behaviour")
    assert cut(tracks, beh, places=places)["tube"].to_list() == [2]


@pytest.mark.parametrize(
    ("left", "published", "honest"),
    [
        (0.0, 0, 0),
        (139.99, 0, 0),
        (140.0, 1, 1),
        (1740.0, 11, 11),
        (1900.0, 11, 11),
        (-21.0, 11, 0),
        (-20.0, 0, 0),
    ],
)
def test_the_risk_region_of_a_centre(left, published, honest):
    track = [Pedestrian("0_1_1", range(60), left=[900.0] * 59 + [left])]
    assert cut(track, RISK)["label"].unique().to_list() == [published]
    default = replace(Iv2024.default("risk"), splits=("train",))
    assert cut(track, default)["label"].unique().to_list() == [honest]


def test_risk_looks_three_seconds_ahead_in_the_whole_track():
    # Boxes move 10 px a frame; the observation 46..60 is judged at 46 + 104 = 150, behind the event at 149.
    lefts = [10.0 * frame - 20 for frame in range(200)]
    samples = cut([Pedestrian("0_1_1b", range(200), "crossing", event=149, left=lefts)], RISK)
    assert samples["start_frame"][0] == 45
    assert samples["label"].to_list()[:2] == [1490 // 160, 1590 // 160]


def test_risk_regions_are_shares_of_the_width_that_is_asked_for():
    places = [Place("video_0001", width=960), Place("video_0002", width=1920)]
    tracks = [Pedestrian("0_1_1", range(47)), Pedestrian("0_2_1", range(47), video="video_0002")]
    assert cut(tracks, RISK, places=places)["label"].to_list() == [5, 5]
    assert cut(tracks, replace(RISK, risk_width="own"), places=places)["label"].to_list() == [11, 5]


def test_intention_runs_its_start_up_to_the_critical_point():
    asked = Pedestrian(
        "3_1_1", range(100), event=99, start=10, critical=50, probability=0.5, video="set03/video_0001"
    )
    place = [Place("set03/video_0001")]
    published = cut([asked], INTENTION, places=place, dataset="PIE")
    assert published["start_frame"].to_list() == [10, 20, 30, 40, 50]
    assert published["tte_frames"].to_list() == [89, 79, 69, 59, 49]
    honest = replace(Iv2024.default("intention"), splits=("train",))
    # An observation from 40 would end at 54, behind the critical point.
    assert cut([asked], honest, places=place, dataset="PIE")["start_frame"].to_list() == [10, 20, 30]
    assert cut([asked], honest, places=place, dataset="PIE")["tte_frames"].to_list() == [75, 65, 55]


@pytest.mark.parametrize(
    ("probability", "published", "honest"),
    [(0.0, 0, 0), (0.3333333333, 0, 1), (0.34, 1, 1), (0.6666666667, 2, 2), (0.66, 1, 1), (1.0, 2, 2)],
)
def test_intention_falls_into_thirds(probability, published, honest):
    asked = [Pedestrian("3_1_1", range(60), event=59, start=0, critical=30, probability=probability)]
    assert cut(asked, INTENTION, dataset="PIE")["label"].unique().to_list() == [published]
    default = replace(Iv2024.default("intention"), splits=("train",))
    assert cut(asked, default, dataset="PIE")["label"].unique().to_list() == [honest]


def test_attributes_alone_give_the_intention_samples_of_a_track_without_gaps():
    asked = [
        Pedestrian("3_1_1", range(5, 160), event=150, start=10, critical=90, probability=0.5),
        Pedestrian("3_1_2", range(5, 160), event=150, start=10, critical=20, probability=0.5),
    ]
    with_boxes = sample(scenes(asked, dataset="PIE"), INTENTION)
    without = sample(scenes(asked, dataset="PIE", boxes=False), INTENTION)
    assert without.samples.equals(with_boxes.samples)
    assert without.meta.notes["sampling"] == with_boxes.meta.notes["sampling"]
    assert "no gaps" in without.meta.notes["assumption"]
    assert "assumption" not in with_boxes.meta.notes


def test_action_without_boxes_says_what_is_missing():
    with pytest.raises(InputError, match="needs boxes"):
        cut([Pedestrian("3_1_1", range(60))], replace(ACTION, dataset="pie"), dataset="PIE", boxes=False)


def test_wacv_gives_every_track_the_same_number_of_samples():
    tracks = [
        Pedestrian("0_1_1b", range(76), "crossing", event=75),
        Pedestrian("0_1_2b", range(75), "crossing", event=74),
        Pedestrian("0_1_3b", range(300), "crossing", event=200),
        Pedestrian("0_1_4b", range(300), "crossing"),
    ]
    reference = replace(Wacv2021.reference(), splits=("train",))
    samples = cut(tracks, reference)
    assert samples.group_by("tube", maintain_order=True).len().rows() == [(0, 11), (2, 11), (3, 11)]
    assert samples.filter(pl.col("tube") == 0)["start_frame"].to_list() == list(range(0, 31, 3))
    assert samples["tte_frames"].to_list()[:11] == list(range(60, 29, -3))
    sparse = cut(tracks, replace(reference, overlap=0.6))
    assert sparse.group_by("tube", maintain_order=True).len().rows() == [(0, 6), (2, 6), (3, 6)]
    honest = cut(tracks, replace(Wacv2021.default(), splits=("train",)))
    assert honest["tube"].unique(maintain_order=True).to_list() == [0, 2]


def test_iv2022_is_wacv_with_one_overlap_for_all():
    assert Wacv2021.reference(dataset="pie").stride_frames == 6
    assert Iv2022.reference(dataset="pie").stride_frames == 3
    track = [Pedestrian("1_1_1", range(200), "crossing", event=180)]
    old, new = (replace(kind.reference(dataset="pie"), splits=("train",)) for kind in (Wacv2021, Iv2022))
    assert cut(track, old, dataset="PIE")["tte_frames"].to_list() == list(range(60, 29, -6))
    assert cut(track, new, dataset="PIE")["tte_frames"].to_list() == list(range(60, 29, -3))


def test_the_notes_account_for_every_pedestrian():
    tracks = [
        Pedestrian("0_1_1b", range(200), "crossing", event=150),
        Pedestrian("0_1_2b", range(200), "crossing"),
        Pedestrian("0_1_3", range(20)),
        Pedestrian("0_1_4", []),
        Pedestrian("0_1_5b", range(200), "crossing", event=777),
        Pedestrian("0_1_6b", range(200)),
    ]
    notes = sample(scenes(tracks), HONEST).meta.notes["sampling"]["train"]
    assert notes == {
        "pedestrians": 6,
        "sampled": 1,
        "samples": 7,
        "pedestrians_without_label": 1,
        "pedestrians_without_boxes": 1,
        "pedestrians_without_event": 2,
        "pedestrians_too_short": 1,
        "samples_crossing_observed": 0,
    }


def test_the_wrong_dataset_and_an_unknown_split_are_named():
    track = [Pedestrian("0_1_1", range(100))]
    with pytest.raises(
        UsageError, match="is for pie alone, and these scenes are 'JAAD'; theirs are jaad-action"
    ):
        cut(track, replace(ACTION, dataset="pie"))
    with pytest.raises(
        InputError,
        match=r"no video is in split 'default/val' of JAAD.*in default/train\n.*"
        r"complete its list, split_ids/default/val\.txt",
    ):
        cut(track, Iv2024.reference())
    with pytest.raises(InputError, match="sampled by Iv2024: train: 1 pedestrians, 1 pedestrians too short"):
        cut([Pedestrian("0_1_1", range(10))], ACTION)


def test_a_dataset_of_its_own_is_cut_by_the_rules_that_it_names():
    made = scenes([Pedestrian("0_1_1b", range(100), "crossing", event=99)])
    own = replace(made.meta, dataset="Own")
    with pytest.raises(
        UsageError, match=r"these scenes are 'Own'; .* meta\.notes\['sampled_as'\] = \['jaad'\]"
    ):
        sample(made.with_tables(meta=own), ACTION)
    follows = made.with_tables(meta=replace(own, notes={"sampled_as": ["jaad"]}))
    assert len(sample(follows, ACTION).samples) == len(sample(made, ACTION).samples) > 0
    bare = follows.with_tables(videos=follows.videos.drop("splits"))
    with pytest.raises(
        InputError, match=r"splits of the table videos says which hold a video: 'default/train'"
    ):
        sample(bare, ACTION)


def test_without_any_split_it_is_said_where_the_lists_should_be():
    track = [Pedestrian("0_1_1", range(100))]
    for places in ([Place(splits=())], [Place(splits=("other/train",))]):
        with pytest.raises(InputError) as caught:
            cut(track, ACTION, places=places)
        assert "split_ids/default/" in str(caught.value)
        assert not str(caught.value).endswith("[]")
    bare = scenes(track).with_tables(videos=scenes(track).videos.drop("splits"))
    with pytest.raises(InputError, match="the split lists were not found"):
        sample(bare, ACTION)
    with pytest.raises(InputError, match="set05, 06 val"):
        cut(track, replace(ACTION, dataset="pie"), dataset="PIE", places=[Place(splits=())])


@pytest.mark.parametrize("protocol", [Iv2024.reference("action"), Iv2024.reference("risk"), Iv2024.default()])
def test_a_split_without_samples_leaves_the_others_alone(protocol):
    places = [Place(f"video_000{k}", (f"default/{s}",)) for k, s in enumerate(("train", "val", "test"), 1)]
    train, test = (
        Pedestrian(f"0_{k}_1b", range(100), "crossing", event=99, video=f"video_000{k}") for k in (1, 3)
    )
    short = Pedestrian("0_2_1b", range(5), "crossing", event=4, video="video_0002")
    for held in ([train, short, test], [train, test]):
        sampled = sample(scenes(held, places), protocol)
        assert sampled.samples["split"].unique(maintain_order=True).to_list() == ["train", "test"]
        assert sampled.meta.notes["sampling"]["val"]["samples"] == 0
    assert list_filled_splits(scenes([train], places[:1]), protocol) == ("train",)


def test_who_should_have_a_label_and_has_none_is_not_taken_for_one_who_does_not_cross():
    unknown, known = Pedestrian("0_1_1b", range(100)), Pedestrian("0_1_2b", range(100), "crossing", event=99)
    bystander = Pedestrian("0_1_3", range(100))
    assert set(cut([unknown, known, bystander], ACTION)["tube"]) == {1, 2}
    with pytest.raises(InputError, match="none of 1 pedestrians has a known label"):
        cut([unknown, bystander], ACTION)


def test_joined_datasets_are_not_taken_for_one_of_them():
    made = scenes([Pedestrian("0_1_1b", range(100), "crossing", event=99)], dataset="JAAD + PIE")
    with pytest.raises(UsageError, match="is for jaad alone, and these scenes are 'JAAD \\+ PIE'"):
        sample(made, ACTION)


def test_boxes_without_crossing_tags_are_said_to_be_unchecked():
    made = scenes([Pedestrian("0_1_1b", range(100), "crossing", event=99)])
    untagged = made.with_tables(boxes=made.boxes.drop("cross"))
    assert "no crossing tags" in sample(untagged, HONEST).meta.notes["unchecked"]
    assert "unchecked" not in sample(made, HONEST).meta.notes
    assert "unchecked" not in sample(untagged, ACTION).meta.notes
