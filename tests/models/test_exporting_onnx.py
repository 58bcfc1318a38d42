"""Networks as ONNX files: they answer as PyTorch does, on clips and on streams, or are not written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")

from roadaware.cli import main
from roadaware.errors import FindingsError, UsageError
from roadaware.models import exporting
from roadaware.models.exporting import export, find_stream_obstacle
from roadaware.models.retinanet3d import default
from roadaware.models.retinanet3d.config import DetectRule
from roadaware.models.retinanet3d.detector import Fit, StreamDetector
from roadaware.models.retinanet3d.network import RetinaNet3D
from roadaware.models.weights import save_detector

torch.set_num_threads(1)
KINDS = {"agent": ("car", "bus"), "action": ("stop",)}
AV = ("still", "moving")
FACTS = {"kinds": {kind: list(names) for kind, names in KINDS.items()}, "av_labels": list(AV)}


def _network(**fields: Any) -> RetinaNet3D:
    torch.manual_seed(0)
    tiny = {
        "base_width": 8,
        "blocks": (1, 1, 1, 1),
        "stage_widths": (8, 8, 8, 8),
        "stage_blocks": (1, 1, 1, 1),
        "width": 8,
        "head_layers": 0,
        "anchor_scales": (1.0,),
        "anchor_sizes_px": (16.0,),
        "short_side_px": 64,
    }
    network = RetinaNet3D(default(**{**tiny, **fields}), 4, 2).eval()
    for head in (network.cls_heads, network.reg_heads):
        for parameter in head.parameters():
            torch.nn.init.normal_(parameter, std=0.15)
    return network


def _opened(path: Path) -> tuple[Any, dict[str, Any]]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session, json.loads(session.get_modelmeta().custom_metadata_map["roadaware"])


@pytest.mark.slow
def test_a_stream_keeps_its_memories_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frame by frame it says what the detector of the stream says, and the file says how it is used."""
    network, path = _network(backbone="compact", causal=True), tmp_path / "model.onnx"
    made: list[Any] = []
    convert = exporting._convert_to_onnx
    monkeypatch.setattr(exporting, "_convert_to_onnx", lambda *args: made.append(convert(*args)) or made[0])
    monkeypatch.setattr(exporting, "TOLERANCE", -1.0)
    with pytest.raises(FindingsError, match="nothing was written"):
        export(network, FACTS, path, form="stream", picture_px=(80, 60))
    assert not path.exists()
    monkeypatch.undo()
    monkeypatch.setattr(exporting, "_convert_to_onnx", lambda *args: made[0])
    done = export(network, FACTS, path, form="stream", picture_px=(80, 60))
    assert done.difference < 1e-4
    assert done.n_bytes == path.stat().st_size

    session, told = _opened(path)
    assert (told["kinds"], told["av_labels"], told["form"]) == (FACTS["kinds"], list(AV), "stream")
    assert list(told["kinds"]) == list(KINDS)
    assert (told["fitted_px"], told["padded_px"]) == ([85, 64], [96, 64])
    assert told["normalisation"]["mean"] == list(network.config.mean)
    assert told["memories"] == [name for name in done.inputs if name != "pictures"] != []
    held = {name: np.zeros(done.inputs[name], np.float32) for name in told["memories"]}
    rule = DetectRule(min_agentness=0, nms_iou=None, top=1)
    detector, fit = StreamDetector(network, KINDS, AV, rule), Fit.of(network.config)
    for picture in np.random.default_rng(0).integers(0, 255, (4, 60, 80, 3), dtype=np.uint8):
        x = fit.fit(picture)[0].numpy()[None, :, None]
        found = dict(zip(done.outputs, session.run(list(done.outputs), {"pictures": x, **held}), strict=True))
        held = {name: found[f"next_{name}"] for name in held}
        (wanted,) = detector.step(picture)
        best = found["scores"][0, 0, :, 0].argmax()
        np.testing.assert_allclose(found["scores"][0, 0, best, 1:], wanted.scores[0], atol=1e-4)
        np.testing.assert_allclose(found["av"][0, 0], wanted.av, atol=1e-4)
        box = fit.back(torch.from_numpy(found["boxes"][0, 0, best]), 60, 80)
        np.testing.assert_allclose(box, wanted.boxes[0], atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["i3d", "c2d", "slowfast", "rclstm", "rcgru"])
def test_clips_of_every_backbone_are_written(tmp_path: Path, backbone: str) -> None:
    network, path = _network(backbone=backbone, anchor_sizes_px=(16.0, 32.0)), tmp_path / "model.onnx"
    done = export(network, FACTS, path, form="clip", frames=4, picture_px=(64, 64))
    assert done.inputs == {"pictures": (1, 3, 4, 64, 64)}
    assert done.outputs["scores"] == (1, 4, 3 * 80, 4)
    x = torch.randn(1, 3, 4, 64, 64)
    session, told = _opened(path)
    boxes, scores, av = session.run(None, {"pictures": x.numpy()})
    with torch.inference_mode():
        wanted = network(x)
    np.testing.assert_allclose(scores, wanted.class_logits.sigmoid(), atol=1e-4)
    np.testing.assert_allclose(boxes, wanted.boxes, atol=1e-2)
    np.testing.assert_allclose(av, wanted.av_logits.sigmoid(), atol=1e-4)
    assert told["form"] == "clip"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"causal": False}, "looks ahead"),
        ({"causal": True}, "every second frame"),
        ({"causal": True, "backbone": "slowfast"}, "every second frame"),
        ({"causal": True, "backbone": "rcgru", "time_pool": False}, "first frame"),
        ({"causal": True, "backbone": "compact"}, None),
        ({"causal": True, "backbone": "c2d"}, None),
    ],
    ids=str,
)
def test_who_has_no_stream_form_is_told_why(fields: dict[str, Any], told: str | None, tmp_path: Path) -> None:
    network = _network(**fields)
    reason = find_stream_obstacle(network)
    assert (reason is None) == (told is None)
    if told is not None:
        assert told in (reason or "")
        with pytest.raises(UsageError, match="export a clip"):
            export(network, FACTS, tmp_path / "model.onnx", form="stream")


def test_a_name_of_the_catalogue_stands_for_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "street-small", "--out", str(tmp_path / "model.onnx")]) == 2
    assert "models get street-small" in capsys.readouterr().err


def test_what_the_command_cannot_write_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    weights, out = tmp_path / "model.safetensors", tmp_path / "model.onnx"
    save_detector(weights, _network(), KINDS, AV)
    for words, told in (
        (["--stream"], "looks ahead"),
        (["--stream", "--clip", "8"], "not both"),
        (["--clip", "0"], "not both"),
        (["--size", "64"], "WIDTHxHEIGHT"),
    ):
        assert main(["export", str(weights), "--out", str(out), *words]) == 2
        assert told in capsys.readouterr().err
    out.write_text("mine")
    assert main(["export", str(weights), "--out", str(out)]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert out.read_text() == "mine"

    def written(network: Any, facts: Any, out: Path, **asked: Any) -> Any:
        assert (asked["form"], asked["frames"], asked["picture_px"]) == ("clip", 8, (1280, 960))
        return exporting.Exported(
            "clip", {"pictures": (1, 3, 8, 64, 96)}, {"boxes": (1, 8, 3, 4)}, 1e-6, 2048
        )

    monkeypatch.setattr(exporting, "export", written)
    assert main(["export", str(weights), "--out", str(out), "--overwrite"]) == 0
    said = capsys.readouterr().out
    assert "a clip and no stream, since it looks ahead" in said
    assert "1.0e-06" in said
