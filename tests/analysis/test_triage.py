"""Triage: reasons rest on what was seen until then, moments on their reasons, and people may say which are worth it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from roadaware.analysis.drives import build_drives
from roadaware.analysis.triage import (
    PEAKS,
    REASONS,
    Drive,
    TriageConfig,
    apply_prior,
    count_labels,
    describe_peak,
    find_peaks,
    learn_verdicts,
    list_values,
    rank_moments,
    read_weights,
)
from roadaware.errors import InputError, UsageError
from roadaware.online.events import SPEED, STANDING
from roadaware.scenes.tables import Meta, Predictions, Scenes

NAMES = (
    ("agent", "Ped"),
    ("agent", "Car"),
    ("agent", "TL"),
    ("action", "Red"),
    ("action", "XingFmLft"),
    ("event", "a"),
)
FPS = 10.0


def drive(
    boxes: list[tuple[int, int, list[float], str]], n: int = 60, speed: float = 10.0, **more: object
) -> Drive:
    """A drive of boxes: frame, tube, corners, agent; of labels each has its agent alone."""
    labels = np.zeros((len(boxes), len(NAMES)), np.float32)
    for k, (_, _, _, agent) in enumerate(boxes):
        if ("agent", agent) in NAMES:
            labels[k, NAMES.index(("agent", agent))] = 1.0
    corners = np.array([box for _, _, box, _ in boxes]).reshape(-1, 4)
    table = pl.DataFrame(
        {
            "frame": [frame for frame, _, _, _ in boxes],
            "tube": [tube for _, tube, _, _ in boxes],
            **{name: corners[:, k] for k, name in enumerate(("x1", "y1", "x2", "y2"))},
            "score": [1.0] * len(boxes),
            "agent": [agent for _, _, _, agent in boxes],
        },
        schema_overrides={"frame": pl.Int64, "tube": pl.Int64, "score": pl.Float64, "agent": pl.String},
    )
    given = Drive(
        video="v",
        size_px=(640.0, 480.0),
        frame=np.arange(n),
        t_s=np.arange(n) / FPS,
        speed_mps=np.full(n, speed),
        standing=np.full(n, np.nan),
        boxes=table,
        labels=labels,
        names=NAMES,
        unknown=np.zeros(len(boxes)),
        focal_px=500.0,
        horizon_px=240.0,
        camera_m=1.5,
    )
    return replace(given, **more)  # type: ignore[arg-type]


def approach(
    closing: float, start_m: float, side_m: float, n: int = 60, agent: str = "Car"
) -> list[tuple[int, int, list[float], str]]:
    """Boxes of something 1.5 m high and wide that comes closer at a speed, at a distance to the side that stays."""
    rows = []
    for frame in range(n):
        ahead = start_m - closing * frame / FPS
        if ahead < 2:
            break
        middle, half, foot = 320 + 500 * side_m / ahead, 375 / ahead, 240 + 750 / ahead
        rows.append((frame, 1, [middle - half, foot - 2 * half, middle + half, foot], agent))
    return rows


def random_drive(seed: int, n: int = 50) -> Drive:
    rng = np.random.default_rng(seed)
    rows = []
    for tube in range(6):
        centre, size = rng.uniform([100, 200], [540, 300]), rng.uniform(20, 60)
        for frame in sorted(rng.choice(n, int(rng.integers(5, n)), replace=False).tolist()):
            size *= rng.uniform(0.97, 1.08)
            centre = centre + rng.normal(0, 4, 2)
            box = [*(centre - size / 2), *(centre + size / 2)]
            rows.append((int(frame), tube, [float(x) for x in box], str(rng.choice(["Ped", "Car", "TL"]))))
    scores = rng.random((len(rows), len(NAMES))).astype(np.float32)
    ahead = drive(rows, n, speed_mps=rng.uniform(0, 15, n), labels=scores, unknown=rng.random(len(rows)))
    tubes = pl.DataFrame(
        {"tube": [0, 1], "frame": [20, 20], "crossing": [0.9, 0.2], "low": [0.1, 0.1], "high": [1.0, 0.3]}
    )
    sounds = pl.DataFrame(
        {"t_s": [1.0, 2.0], "end_s": [2.0, 3.0], "name": ["siren (police)", "speaking"], "score": [0.7, 1.0]}
    )
    other = ahead.boxes.filter(pl.col("tube") > 2)
    return replace(ahead, crossing=tubes, sounds=sounds, others=other)


@pytest.mark.parametrize("seed", range(5))
def test_values_lie_between_0_and_1_and_do_not_look_ahead(seed: int) -> None:
    whole = random_drive(seed)
    values = list_values(whole)
    assert list(values) == list(REASONS)
    assert all(rows["value"].is_between(0, 1).all() for rows in values.values())
    for last in (12, 30):
        kept = whole.boxes.with_row_index("row").filter(pl.col("frame") <= last)
        rows = kept["row"].to_numpy()
        cut = replace(
            whole,
            frame=whole.frame[: last + 1],
            t_s=whole.t_s[: last + 1],
            speed_mps=whole.speed_mps[: last + 1],
            standing=whole.standing[: last + 1],
            boxes=kept.drop("row"),
            labels=whole.labels[rows],
            unknown=whole.unknown[rows],
            sounds=whole.sounds.filter(pl.col("t_s") <= last / FPS),
        )
        for reason, rows_until in list_values(cut).items():
            before = values[reason].filter(pl.col("frame") <= last).sort("tube", "frame", "label")
            now = rows_until.sort("tube", "frame", "label")
            keys = ["tube", "frame", "label"]
            both = before.filter(pl.col("value") > 0).join(now, on=keys, how="full", suffix="_now")
            both = both.filter(
                (pl.col("value").fill_null(0.0) > 1e-12) | (pl.col("value_now").fill_null(0.0) > 1e-12)
            )
            assert np.allclose(both["value"].fill_null(0.0), both["value_now"].fill_null(0.0)), reason


def test_time_to_contact_is_that_of_the_motion() -> None:
    """From 40 m at 10 m/s; the mean of the slopes of growth and foot, less two errors, is that of half a second ago."""
    values = list_values(drive(approach(10.0, 40.0, 0.0)))["collision"]
    at = values.filter(pl.col("frame") == 25).row(0, named=True)
    t = np.arange(15, 26) / FPS

    def fit(y: np.ndarray, tremble: float) -> tuple[float, float]:
        line = np.polyfit(t, y, 1)
        rest = y - np.polyval(line, t)
        spread = max(np.sqrt((rest**2).sum() / (len(t) - 2)), tremble)
        return line[0], spread / np.sqrt(((t - t.mean()) ** 2).sum())

    grow, grow_error = fit(np.log(1 / (40 - 10 * t)), 0.05)
    high = 750 / 15
    sink, sink_error = fit(750 / (40 - 10 * t), 0.04 * high)
    scale = 1.5 / (1.5 * high)  # both the car and the camera are 1.5 m high
    sink, sink_error = sink * scale, np.hypot(sink_error * scale, 0.3 * sink * scale)
    weights = grow_error**-2, sink_error**-2
    rate = np.average([grow, sink], weights=weights) - 2 / np.sqrt(sum(weights))
    assert at["seconds"] == pytest.approx(1 / rate - 0.5, rel=1e-6)
    assert at["value"] == pytest.approx((4 - at["seconds"]) / 3.5, rel=1e-6)
    # 1.5 s are left; two standard errors make it more.
    assert 1.4 < at["seconds"] < 2.0


def test_the_lower_edge_hides_nobody_who_comes_closer_and_the_side_does() -> None:
    """From 14 m at 10 m/s, a car's foot leaves the image 3.1 m ahead, what was seen of it before is not enough to say so."""
    rows = [
        (frame, 1, [*box[:3], min(box[3], 480.0)], "Car") for frame, _, box, _ in approach(10.0, 14.0, 0.0)
    ]
    values = list_values(drive(rows))["collision"]
    cut = values.filter(pl.col("frame") == 11)["value"].item()  # 3 m ahead
    assert cut > 0.9
    assert cut >= values.filter(pl.col("frame") == 9)["value"].item()
    aside = [
        (frame, 1, [box[0] + 640.0 - box[2], *box[1:2], 640.0, box[3]], "Car") for frame, _, box, _ in rows
    ]
    assert list_values(drive(aside))["collision"]["value"].max() == 0.0
    things = [(frame, 1, box, "thing") for frame, _, box, _ in rows]
    assert list_values(drive(things))["collision"]["value"].max() == 0.0


def test_who_walks_across_is_on_the_way_at_contact() -> None:
    """A person 1.7 m high, 1.5 s away, who walks from 1.9 m beside the way to its middle by contact, and later past it."""
    for begin_m, high in ((1.9, True), (6.0, False)):
        rows = []
        for frame in range(13):
            ahead, aside = 15.0 - frame, begin_m - 1.4 * frame / FPS
            middle, size, foot = 320 + 500 * aside / ahead, 850 / ahead, 240 + 750 / ahead
            rows.append((frame, 1, [middle - size / 6, foot - size, middle + size / 6, foot], "Ped"))
        value = list_values(drive(rows))["collision"]["value"].max()
        assert (value > 0.8) if high else (value == 0.0), begin_m  # type: ignore[operator]


def test_a_box_that_grows_but_does_not_sink_was_too_small_before() -> None:
    """A lorry 23 m ahead whose box held its lower third until a second ago."""
    rows = [(f, 1, [304.0, 180.0 - (17 if f < 20 else 50), 345.0, 180.0], "Car") for f in range(30)]
    assert list_values(drive(rows))["collision"]["value"].max() == 0.0
    # Nobody comes closer by 40 m/s: 14 m ahead, with a foot that sinks as fast as the box grows.
    fast = approach(40.0, 70.0, 0.0)
    nearest = list_values(drive(fast))["collision"].filter(pl.col("frame") == 14).row(0, named=True)
    assert nearest["seconds"] == pytest.approx(14.0 / 20.0)


def test_what_rests_on_a_speed_that_is_not_known_yet_is_worth_half() -> None:
    rows = approach(10.0, 40.0, 0.0)
    known = list_values(drive(rows))["collision"].filter(pl.col("frame") == 25)["value"].item()
    speed = np.full(60, 10.0)
    speed[:30] = np.nan
    # 8 m/s are taken where nobody says it, and what is not known for a while counts by half.
    for given, share in ((speed, 0.5), (np.full(60, np.nan), 1.0)):
        whole = replace(drive(rows), speed_mps=given)
        values = list_values(whole)["collision"]
        assert values.filter(pl.col("frame") == 25)["value"].item() == pytest.approx(share * known), share
    # A watch that goes on says that the speed will be known, and nothing else of what comes.
    told = replace(drive(rows[:26], n=26), speed_mps=speed[:26], speed_told=True)
    assert list_values(told)["collision"]["value"][-1] == pytest.approx(0.5 * known)


def test_turns_of_the_vehicle_make_nobody_come_closer() -> None:
    rows = approach(10.0, 40.0, 0.0)
    turning = np.zeros(60)
    turning[20:22] = -0.4
    values = list_values(drive(rows, yaw_rps=turning))["collision"]
    straight = list_values(drive(rows))["collision"]
    held = pl.col("frame").is_between(20, 31)
    assert values.filter(held, pl.col("frame") < 31)["value"].max() == 0.0
    # Of the arc's swing of 1.6 m, 9 m ahead, 0.4 m are left until nothing counts.
    last = pl.col("frame") == 31
    share = values.filter(last)["value"].item() / straight.filter(last)["value"].item()
    assert share == pytest.approx((2.0 - 0.04 * 9**2 / 2) / 1.3)
    assert values.filter(~held).equals(straight.filter(~held))


def test_who_passes_at_the_side_or_stays_away_is_no_collision() -> None:
    assert list_values(drive(approach(10.0, 40.0, 3.3)))["collision"]["value"].max() == 0.0
    assert list_values(drive(approach(0.5, 30.0, 0.0)))["collision"]["value"].max() == 0.0


def test_a_box_near_the_edge_may_be_cut_and_is_no_collision() -> None:
    """A car that stands 2.5 m beside the way is passed; its detected sides end 20 px before the edge that cuts it."""
    rows = []
    for frame in range(21):
        ahead = 20.0 - 0.8 * frame
        inner, outer, foot = 320 + 500 * 1.6 / (ahead + 4.4), 320 + 500 * 3.4 / ahead, 240 + 750 / ahead
        rows.append((frame, 1, [inner, foot - 750 / ahead, min(outer, 620.0), foot], "Car"))
    middle = [(box[0] + box[2] - 640) / 2 / (box[3] - box[1]) * 1.5 for _, _, box, _ in rows]
    assert middle[10] > 2.2
    assert middle[-1] < 1.6
    assert list_values(drive(rows))["collision"]["value"].max() < 0.15


def test_who_floats_above_the_ground_is_doubted_where_the_camera_is_known() -> None:
    high = [
        (f, n, [x1, y1 - 160, x2, y2 - 160], a) for f, n, (x1, y1, x2, y2), a in approach(8.0, 20.0, 0.5, 17)
    ]
    assert list_values(drive(high))["collision"]["value"].max() == 0.0
    assert list_values(drive(high, camera_m=None))["collision"]["value"].max() > 0.5
    assert list_values(drive(high, horizon_px=None))["collision"]["value"].max() > 0.5


def test_crossing_needs_a_person_a_moving_vehicle_and_a_chance() -> None:
    walks = [(f, 1, [300.0, 240 - 30, 320.0, 240 + 40], "Ped") for f in range(20)]
    said = pl.DataFrame(
        {"tube": [1] * 20, "frame": range(20), "crossing": [0.8] * 20, "low": [0.7] * 20, "high": [0.9] * 20}
    )
    moving = (
        list_values(drive(walks, crossing=said))["crossing"].filter(pl.col("frame") == 15).row(0, named=True)
    )
    # 70 px high: 500 * 1.7 / 70 m ahead, at 10 m/s; nearer than two metres to the middle, and stays there.
    reach_s = 500 * 1.7 / 70 / 10
    assert moving["seconds"] == pytest.approx(reach_s)
    assert moving["value"] == pytest.approx(0.8)
    assert list_values(drive(walks, speed=0.0, crossing=said))["crossing"]["value"].max() == 0.0
    # At 5 m/s there are 2.4 s left, and 1 m/s^2 is enough.
    slow = list_values(drive(walks, speed=5.0, crossing=said))["crossing"].filter(pl.col("frame") == 15)
    assert slow["value"].item() == pytest.approx(0.8 * (5.0 / (2 * 2 * reach_s) - 0.5) / 2.5)
    assert list_values(drive(walks))["crossing"]["value"].max() == 0.0
    away = [(f, 1, [300.0 - 5 * f, 240 - 30, 320.0 - 5 * f, 240 + 40], "Ped") for f in range(20)]
    past = (
        list_values(drive(away, crossing=said))["crossing"].filter(pl.col("frame") == 15).row(0, named=True)
    )
    # 85 px to the left of the middle, and 50 px more each second.
    aside = (85 + 50 * reach_s) * 1.7 / 70
    assert past["value"] == pytest.approx(moving["value"] * (5 - aside) / 3)
    cars = [(f, tube, box, "Car") for f, tube, box, _ in walks]
    assert list_values(drive(cars, crossing=said))["crossing"]["value"].max() == 0.0


def test_braking_is_the_slope_of_the_speed() -> None:
    speed = np.full(60, 15.0)
    speed[30:] = np.maximum(15 - 4.25 * np.arange(30) / FPS, 0)
    values = list_values(drive([], speed_mps=speed))["braking"]
    assert values.filter(pl.col("frame") == 45)["value"].item() == pytest.approx((4.25 - 2.5) / 3.5)
    assert values.filter(pl.col("frame") < 30)["value"].max() == 0.0
    assert list_values(drive([], speed_mps=np.full(60, np.nan)))["braking"]["value"].max() == 0.0


def test_a_siren_is_an_alarm_and_speech_is_none() -> None:
    sounds = pl.DataFrame(
        {"t_s": [1.0, 2.0], "end_s": [2.0, 3.0], "name": ["siren", "speaking"], "score": [0.7, 1.0]}
    )
    peaks = find_peaks(drive([], sounds=sounds))
    assert peaks.select("reason", "t_s", "value").rows() == [("alarm", 1.0, 0.7)]


def hear(scores: list[tuple[float, float]]) -> Drive:
    """A drive of whose two kinds of sirens a listener tells every second."""
    kinds = ("siren (police)", "siren (ambulance)")
    rows = [(float(t), t + 1.0, kinds[k], pair[k]) for t, pair in enumerate(scores) for k in (0, 1)]
    sounds = pl.DataFrame(rows, schema=["t_s", "end_s", "name", "score"], orient="row")
    return drive([], n=10 * len(scores), sounds=sounds, listened=True)


def test_sounds_that_are_true_are_no_less_so_where_there_were_others_before() -> None:
    times = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 12.0, 25.0]
    sounds = pl.DataFrame({"t_s": times, "end_s": times, "name": "gunshot/firing", "score": 1.0})
    assert list_values(drive([], n=300, sounds=sounds))["alarm"]["value"].to_list() == [1.0] * 8


def test_kinds_of_a_siren_are_one_alarm_held_against_what_is_usual_in_the_film() -> None:
    quiet = [(0.01, 0.02)] * 10
    found = find_peaks(hear([*quiet, (0.2, 0.3), *quiet]))
    assert found.select("reason", "t_s", "value", "label", "chance").rows() == [
        ("alarm", 10.0, 1.0, "siren (ambulance)", 0.5)
    ]
    weak = find_peaks(hear([*quiet, (0.05, 0.05), *quiet]))
    assert weak["value"].to_list() == pytest.approx([(0.1 - 0.03 - 0.03) / 0.05])
    # A listener that is never sure that there is none says nothing by the same score.
    loud = [(0.1, 0.07)] * 10
    assert not len(find_peaks(hear([*loud, (0.1, 0.08), *loud])).filter(pl.col("t_s") >= 5))


def test_a_siren_that_goes_on_is_one_alarm_and_no_news_after_a_while() -> None:
    drives = hear([(0.01, 0.01)] * 10 + [(0.9, 0.05)] * 25 + [(0.01, 0.01)] * 30 + [(0.9, 0.05)] * 3)
    assert find_peaks(drives)["t_s"].to_list() == [10.0, 65.0]
    values = list_values(drives)["alarm"].filter(pl.col("t_s").is_between(30, 34))
    assert values["value"].max() == 0.0


def test_somebody_new_is_told_from_a_tube_that_was_cut() -> None:
    new = [(f, 2, [300.0, 230.0, 330.0, 310.0], "Ped") for f in range(20, 40)]
    before = [(f, 1, [300.0, 230.0, 330.0, 310.0], "Ped") for f in range(5, 18)]
    assert list_values(drive(new))["appearance"]["value"].max() > 0.5
    assert list_values(drive(before + new))["appearance"].filter(pl.col("tube") == 2)["value"].max() == 0.0
    # 0.6 s before it was 6 m farther, half as high and half as far from the middle.
    far = [(f, 1, [307.0, 235.0, 322.0, 275.0], "Ped") for f in range(12, 15)]
    known = list_values(drive(far + new))["appearance"].filter(pl.col("tube") == 2)
    assert known["value"].max() == 0.0
    stands = list_values(drive(far + new, speed=3.5))["appearance"].filter(pl.col("tube") == 2)
    assert stands["value"].max() > 0.1


def test_the_past_of_a_track_counts_once_it_is_proven_and_not_before() -> None:
    rows = approach(10.0, 40.0, 0.0, agent="Ped")
    n = len(rows)
    seen = replace(drive(rows), added=np.ones(n, bool), proven=np.arange(n) >= 25)
    values = list_values(seen)["collision"]
    assert values.filter(pl.col("frame") < 25)["value"].max() == 0.0
    known = list_values(drive(rows))["collision"].filter(pl.col("frame") >= 25)
    assert values.filter(pl.col("frame") >= 25).equals(known)
    assert known["value"].max() > 0.5


def test_whom_a_vehicle_hid_appears_beside_it() -> None:
    """A child in front of a van whose box was there; a finder of people sees it, or the detector of all agents."""
    child = [(f, 2, [300.0, 230.0, 330.0, 310.0], "Ped") for f in range(20, 40)]
    van = [(f, 1, [290.0, 230.0, 350.0, 310.0], "Car") for f in range(5, 40)]
    both = drive(van + child)
    added = np.array([tube == 2 for _, tube, _, _ in van + child])
    found = [
        list_values(each)["appearance"].filter(pl.col("tube") == 2)["value"].max()
        for each in (both, replace(both, added=added))
    ]
    assert found[0] == 0.0
    assert float(str(found[1])) > 0.5
    # Who was a cyclist's box is no new person; a track that is not sure yet hides nobody.
    rider = [(f, 1, [300.0, 230.0, 330.0, 310.0], "Cyc") for f in range(5, 18)]
    both = drive(rider + child)
    lost = list_values(replace(both, added=np.arange(len(rider + child)) >= len(rider)))["appearance"]
    assert lost.filter(pl.col("tube") == 2)["value"].max() == 0.0
    early = drive([(f, 1, [300.0, 230.0, 330.0, 310.0], "Ped") for f in range(16, 30)] + child)
    hidden = list_values(replace(early, proven=np.arange(len(early.boxes)) >= 12))["appearance"]
    assert hidden.filter(pl.col("tube") == 2)["value"].max() == 1.0


def test_what_a_turn_brings_into_the_image_was_not_hidden() -> None:
    new = [(f, 2, [500.0, 230.0, 530.0, 310.0], "Ped") for f in range(20, 40)]
    # A person 11 m ahead and 4 m to the right; in half a second a turn to the right moves the image by 120 px.
    straight = list_values(drive(new))["appearance"]["value"].max()
    assert straight > 0.2
    turning = [list_values(drive(new, yaw_rps=np.full(60, w)))["appearance"] for w in (-0.2, -0.5)]
    assert turning[0]["value"].max() > 0.5
    assert turning[1]["value"].max() == 0.0


def light(frames: range, speed: float, start_m: float, side_m: float = 3.0) -> Drive:
    """A red light 1 m high, 0.3 m wide, whose middle is 2 m above the camera, in boxes that no tube joins."""
    rows = []
    for frame in frames:
        ahead = start_m - speed * frame / FPS
        middle, up, half = 320 + 500 * side_m / ahead, 240 - 500 * 2.0 / ahead, 500 / ahead / 2
        rows.append((frame, -1, [middle - 0.3 * half, up - half, middle + 0.3 * half, up + half], "TL"))
    given = drive(rows, speed=speed)
    labels = given.labels.copy()
    labels[:, NAMES.index(("action", "Red"))] = 0.8
    return replace(given, labels=labels)


def test_a_red_light_needs_no_tube_and_is_kept_in_mind_until_it_is_passed() -> None:
    """From 24 m at 8 m/s: seen until 8 m are left, passed one second later."""
    seen = light(range(21), 8.0, 24.0)
    values = list_values(seen)["red_light"].sort("frame")
    for frame in (10, 20, 25):
        left = 24 - 0.8 * frame
        wanted = min(max((64 / (2 * (left + 3)) - 2.5) / 2.5, 0), 1)
        row = values.filter(pl.col("frame") == frame).row(0, named=True)
        assert (row["value"], row["seconds"]) == pytest.approx((wanted, left / 8)), frame
    assert values.filter(pl.col("frame") == 30)["value"].item() == pytest.approx(1.0)
    # Two seconds after it was seen nothing is known of it any more.
    assert values["frame"].max() == 40
    assert list_values(light(range(21), 1.0, 24.0))["red_light"]["value"].max() == 0.0
    assert list_values(light(range(21), 8.0, 24.0, side_m=9.0))["red_light"]["value"].max() == 0.0
    # Who brakes by 3.5 m/s^2 stops before it and is not on the way past it.
    braking = np.maximum(8.0 - 3.5 * np.arange(60) / FPS, 0.0)
    rows = light(range(21), 8.0, 24.0).boxes
    assert list_values(replace(seen, speed_mps=braking, boxes=rows))["red_light"]["value"].max() < 0.1
    green = seen.labels.copy()
    green[14:, NAMES.index(("action", "Red"))] = 0.0
    assert (
        list_values(replace(seen, labels=green))["red_light"].filter(pl.col("frame") >= 20)["value"].max()
        == 0.0
    )
    # Its boxes, whose places are nobody's path, make one peak.
    assert len(find_peaks(seen).filter(pl.col("reason") == "red_light")) == 1
    # While its speed is not known yet the vehicle may brake; where nobody ever says it, 8 m/s are taken.
    late = np.where(np.arange(60) < 45, np.nan, 8.0)
    assert list_values(replace(seen, speed_mps=late))["red_light"].is_empty()
    assert list_values(replace(seen, speed_mps=np.full(60, np.nan)))["red_light"]["value"].max() == 1.0
    # A vehicle that has turned by 0.6 rad since does not pass it.
    turning = np.where(np.arange(60) > 20, 0.45, 0.0)
    turned = list_values(replace(seen, yaw_rps=turning))["red_light"].sort("frame")
    straight = values.filter(pl.col("frame") == 30)["value"].item()
    assert turned.filter(pl.col("frame") == 30)["value"].item() == pytest.approx(
        straight * (0.6 - 0.45) / 0.3
    )
    assert turned.filter(pl.col("frame") >= 34)["value"].max() == 0.0
    # Two frames a second tell no braking, but the speed.
    held = seen.boxes.with_row_index("row").filter(pl.col("frame") % 5 == 0)
    slow = replace(
        seen,
        **{name: getattr(seen, name)[::5] for name in ("frame", "t_s", "speed_mps", "standing")},
        boxes=held.drop("row"),
        labels=seen.labels[held["row"].to_numpy()],
    )
    assert list_values(slow)["red_light"]["value"].max() > 0.5


def test_a_light_farther_away_does_not_hide_the_one_that_is_passed() -> None:
    """The next light is seen before this one is passed, at frame 30."""
    near, far = light(range(21), 8.0, 24.0), light(range(10, 40), 8.0, 84.0)
    both = replace(
        near,
        boxes=pl.concat([near.boxes, far.boxes]),
        labels=np.concatenate([near.labels, far.labels]),
        unknown=np.zeros(0),
    )
    for frame in (25, 30):
        alone, beside = (
            list_values(given)["red_light"].filter(pl.col("frame") == frame)["value"].item()
            for given in (near, both)
        )
        assert alone > 0.5, frame
        assert beside == pytest.approx(alone), frame
    # One that was lost 20 m ahead may have turned: 0.6 s later that begins to count, after 1.2 s it is forgotten.
    lost = list_values(light(range(6), 8.0, 24.0))["red_light"]
    assert lost["frame"].max() == 17


@pytest.mark.parametrize(
    ("far_m", "near_is_red", "red_from", "high"),
    [(22.0, False, 20, False), (22.0, True, 20, True), (22.0, False, 0, False), (45.0, False, 20, True)],
    ids=["it repeats the near one", "the near one was red", "whatever it was before", "another junction"],
)
def test_a_light_behind_the_junction_says_nothing_to_who_entered_on_green(
    far_m: float, near_is_red: bool, red_from: int, high: bool
) -> None:
    """At 16 m/s the near light is seen for two seconds, the far one until 5 m are left; it stands so far behind the other."""
    near, far = light(range(20), 16.0, 36.0), light(range(10, int((31 + far_m) / 1.6)), 16.0, 36.0 + far_m)
    labels, red = np.concatenate([near.labels, far.labels]), NAMES.index(("action", "Red"))
    labels[:20, red] = 0.8 * near_is_red
    labels[20:, red] = 0.8 * (far.boxes["frame"].to_numpy() >= red_from)
    both = replace(near, boxes=pl.concat([near.boxes, far.boxes]), labels=labels, unknown=np.zeros(0))
    values = list_values(both)["red_light"].filter(pl.col("frame") >= 25)["value"]
    assert (values.max() > 0.7) if high else (values.max() == 0.0)


@pytest.mark.parametrize(
    ("comes_mps", "ahead_mps", "high"), [(1.2, 6.0, True), (0.0, 6.0, False), (1.2, 0.5, False)]
)
def test_the_way_in_a_bend_is_the_driven_arc(comes_mps: float, ahead_mps: float, high: bool) -> None:
    """A car ahead in a bend of 20 m to the left cuts in where it nears the arc, and drives."""
    rows = []
    for frame in range(20):
        ahead = (10.0 if ahead_mps == 6.0 else 16.0) - (6.0 - ahead_mps) * frame / FPS
        aside = 2.5 - comes_mps * frame / FPS - ahead**2 / 2 / 20.0
        middle, half = 320 + 500 * aside / ahead, 375 / ahead
        rows.append((frame, 1, [middle - half, 240 - half, middle + half, 240 + half], "Car"))
    values = list_values(drive(rows, speed=6.0, yaw_rps=np.full(60, 0.3)))["cut_in"]
    assert values["value"].max() > 0.9 if high else values["value"].max() < 0.05


def test_nothing_gives_nothing() -> None:
    empty = drive([], n=0, speed_mps=np.zeros(0), standing=np.zeros(0))
    assert find_peaks(empty).is_empty()
    table = rank_moments(find_peaks(empty), count_labels(empty), 0.0)
    assert table.is_empty()
    assert {"moment", "rank", *REASONS} <= set(table.columns)


def peaks(*rows: tuple[str, str, int, float, float]) -> pl.DataFrame:
    """Video, reason, tube, time and value."""
    made = [
        dict.fromkeys(PEAKS) | {"video": v, "reason": r, "tube": n, "frame": round(t * 10), "t_s": t}
        | {"start_s": t - 1, "end_s": t + 1, "value": x, "label": "Car"}
        for v, r, n, t, x in rows
    ]  # fmt: skip
    return pl.DataFrame(made, schema=PEAKS)


COUNTS = pl.DataFrame(schema={"kind": pl.String, "label": pl.String, "tubes": pl.Int64, "of": pl.Int64})


def test_worth_is_the_chance_that_any_reason_holds() -> None:
    config = TriageConfig(collision=0.5, braking=0.4)
    found = rank_moments(
        peaks(("a", "collision", 1, 5.0, 0.8), ("a", "braking", -1, 6.0, 0.5)), COUNTS, 1.0, config
    )
    assert found["worth"].to_list() == [pytest.approx(1 - (1 - 0.5 * 0.8**0.5) * (1 - 0.4 * 0.5**0.5))]
    row = found.row(0, named=True)
    assert (row["moment"], row["reason"], row["tube"]) == ("a:50", "collision", 1)
    assert (row["collision"], row["braking"], row["crossing"]) == (0.8, 0.5, 0.0)
    assert row["sentence"].count(";") == 1


def test_moments_that_are_like_higher_ones_are_worth_less() -> None:
    config = TriageConfig(collision=1.0, braking=1.0, repeat=0.5, repeat_s=30, join_s=2, usual_an_hour=9)
    rows = [
        ("a", "collision", 1, 10.0, 0.9**2),
        ("a", "collision", 2, 20.0, 0.8**2),  # the same reason within half a minute
        ("a", "collision", 3, 60.0, 0.7**2),  # later
        ("a", "braking", -1, 25.0, 0.6**2),  # another reason
        ("b", "collision", 4, 12.0, 0.5**2),  # another video
        ("a", "braking", 1, 90.0, 0.45**2),  # the tube of the first one
    ]
    found = rank_moments(peaks(*rows), COUNTS, 1.0, config)
    assert dict(zip(found["moment"], found["worth"], strict=True)) == pytest.approx(
        {"a:100": 0.9, "a:200": 0.4, "a:600": 0.7, "a:250": 0.6, "b:120": 0.5, "a:900": 0.225}
    )
    assert found["rank"].to_list() == [1, 2, 3, 4, 5, 6]
    assert found["worth"].is_sorted(descending=True)
    # Whatever order the parts come in.
    turned = rank_moments(peaks(*rows[::-1]), COUNTS, 1.0, config)
    assert turned.equals(found)


def test_what_happens_at_every_corner_is_worth_less() -> None:
    config = TriageConfig(collision=1.0, alarm=1.0, usual_an_hour=4)
    rows = [(f"v{k}", "collision", 1, 5.0, 0.9 - 0.01 * k) for k in range(20)] + [
        ("w", "alarm", -1, 5.0, 0.5)
    ]
    found = rank_moments(peaks(*rows), COUNTS, 2.0, config)
    worth = dict(zip(found["video"], found["worth"], strict=True))
    # Nine values of two hours are usual; the n-th of twenty counts 9 / n, and its value beside that.
    assert [worth[f"v{k}"] for k in range(20)] == pytest.approx(
        [((0.9 - 0.01 * k) * min(1.0, 9 / (k + 1))) ** 0.5 for k in range(20)]
    )
    assert worth["w"] == pytest.approx(0.5**0.5)
    same = rank_moments(peaks(*[(f"v{k}", "collision", 1, 5.0, 0.8) for k in range(18)]), COUNTS, 2.0, config)
    assert same["worth"].to_list() == pytest.approx([(0.8 * 9 / 18) ** 0.5] * 18)


def test_a_label_is_rare_by_the_share_of_tubes_that_have_it() -> None:
    rows = pl.DataFrame(
        [dict.fromkeys(PEAKS) | {"video": "a", "reason": "rare", "tube": k, "value": 1.0, "kind": "event", "label": name}
         for k, name in enumerate(("one", "most", "none"))],
        schema=PEAKS,
    )  # fmt: skip
    parts = [
        ("event", "one", 1, 600),
        ("event", "most", 600, 600),
        ("event", "one", 0, 399),
        ("event", "most", 300, 399),
    ]
    counts = pl.DataFrame(parts, schema=dict(COUNTS.schema), orient="row")
    found = apply_prior(rows, counts)
    shares = [1.5 / 1000, 900.5 / 1000]
    assert found["value"].to_list() == pytest.approx([*(-np.log10(share) / 3 for share in shares), 0.0])
    assert "666" not in describe_peak(found.row(0, named=True))
    assert "667 tubes" in describe_peak(found.row(0, named=True))


def test_what_verdicts_teach_is_the_ridge_of_the_definition() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    rows = [
        (f"v{k}", str(rng.choice(["collision", "alarm", "braking"])), -1, 5.0, float(rng.uniform(0.1, 1)))
        for k in range(80)
    ]
    moments = rank_moments(peaks(*rows), COUNTS, 1.0)
    said = {row["moment"]: bool(rng.random() < row["alarm"] + 0.2) for row in moments.iter_rows(named=True)}
    learnt = learn_verdicts(moments, said)
    x = moments.select(list(REASONS)).to_numpy()
    y = np.array([said[name] for name in moments["moment"]])
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(x, y)
    assert list(learnt.weights.values()) == pytest.approx(peer.coef_[0].tolist(), abs=1e-4)
    assert learnt.offset == pytest.approx(float(peer.intercept_[0]), abs=1e-3)
    assert (learnt.yes, learnt.no) == (int(y.sum()), int((~y).sum()))
    assert learnt.weights["alarm"] > max(learnt.weights["braking"], learnt.weights["collision"])
    again = rank_moments(peaks(*rows), COUNTS, 1.0, learnt=learnt)
    assert set(again["moment"]) == set(moments["moment"])
    assert again["worth"].to_list() == pytest.approx(
        sorted(peer.predict_proba(x)[:, 1], reverse=True), abs=1e-4
    )


def test_too_few_verdicts_and_unknown_moments_are_refused() -> None:
    moments = rank_moments(peaks(*[(f"v{k}", "alarm", -1, 5.0, 0.5) for k in range(30)]), COUNTS, 1.0)
    said = {name: k < 9 for k, name in enumerate(moments["moment"])}
    with pytest.raises(UsageError, match="9 verdicts are yes and 21 no"):
        learn_verdicts(moments, said)
    with pytest.raises(UsageError, match="of no moment of these drives"):
        learn_verdicts(moments, {"elsewhere:1": True})


def test_weights_are_held_to_their_range(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("crossing: -1\n")
    with pytest.raises(UsageError, match=r"mine\.yaml: crossing should lie in 0 to 1, not -1"):
        read_weights(tmp_path / "mine.yaml")
    with pytest.raises(UsageError, match="collision should lie in 0 to 1"):
        TriageConfig(collision=1.5)
    with pytest.raises(UsageError, match="every reason weighs 0"):
        TriageConfig(**dict.fromkeys(REASONS, 0.0))


def test_drives_are_read_of_tables() -> None:
    """Speed of what was measured and of poses, agents of labels, a camera that looks down, things of no common class."""
    frames = pl.DataFrame(
        {"video": ["a"] * 3, "frame": [0, 1, 2], "t_s": [0.0, 0.5, 1.0], "ego_speed_kmh": [36.0, 18.0, None]}
    )
    pitch = np.radians(5)
    pose = np.array(
        [
            [0, -np.sin(pitch), np.cos(pitch), 1.0],
            [-1, 0, 0, 0],
            [0, -np.cos(pitch), -np.sin(pitch), 1.6],
            [0, 0, 0, 1],
        ]
    )
    sensors = pl.DataFrame(
        {
            "scene": ["s"],
            "sensor": ["camera"],
            "from_frame": [0],
            "intrinsics": [[500.0, 0, 320, 0, 500, 240, 0, 0, 1]],
            "ego_SE3_sensor": [pose.ravel().tolist()],
        }
    )
    boxes = pl.DataFrame(
        {
            "box": [7, 8],
            "video": ["a", "a"],
            "frame": [0, 1],
            "tube": [3, None],
            "x1_px": [1.0, 2],
            "y1_px": [1.0, 2],
            "x2_px": [5.0, 6],
            "y2_px": [9.0, 8],
            "corner_case": [False, True],
        }
    )
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["a"], "scene": ["s"], "width_px": [640], "height_px": [480]}),
        frames=frames,
        boxes=boxes,
        tubes=pl.DataFrame({"tube": [3], "video": ["a"]}),
        labels=pl.DataFrame({"box": [7], "kind": ["object"], "label": [1]}),
        sensors=sensors,
        meta=Meta(vocabularies={"object": ("car", "pedestrian")}),
    )
    (found,) = build_drives(scenes)
    assert found.speed_mps[:2].tolist() == [10.0, 5.0]
    assert np.isnan(found.speed_mps[2])
    assert dict(zip(found.boxes["tube"], found.boxes["agent"], strict=True)) == {3: "Ped", -1: ""}
    assert found.unknown.tolist() == [1.0, 0.0]
    assert (found.focal_px, found.camera_m) == (500.0, pytest.approx(1.6))
    assert found.horizon_px == pytest.approx(240 - 500 * np.tan(pitch))
    moved = [np.eye(4).ravel().tolist(), np.eye(4).ravel().tolist(), np.eye(4).ravel().tolist()]
    moved[1][3], moved[2][3] = 2.0, 5.0
    posed = scenes.with_tables(
        frames=frames.drop("ego_speed_kmh").with_columns(world_SE3_ego=pl.Series(moved))
    )
    assert next(build_drives(posed)).speed_mps.tolist() == pytest.approx([np.nan, 4.0, 6.0], nan_ok=True)


def test_speed_and_turn_are_those_of_the_images_where_nobody_measured_them(tmp_path: Path) -> None:
    """Each frame has what the images of the last 0.2 s until then showed; unknown where they showed nothing."""
    n = 5
    frames = pl.DataFrame({"video": ["a"] * n, "frame": range(n), "t_s": np.arange(n) * 0.1})
    videos = pl.DataFrame({"video": ["a"], "width_px": [640], "height_px": [480]})
    pl.DataFrame({"t_s": [0.0, 0.2, 0.4], "standing": [None, 0.1, 0.9]}).write_parquet(tmp_path / STANDING)
    (bare,) = build_drives(Scenes(videos=videos, frames=frames), tmp_path)
    assert np.isnan(bare.speed_mps).all()
    moved = {"t_s": [0.0, 0.2, 0.4], "speed_mps": [None, 7.0, None], "yaw_rate_radps": [None, 0.1, None]}
    pl.DataFrame(moved).write_parquet(tmp_path / SPEED)
    (drive,) = build_drives(Scenes(videos=videos, frames=frames), tmp_path)
    nan = np.nan
    assert drive.standing.tolist() == pytest.approx([nan, nan, 0.1, 0.1, 0.9], nan_ok=True)
    assert drive.speed_mps.tolist() == pytest.approx([nan, nan, 7.0, 7.0, nan], nan_ok=True)
    assert drive.yaw_rps.tolist() == pytest.approx([nan, nan, 0.1, 0.1, nan], nan_ok=True)
    measured = frames.with_columns(ego_speed_kmh=pl.Series([36.0, None, 36.0, None, None]))
    (drive,) = build_drives(Scenes(videos=videos, frames=measured), tmp_path)
    assert drive.speed_mps.tolist() == pytest.approx([10.0, nan, 10.0, 7.0, nan], nan_ok=True)


def test_weak_boxes_of_a_detector_do_not_count() -> None:
    boxes = pl.DataFrame(
        {
            "box": [0, 1, 2],
            "video": ["a"] * 3,
            "frame": [0, 0, 1],
            **{name: [1.0 + k] * 3 for k, name in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))},
            "score": [0.1, 0.2, 0.9],
        }
    )
    (found,) = build_drives(Predictions(videos=pl.DataFrame({"video": ["a"]}), boxes=boxes))
    assert found.boxes["score"].to_list() == pytest.approx([0.5, 1.0])


def test_what_a_linker_put_into_a_gap_does_not_count() -> None:
    boxes = pl.DataFrame(
        {
            "box": [0, 1, 2],
            "video": ["a"] * 3,
            "frame": [0, 1, 2],
            "tube": [4] * 3,
            **{name: [1.0 + k] * 3 for k, name in enumerate(("x1_px", "y1_px", "x2_px", "y2_px"))},
            "interpolated": [False, True, None],
        }
    )
    (found,) = build_drives(Predictions(videos=pl.DataFrame({"video": ["a"]}), boxes=boxes))
    assert found.boxes["frame"].to_list() == [0, 2]


def test_a_million_million_frames_that_no_table_lists_are_not_gone_through() -> None:
    videos = pl.DataFrame({"video": ["one"], "n_frames": [10**12]})
    with pytest.raises(InputError, match="one: 1,000,000,000,000 frames are said of it and none is listed"):
        next(build_drives(Scenes(videos=videos)))
