"""Graph models: converted, they give what a plain interpreter gives; damaged and odd ones are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from plain_graph_model import HEAT, PICTURE, SIDES, Maker, run_plain, tiny_centernet

from roadaware.errors import DamagedError, InputError, UsageError
from roadaware.models.catalogue.entries import COCO
from roadaware.models.graphs.graph import INPUT, Graph, Step, convert, keep_channels, parse_graph
from roadaware.models.graphs.runner import (
    Backend,
    Runner,
    _find_hard_swishes,
    has_onnx,
    is_graph_file,
    open_graph,
    save_graph,
)
from roadaware.models.graphs.street import StreetDetector, merge_tile_boxes, open_street
from roadaware.models.graphs.views import Views, find_peaks, resize_region
from roadaware.models.loading import open_stream, open_videos
from roadaware.models.object_labels import ROAD_AGENTS
from roadaware.models.retinanet3d.config import DetectRule

torch.set_num_threads(1)
OUTPUTS = {"heat": HEAT, "sides": SIDES}
BACKENDS: list[Backend] = ["torch", *(["onnx"] if has_onnx() else [])]  # type: ignore[list-item]


def _graph(maker: Maker | None = None) -> Graph:
    model, shards = (maker or tiny_centernet()).files()
    return convert(model, shards, PICTURE, OUTPUTS, "tiny.json")


def _picture(height: int, width: int) -> Any:
    return np.random.default_rng(1).uniform(0, 255, (height, width, 3)).astype(np.float32)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [(64, 64), (96, 160)])
def test_a_converted_graph_gives_what_the_plain_interpreter_gives(
    backend: Backend, size: tuple[int, int]
) -> None:
    maker = tiny_centernet()
    picture = _picture(*size)
    wanted = run_plain(*maker.files(), picture, [HEAT, SIDES])
    found = Runner(_graph(maker), backend=backend).run(picture.transpose(2, 0, 1)[None].copy())
    for name, truth in zip(("heat", "sides"), wanted, strict=True):
        got = found[name][0].transpose(1, 2, 0)
        assert got.shape == truth.shape
        assert np.abs(got - truth).max() <= 1e-5 * max(1, np.abs(truth).max())


def _hard_swish(scale: float, *, kept: bool) -> Graph:
    """x · scale · relu6(x + 3) of four channels; where the sum is `kept`, it is an output as well."""
    rng = np.random.default_rng(0)
    weights = {
        "kernel": rng.normal(size=(4, 3, 1, 1)).astype(np.float32) / 100,
        "three": np.array(3, np.float32),
        "scale": np.array(scale, np.float32),
    }
    plain = {"stride": 1, "dilation": 1, "groups": 1, "pad": True, "then": "none"}
    steps = (
        Step("conv", "x", (INPUT, "kernel"), plain),
        Step("add", "sum", ("x", "three")),
        Step("relu6", "gate", ("sum",)),
        Step("mul", "scaled", ("scale", "x")),
        Step("mul", "y", ("scaled", "gate")),
    )
    return Graph(steps, weights, {"heat": "y", **({"sides": "sum"} if kept else {})})


@pytest.mark.skipif(not has_onnx(), reason="ONNX Runtime is not installed")
@pytest.mark.parametrize(
    ("scale", "kept", "joined"), [(1 / 6, False, 1), (1 / 6, True, 0), (-1 / 6, False, 0)]
)
def test_a_hard_swish_is_joined_where_nothing_else_needs_its_parts(
    scale: float, kept: bool, joined: int
) -> None:
    graph = _hard_swish(scale, kept=kept)
    assert sum(swish is not None for swish in _find_hard_swishes(graph).values()) == joined
    picture = _picture(32, 64).transpose(2, 0, 1)[None].copy()
    wanted, found = (Runner(graph, backend=each).run(picture) for each in ("torch", "onnx"))
    for name, values in wanted.items():
        assert np.abs(found[name] - values).max() <= 2e-6 * np.abs(values).max()


def test_a_file_holds_the_graph_to_the_bit_in_half_the_room(tmp_path: Path) -> None:
    graph = _graph()
    save_graph(tmp_path / "a.safetensors", graph, {"decoder": "centernet", "classes": list(COCO)})
    opened, facts = open_graph(tmp_path / "a.safetensors")
    assert opened.as_plain() == graph.as_plain()
    assert facts["classes"] == list(COCO)
    assert all(np.array_equal(opened.weights[name], graph.weights[name]) for name in graph.weights)
    numbers = sum(each.size for each in graph.weights.values())
    assert (tmp_path / "a.safetensors").stat().st_size < 2 * numbers + 20_000
    assert is_graph_file(tmp_path / "a.safetensors")
    assert not is_graph_file(tmp_path)


def test_only_the_channels_that_are_asked_for_are_computed() -> None:
    graph = _graph()
    rows = [9, 0, 2]
    picture = _picture(64, 64).transpose(2, 0, 1)[None].copy()
    whole, part = (
        Runner(each, backend="torch").run(picture) for each in (graph, keep_channels(graph, "heat", rows))
    )
    assert np.allclose(part["heat"], whole["heat"][:, rows], atol=1e-6)
    assert np.array_equal(part["sides"], whole["sides"])
    with pytest.raises(DamagedError, match="no convolution"):
        keep_channels(
            Graph(graph.steps, graph.weights, {"x": "s0", **graph.outputs, "y": _step(graph, "concat")}),
            "y",
            [0],
        )


@pytest.mark.parametrize("backend", BACKENDS)
def test_any_name_of_a_step_or_weight_will_do(backend: Backend) -> None:
    graph = _graph()
    odd = {step.name: f"step {n}" for n, step in enumerate(graph.steps[::-1])}
    odd |= {name: f"weight {n}/scales" for n, name in enumerate(graph.weights)}
    odd |= {graph.outputs["heat"]: "sides", graph.outputs["sides"]: "heat", INPUT: INPUT}
    steps = [replace(s, name=odd[s.name], inputs=tuple(odd[name] for name in s.inputs)) for s in graph.steps]
    weights = {odd[name]: array for name, array in graph.weights.items()}
    renamed = Graph(tuple(steps), weights, {what: odd[name] for what, name in graph.outputs.items()})
    picture = _picture(64, 64).transpose(2, 0, 1)[None].copy()
    found, wanted = (Runner(each, backend=backend).run(picture) for each in (renamed, graph))
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


@pytest.mark.parametrize("what", [INPUT, "", "step 1", "a/b"])
def test_an_output_has_a_name_of_its_own(what: str) -> None:
    graph = _graph()
    with pytest.raises(DamagedError, match="cannot be called"):
        Graph(graph.steps, graph.weights, {**graph.outputs, what: graph.outputs["heat"]})


def _step(graph: Graph, op: str) -> str:
    return next(step.name for step in graph.steps if step.op == op)


def _cut(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    shards["net.bin"] = shards["net.bin"][:-3]


def _longer(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    shards["net.bin"] += b"0123"


def _no_number(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    shards["net.bin"] = b"\xff\x7f" + shards["net.bin"][2:]


def _no_shard(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    said["weightsManifest"][0]["paths"] = ["../../etc/passwd"]


def _odd_size(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    said["weightsManifest"][0]["weights"][0]["shape"] = [1 << 40, 1 << 40]


def _node(said: dict[str, Any], op: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in said["modelTopology"]["node"] if each["op"] == op)
    return found


def _unknown(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    _node(said, "Relu")["op"] = "PyFunc"


def _circle(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    _node(said, "Relu")["input"] = ["sigmoid"]


def _own_input(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    _node(said, "Relu")["input"] = ["relu"]


def _gone(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    _node(said, "Relu")["input"] = ["nowhere"]


def _other_channels(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    _node(said, "Relu")["input"] = ["gated"]


def _no_words(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    _node(said, "_FusedConv2D")["attr"]["padding"] = {"s": "%%%"}


def _no_nodes(said: dict[str, Any], shards: dict[str, bytes]) -> None:
    said["modelTopology"] = []


@pytest.mark.parametrize(
    "change",
    [_cut, _longer, _no_number, _no_shard, _odd_size, _unknown, _circle, _own_input, _gone, _other_channels,
     _no_words, _no_nodes],
)  # fmt: skip
def test_damaged_and_odd_models_are_refused_in_words(change: Callable[..., None]) -> None:
    model, shards = tiny_centernet().files()
    said = json.loads(model)
    change(said, shards)
    with pytest.raises(InputError):
        convert(json.dumps(said).encode(), shards, PICTURE, OUTPUTS, "tiny.json")


def test_a_file_that_is_no_json_is_refused() -> None:
    for data in (b"", b"\xff", b"[1]", b'{"a":', b"[" * 100_000):
        with pytest.raises(InputError):
            convert(data, {}, PICTURE, OUTPUTS, "tiny.json")


@pytest.mark.parametrize(
    ("field", "value"),
    [("op", "loop"), ("stride", 0), ("stride", 10**9), ("groups", 7), ("groups", "1"), ("pad", 1),
     ("then", "tanh"), ("dilation", -1), ("inputs", []), ("inputs", ["picture"]), ("inputs", ["s99", "w0"]),
     ("name", "picture")],
)  # fmt: skip
def test_steps_that_cannot_be_run_are_refused_before_they_are(field: str, value: Any) -> None:
    graph = _graph()
    plain = graph.as_plain()
    assert plain["steps"][0]["op"] == "conv"
    plain["steps"][0][field] = value
    with pytest.raises(DamagedError):
        parse_graph(plain, graph.weights, "x")


def test_graphs_that_are_no_graphs_are_refused() -> None:
    for plain in (
        None,
        [],
        {},
        {"steps": 3, "outputs": {}},
        {"steps": [], "outputs": {}},
        {"steps": [{}], "outputs": {}},
    ):
        with pytest.raises(DamagedError):
            parse_graph(plain, {}, "x")
    doubled = [Step("concat", f"s{n}", (f"s{n - 1}", f"s{n - 1}") if n else ("picture",)) for n in range(40)]
    with pytest.raises(DamagedError, match="channels"):
        Graph(tuple(doubled), {}, {"x": "s39"})
    with pytest.raises(DamagedError, match="more than"):
        Graph((Step("relu", "s", ("picture",)),) * 6000, {}, {"x": "s"})


def test_peaks_are_boxes_around_their_centres() -> None:
    heat = np.zeros((2, 4, 5), np.float32)
    heat[0, 1, 2], heat[0, 1, 3], heat[1, 1, 2], heat[1, 3, 0] = 0.9, 0.5, 0.3, 0.4
    sides = np.zeros((4, 4, 5), np.float32)
    sides[:, 1, 2], sides[:, 3, 0] = (1, 2, 3, 4), (0, 5, 6, 0)
    boxes, scores = find_peaks(heat, sides, 0.05, 4)
    assert boxes.tolist() == [[7, 2, 11, 8], [0, 7, 6, 12]]
    assert np.allclose(scores, [[0.9, 0.3], [0, 0.4]])
    assert len(find_peaks(heat, sides, 0.95, 4)[0]) == 0
    sides[0, 1, 2] = -4
    assert find_peaks(heat, sides, 0.05, 4)[0].tolist() == [[0, 7, 6, 12]]


def _scores(agent: str, value: float) -> Any:
    found = np.zeros((1, len(ROAD_AGENTS)), np.float32)
    found[0, ROAD_AGENTS.index(agent)] = value
    return found


def _boxes(*box: float) -> Any:
    return np.array([box], np.float32)


def test_a_box_that_a_tile_cuts_off_is_left_to_the_whole_picture() -> None:
    regions = [(0, 0, 100, 60), (0, 15, 50, 45)]
    whole, part = _boxes(40, 20, 70, 40), _boxes(40, 20, 49.9, 40)
    boxes, _ = merge_tile_boxes(
        [whole, part], [_scores("Car", 0.5), _scores("Car", 0.9)], regions, DetectRule()
    )
    assert boxes.tolist() == whole.tolist()
    at_the_edge = _boxes(0, 20, 20, 40)  # of the image itself
    boxes, _ = merge_tile_boxes(
        [whole[:0], at_the_edge], [_scores("Car", 1)[:0], _scores("Car", 0.9)], regions, DetectRule()
    )
    assert boxes.tolist() == at_the_edge.tolist()


def test_agents_of_one_kind_suppress_each_other_and_no_others() -> None:
    box, regions = _boxes(10, 10, 50, 50), [(0, 0, 100, 100)]
    both, values = (
        np.concatenate([box, box + 1]),
        np.concatenate([_scores("Car", 0.5), _scores("LarVeh", 0.6)]),
    )
    found, scores = merge_tile_boxes([both], [values], regions, DetectRule())
    assert len(found) == 1
    assert scores.argmax() == ROAD_AGENTS.index("LarVeh")
    values = np.concatenate([_scores("Car", 0.5), _scores("Ped", 0.6)])
    assert len(merge_tile_boxes([both], [values], regions, DetectRule())[0]) == 2


class _Maps:
    """Answers of a network that always finds one class at one place of what it is shown."""

    def __init__(self, place: tuple[int, int], half: float, row: int) -> None:
        self.place, self.half, self.row = place, half, row
        self.shown: list[tuple[int, ...]] = []

    def run(self, pictures: Any) -> dict[str, Any]:
        self.shown.append(pictures.shape)
        height, width = (n // 4 for n in pictures.shape[2:])
        heat = np.zeros((1, 7, height, width), np.float32)
        heat[0, self.row, self.place[1], self.place[0]] = 0.8
        return {"heat": heat, "sides": np.full((1, 4, height, width), self.half, np.float32)}


def _detector(views: Views, **fields: Any) -> StreetDetector:
    return StreetDetector(_graph(), COCO, views, **fields)


@pytest.mark.parametrize(
    ("height", "width", "shown"), [(180, 320, (96, 128)), (320, 180, (128, 96)), (64, 64, (128, 128))]
)
def test_boxes_come_back_in_pixels_of_the_picture_whatever_its_shape(
    height: int, width: int, shown: Any
) -> None:
    detector = _detector(Views(128))
    detector.runner = maps = _Maps((8, 4), 8, 2)  # type: ignore[assignment]
    (found,) = detector.step(np.zeros((height, width, 3), np.uint8))
    assert maps.shown == [(1, 3, *shown)]
    scale = 128 / max(height, width)
    assert np.allclose(found.boxes, [[24 / scale, 8 / scale, 40 / scale, 24 / scale]], atol=1e-3)
    assert ROAD_AGENTS[found.scores.argmax()] == "Car"
    assert found.agentness.tolist() == pytest.approx([0.8])


def test_tiles_are_looked_at_besides_the_whole() -> None:
    detector = _detector(Views(128, True))
    detector.runner = maps = _Maps((8, 4), 8, 2)  # type: ignore[assignment]
    (found,) = detector.step(np.zeros((360, 640, 3), np.uint8))
    assert len(maps.shown) == len(detector.views.regions(640, 360)) == 4
    assert len(found) == 4
    regions = Views(1024, True).regions(1000, 600)
    assert regions == [(0, 0, 1000, 600), *((left, 165, left + 450, 435) for left in (0, 275, 550))]
    assert [Views(1024, True).shown_px(place) for place in range(4)] == [1024, 640, 640, 640]


def test_a_part_that_a_tile_shows_is_not_another_vehicle() -> None:
    regions = [(0, 0, 100, 60), (0, 15, 50, 45)]
    whole, wheel = _boxes(10, 20, 40, 40), _boxes(12, 30, 20, 39)
    scores = [_scores("Car", 0.6), _scores("Car", 0.5)]
    assert merge_tile_boxes([whole, wheel], scores, regions, DetectRule())[0].tolist() == whole.tolist()
    assert (
        len(
            merge_tile_boxes(
                [whole, wheel], [_scores("Car", 0.6), _scores("Ped", 0.5)], regions, DetectRule()
            )[0]
        )
        == 2
    )
    assert (
        len(
            merge_tile_boxes(
                [wheel, whole], [_scores("Car", 0.5), _scores("Car", 0.6)], regions, DetectRule()
            )[0]
        )
        == 2
    )


def test_the_size_of_pictures_is_a_multiple_of_32() -> None:
    for size in (0, 100, 8192, -32):
        with pytest.raises(UsageError, match="multiple of 32"):
            Views(size)


def test_pictures_keep_their_shape() -> None:
    picture = np.zeros((90, 160, 3), np.uint8)
    picture[:, 80:] = 200
    found, scale = resize_region(picture, (0, 0, 160, 90), 128)
    assert found.shape == (3, 96, 128)
    assert scale == 0.8
    assert (found[:, 72:] == 114).all()
    assert found[0, 10, 10] == 0
    assert found[0, 10, 100] == 200


def test_both_backends_find_the_same(tmp_path: Path) -> None:
    if len(BACKENDS) < 2:
        pytest.skip("onnxruntime is not installed")
    save_graph(tmp_path / "a.safetensors", _graph(), {"decoder": "centernet", "classes": list(COCO)})
    picture = _picture(120, 200).astype(np.uint8)
    one, other = (
        open_street(tmp_path / "a.safetensors", Views(128), backend=each).step(picture)[0]
        for each in BACKENDS
    )
    assert len(one) == len(other) > 3
    assert np.allclose(one.boxes, other.boxes, atol=1e-2)
    assert np.allclose(one.scores, other.scores, atol=1e-5)


def test_a_street_detector_opens_wherever_detectors_do(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_graph(path, _graph(), {"decoder": "centernet", "classes": list(COCO)})
    for opened in (open_stream([path]), open_videos([path], views=Views(128))):
        assert isinstance(opened, StreetDetector)
        assert opened.single
    with pytest.raises(UsageError, match="takes no texts"):
        open_videos([path], texts=["tyre"])


def test_a_model_for_something_else_is_refused(tmp_path: Path) -> None:
    path, facts = tmp_path / "model.safetensors", {"decoder": "centernet", "classes": list(COCO)}
    save_graph(path, _graph(), {"decoder": "movenet", "task": "pose", "classes": []})
    with pytest.raises(InputError, match="a model for pose"):
        open_street(path)
    save_graph(path, _graph(), {**facts, "classes": ["sheep"] * 80})
    with pytest.raises(InputError, match="none of 80 classes"):
        open_street(path)
    for classes in (list(COCO[:5]), "car", None, [1] * 80):
        save_graph(path, _graph(), {**facts, "classes": classes})
        with pytest.raises(InputError):
            open_street(path)
    save_graph(path, _graph(), facts)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError):
        open_street(path)
