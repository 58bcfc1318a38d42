"""The vectorised samplers and plain loops agree on random pedestrians under random configs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from made import Pedestrian, scenes
from plain_sampling import Row, labelled, plain

from example_counts import tried
from roadaware.errors import InputError
from roadaware.scenes.sampling import EventProtocol, Iv2024, Wacv2021, sample


@st.composite
def tracks(draw: st.DrawFn, number: int) -> Pedestrian:
    """A track with gaps, perhaps an event, tags and answers of annotators."""
    length = draw(st.integers(0, 60))
    steps = draw(st.lists(st.integers(1, 3), min_size=length, max_size=length))
    frames = [sum(steps[: i + 1]) for i in range(length)]
    anywhere = st.sampled_from(frames) if frames else st.just(5)
    suffix = draw(st.sampled_from(["", "b", "p"]))
    first, second = sorted((draw(anywhere), draw(anywhere)))
    return Pedestrian(
        name=f"0_{number}{suffix}",
        frames=frames,
        crossing=draw(st.sampled_from(["crossing", "not-crossing", "irrelevant", None])),
        event=draw(st.none() | anywhere | st.integers(0, 200)),
        cross=draw(st.lists(st.sampled_from(["not-crossing", "crossing"]), min_size=length, max_size=length)),
        left=draw(st.lists(st.integers(-100, 2000).map(float), min_size=length, max_size=length)),
        start=first,
        critical=second,
        probability=draw(st.none() | st.sampled_from([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])),
    )


def configs() -> st.SearchStrategy[EventProtocol]:
    """Both kinds of protocol with short observations, so that short tracks have samples."""
    rules = {
        "splits": st.just(("train",)),
        "overlap": st.sampled_from([0.0, 0.3, 0.6, 0.8]),
        "observation_frames": st.integers(1, 8),
        "crosser_without_event": st.sampled_from(["third_last", "drop"]),
        "other_event": st.sampled_from(["third_last", "last"]),
        "crossing_observed": st.sampled_from(["keep", "drop"]),
        "tte_frames": st.tuples(st.integers(3, 10), st.integers(10, 30)),
    }
    newer = st.builds(
        Iv2024,
        **rules,
        task=st.sampled_from(["action", "risk"]),
        dataset=st.just("jaad"),
        pedestrians=st.sampled_from(["all", "behaviour"]),
        exclude_short=st.booleans(),
        prediction_frames=st.just(3),
        risk_horizon_frames=st.integers(1, 40),
        risk_regions=st.sampled_from([2, 6, 12]),
        risk_off_left=st.sampled_from(["last_region", "first_region"]),
    )
    asked = st.builds(
        Iv2024,
        **rules,
        task=st.just("intention"),
        dataset=st.just("pie"),
        prediction_frames=st.just(3),
        intention_past_critical=st.sampled_from(["keep", "drop"]),
        intention_tte=st.sampled_from(["start", "end"]),
    )
    older = st.builds(Wacv2021, **rules, min_track_frames=st.integers(38, 50))
    return newer | asked | older


@pytest.mark.slow
@tried(150)
@given(st.tuples(*[tracks(number) for number in range(4)]), configs())
def test_arrays_and_loops_cut_the_same_samples(pedestrians, protocol):
    assume(any(pedestrian.frames for pedestrian in pedestrians))
    expected = plain(list(pedestrians), protocol)
    made = scenes(pedestrians, dataset=protocol.dataset.upper())
    asked = [pedestrian.crossing for pedestrian in pedestrians if labelled(pedestrian, protocol)]
    if asked and not any(asked):
        with pytest.raises(InputError, match="has a known label"):
            sample(made, protocol)
        return
    if not expected:
        with pytest.raises(InputError, match="no pedestrian can be sampled"):
            sample(made, protocol)
        return
    samples = sample(made, protocol).samples
    names = made.tubes["name"].to_list()
    columns = ("tube", "start_frame", "end_frame", "event_frame", "tte_frames", "label")
    assert [Row(names[tube], *rest) for tube, *rest in samples.select(columns).rows()] == expected


def test_the_order_of_box_rows_does_not_matter():
    pedestrians = [Pedestrian(f"0_{n}b", range(n, 120 + n), "crossing", event=110) for n in range(3)]
    made = scenes(pedestrians)
    shuffled = made.with_tables(boxes=made.boxes.sample(fraction=1.0, shuffle=True, seed=3))
    protocol = replace(Iv2024.reference("risk"), splits=("train",))
    assert sample(made, protocol).samples.equals(sample(shuffled, protocol).samples)


@pytest.mark.parametrize("protocol", [Iv2024.reference(), Iv2024.default("risk"), Wacv2021.reference()])
def test_sampling_twice_gives_the_same_and_leaves_the_scenes_alone(protocol):
    made = scenes([Pedestrian("0_1b", range(200), "crossing", event=150)])
    before = made.with_tables()
    one, two = (sample(made, replace(protocol, splits=("train",))) for _ in range(2))
    assert one == two
    assert made == before
    assert sample(one, replace(protocol, splits=("train",))) == one
