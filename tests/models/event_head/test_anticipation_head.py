"""What is expected of tubes: constant velocity against a plain fit, boxes there and back, the head in its file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from roadaware.errors import DamagedError, InputError
from roadaware.models.event_head.anticipation import (
    BOX,
    HORIZONS_S,
    PRESENT,
    AnticipationHead,
    ConstantVelocity,
    apply_shifts,
    decode_boxes,
    encode_boxes,
    extrapolate,
    measure_shifts,
    open_anticipation,
    save_anticipation,
)
from roadaware.models.event_head.head import FEATURES, SmallNetwork

MEMORY_S, RIDGE_S2 = 0.35, 0.05**2


def plain_speed(times, places, memory_s=MEMORY_S):
    """Slope of a line through fading past places, by weighted least squares over all of them."""
    t = np.array(times) - times[-1]
    w = np.exp(t / memory_s)
    y = np.array(places)
    n, st, stt = w.sum(), (w * t).sum(), (w * t * t).sum()
    sy, sty = w @ y, (w * t) @ y
    return (n * sty - st * sy) / (n * stt - st**2 + RIDGE_S2 * n**2)


def test_velocities_are_those_of_a_plain_fit_whatever_comes_and_goes() -> None:
    rng = np.random.default_rng(0)
    velocity = ConstantVelocity()
    past: dict[int, tuple[list[float], list[np.ndarray]]] = {}
    t_s = 0.0
    for _ in range(60):
        t_s += float(rng.uniform(0.02, 0.2))
        numbers = np.sort(rng.choice(25, int(rng.integers(0, 20)), replace=False))
        start = rng.uniform(0, 400, (len(numbers), 2))
        boxes = np.hstack([start, start + rng.uniform(5, 90, start.shape)])
        over = [n for n in past if n not in numbers and rng.random() < 0.2]
        velocity.end(over)
        for n in over:
            del past[n]
        now, speed = velocity.step(t_s, numbers, boxes)
        np.testing.assert_allclose(now, encode_boxes(boxes))
        for k, n in enumerate(numbers.tolist()):
            times, places = past.setdefault(n, ([], []))
            times.append(t_s)
            places.append(now[k])
            np.testing.assert_allclose(speed[k], plain_speed(times, places), rtol=1e-6, atol=1e-6)


def test_a_tube_that_moves_evenly_is_met_ahead() -> None:
    velocity = ConstantVelocity()
    for k in range(30):
        left = 10.0 + 40.0 * k / 10
        now, speed = velocity.step(k / 10, np.array([3]), np.array([[left, 50.0, left + 20, 90.0]]))
    boxes = decode_boxes(extrapolate(now, speed))[0]
    expected = 10 + 40 * (2.9 + np.array(HORIZONS_S))
    # The ridge keeps a hundredth of the speed back.
    np.testing.assert_allclose(boxes[:, 0], expected, atol=2.5)
    np.testing.assert_allclose(boxes[:, 3] - boxes[:, 1], 40, atol=1e-6)


def test_one_box_stands_still_and_the_cost_does_not_grow() -> None:
    velocity = ConstantVelocity()
    _, speed = velocity.step(1.0, np.array([7]), np.array([[0.0, 0.0, 10.0, 10.0]]))
    assert np.abs(speed).max() == 0
    for k in range(300):
        velocity.end([7 + k])
        velocity.step(2.0 + k, np.array([8 + k]), np.array([[0.0, 0.0, 10.0, 10.0]]))
    assert len(velocity._sums) == 16
    empty, none = velocity.step(1e3, np.zeros(0, np.int64), np.zeros((0, 4)))
    assert empty.shape == none.shape == (0, 4)


def test_shifts_bring_places_to_the_true_ones() -> None:
    rng = np.random.default_rng(1)
    now = encode_boxes(np.array([[10.0, 20.0, 50.0, 90.0], [0.0, 0.0, 30.0, 30.0]]))
    places = now[:, None] + rng.normal(0, 0.2, (2, 4, 4))
    true = now[:, None] + rng.normal(0, 0.3, (2, 4, 4))
    np.testing.assert_allclose(apply_shifts(places, now, measure_shifts(places, now, true)), true)
    boxes = decode_boxes(true)
    np.testing.assert_allclose(encode_boxes(boxes.reshape(-1, 4)).reshape(true.shape), true)
    far = measure_shifts(places, now, true + 1e6)
    assert np.abs(far).max() == 4


def make_head(rng: np.random.Generator) -> AnticipationHead:
    actions, locations = ("Mov", "Stop"), ("Pav", "Jun", "VehLane")
    inputs = len(FEATURES) + 5
    outputs = len(HORIZONS_S) * (PRESENT + 5 + BOX)
    layers = (
        (rng.normal(0, 0.1, (inputs, 7)).astype(np.float32), np.zeros(7, np.float32)),
        (rng.normal(0, 0.1, (7, outputs)).astype(np.float32), np.zeros(outputs, np.float32)),
    )
    network = SmallNetwork(
        np.zeros(inputs, np.float32),
        np.ones(inputs, np.float32),
        (layers,),
        np.ones(outputs, np.float32),
        np.zeros(outputs, np.float32),
    )
    return AnticipationHead(actions, locations, HORIZONS_S, network, {"scenes": 3})


def test_a_head_is_the_same_from_its_file_and_begins_with_what_holds_now(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    head = make_head(rng)
    save_anticipation(head, tmp_path / "head.safetensors")
    again = open_anticipation(tmp_path / "head.safetensors")
    assert again.facts == {"scenes": 3}
    x = rng.normal(size=(6, len(FEATURES)))
    logits = rng.normal(size=(6, 5)).astype(np.float32)
    boxes = np.sort(rng.uniform(0, 300, (6, 2, 2)), axis=1).reshape(6, 4)
    now, speed = encode_boxes(boxes), rng.normal(size=(6, 4))
    one, two = (each.anticipate(x, logits, now, speed) for each in (head, again))
    for name in ("present", "actions", "locations", "boxes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.actions.shape == (6, 4, 2)
    assert one.boxes.shape == (6, 4, 4)
    ((first, (weight, bias)),) = head.network.layers
    silent = replace(head, network=replace(head.network, layers=((first, (0 * weight, bias)),)))
    still = silent.anticipate(x, logits, now, speed)
    held = 1 / (1 + np.exp(-logits))
    np.testing.assert_allclose(still.actions[:, 2], held[:, :2], rtol=1e-5)
    np.testing.assert_allclose(still.boxes, decode_boxes(extrapolate(now, speed)))


def test_one_horizon_alone_says_what_all_say_of_it() -> None:
    rng = np.random.default_rng(4)
    head = make_head(rng)
    head = replace(
        head, network=replace(head.network, slope=rng.uniform(0.5, 2, len(head.network.slope)).astype("f4"))
    )
    boxes = np.sort(rng.uniform(0, 300, (5, 2, 2)), axis=1).reshape(5, 4)
    inputs = (
        rng.normal(size=(5, len(FEATURES))),
        rng.normal(size=(5, 5)).astype(np.float32),
        encode_boxes(boxes),
    )
    speed = rng.normal(size=(5, 4))
    every = head.anticipate(*inputs, speed)
    for k, horizon_s in enumerate(HORIZONS_S):
        one = head.select_horizon(horizon_s).anticipate(*inputs, speed)
        for name in ("present", "actions", "locations", "boxes"):
            np.testing.assert_allclose(getattr(one, name)[:, 0], getattr(every, name)[:, k], rtol=1e-6)
    with pytest.raises(ValueError, match="not in tuple"):
        head.select_horizon(0.7)


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        open_anticipation(tmp_path / "none.safetensors")
    path = tmp_path / "head.safetensors"
    save_anticipation(make_head(np.random.default_rng(3)), path)
    data = path.read_bytes()
    for damaged in (
        data[:100],
        data[: len(data) // 2],
        b"",
        data.replace(b"anticipation-1", b"anticipation-9"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DamagedError):
            open_anticipation(path)
