"""Traffic, appearance and behaviour: flags of frames and boxes, and those that are refused."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from short_walks import BOX_ROWS, FRAMES, OBSERVED, TRACKS, T, walks

from roadaware.errors import InputError, UsageError
from roadaware.tasks.crossing_inputs import build_inputs
from roadaware.tasks.crossing_inputs.facts import FLAGS, TRAFFIC_COLUMNS

LIGHTS = ["n/a", "red", None, "green", "yellow"] * 4
CROSSING = [k % 3 == 0 if k != 5 else None for k in range(2 * FRAMES)]
TAGGED = (0, 2)


def taken(scenes: object, name: str, **options: object) -> np.ndarray:
    return build_inputs(scenes, "train", [name], **options).take(np.arange(len(OBSERVED)))[name]


def tags(**changes: object) -> dict[str, object]:
    walking = ["walking" if frame % 2 else "standing" for _, frame in BOX_ROWS]
    held = {
        "action": [w if tube in TAGGED else None for w, (tube, _) in zip(walking, BOX_ROWS, strict=True)],
        "look": ["looking" if tube in TAGGED else None for tube, _ in BOX_ROWS],
    }
    return {**held, **changes}


def test_traffic_tells_flags_light_and_road_of_each_frame() -> None:
    scenes = walks(
        frames={"ped_crossing": CROSSING, "stop_sign": [True] * 20, "traffic_light": LIGHTS},
        videos={"road_type": ["garage", None]},
    )
    found = taken(scenes, "traffic")
    assert found.shape == (4, T, len(TRAFFIC_COLUMNS))
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        for k, frame in enumerate(frames):
            moment = frame + FRAMES * (TRACKS[tube][0] == "b")
            told = dict(zip(TRAFFIC_COLUMNS, found[row, k].tolist(), strict=True))
            crossing = CROSSING[moment]
            np.testing.assert_equal(told["ped_crossing"], np.nan if crossing is None else float(crossing))
            assert np.isnan(told["ped_sign"])
            assert told["stop_sign"] == 1
            for light in ("n/a", "red", "yellow", "green"):
                assert told[f"light_{light}"] == (LIGHTS[moment] == light)
            assert told["road_garage"] == (TRACKS[tube][0] == "a")
            assert told["road_street"] == 0


def test_scenes_without_traffic_are_refused() -> None:
    with pytest.raises(InputError, match=r"traffic reads .* these scenes tell none"):
        build_inputs(walks(), "train", ["traffic"])
    with pytest.raises(InputError, match="these scenes tell none"):
        build_inputs(
            walks(frames={"ped_sign": pl.Series([None] * 20, dtype=pl.Boolean)}), "train", ["traffic"]
        )


def test_appearance_needs_all_flags_and_gives_them_in_order() -> None:
    flags = {name: [(k + tube + frame) % 2 == 0 for tube, frame in BOX_ROWS] for k, name in enumerate(FLAGS)}
    flags["cap"] = pl.Series([None] * len(BOX_ROWS), dtype=pl.Boolean)
    found = taken(walks(boxes=flags), "appearance")
    assert found.shape == (4, T, 24)
    assert np.isnan(found[..., FLAGS.index("cap")]).all()
    assert found[0, 2, 0] == 1
    assert found[0, 2, 1] == 0
    del flags["umbrella"]
    with pytest.raises(InputError, match=r"lack umbrella\n.*appearance=True"):
        build_inputs(walks(boxes=flags), "train", ["appearance"])


def test_behaviour_is_refused_with_how_much_it_would_tell() -> None:
    # Samples 10, 11 (crossing) and 13 are tagged, 12 is not: AUC = 1 - 1/2 * 1/2.
    with pytest.raises(UsageError, match=r"refused.*tells 'crossing' with AUC 0\.750 by itself.*leaks=True"):
        build_inputs(walks(boxes=tags()), "train", ["behaviour"])


def test_behaviour_asked_for_by_name_says_what_is_tagged_and_never_who_crosses() -> None:
    found = taken(walks(boxes=tags(cross=["crossing"] * len(BOX_ROWS))), "behaviour", leaks=True)
    assert found.shape == (4, T, 3)
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        for k, frame in enumerate(frames):
            tagged = tube in TAGGED
            expected = [frame % 2, 1, 1] if tagged else [np.nan, np.nan, 0]
            np.testing.assert_equal(found[row, k].tolist(), [float(v) for v in expected])


def test_behaviour_without_answers_is_refused_all_the_same() -> None:
    scenes = walks(boxes=tags())
    blind = scenes.with_tables(samples=scenes.samples.with_columns(label=pl.lit(None, dtype=pl.Int64)))
    with pytest.raises(UsageError, match="cannot be measured without answers"):
        build_inputs(blind, "train", ["behaviour"])
    with pytest.raises(InputError, match="no action and no look"):
        build_inputs(walks(), "train", ["behaviour"], leaks=True)
