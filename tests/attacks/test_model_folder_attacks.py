"""Model folders that would go elsewhere, run code or never end: refused in words, and nothing is asked."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import tiny_hub
import tiny_objects
from roadaware.errors import InputError, UsageError
from roadaware.models.loading import open_videos
from roadaware.models.object_detectors import create_model, open_segmenter, save_objects
from roadaware.models.offline import block_network
from roadaware.models.pretrained import is_safe_pattern, load_tokenizer

torch.set_num_threads(1)
PICTURE = np.zeros((48, 64, 3), np.uint8)
Change = Callable[..., Path]
_asked: list[str] = []
_watching: list[bool] = []


def _note(event: str, details: tuple[Any, ...]) -> None:
    if _watching and event.startswith(("socket.", "subprocess.", "os.exec", "os.posix_spawn", "os.system")):
        _asked.append(event)


sys.addaudithook(_note)


@pytest.fixture(autouse=True)
def _nothing_is_asked() -> Iterator[None]:
    _asked.clear()
    _watching.append(True)
    yield
    _watching.clear()
    assert _asked == []


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "rt_detr"
    model = tiny_objects.tiny_model("rt_detr", ["car", "person"])
    save_objects(folder, model, ((64, 64), [0.0] * 3, [1.0] * 3), "agent")
    return folder


@pytest.fixture(scope="module")
def segmenter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "segformer"
    tiny_hub.write_segformer(folder)
    return folder


@pytest.fixture
def changed(detector: Path, tmp_path: Path) -> Change:
    """A copy of the detector whose config says something else."""

    def change(**fields: Any) -> Path:
        folder = tmp_path / "model"
        shutil.copytree(detector, folder)
        said = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**said, **fields}))
        return folder

    return change


@pytest.mark.parametrize(
    "fields",
    [
        {"backbone": "some/repo"},
        {"backbone": "some/repo", "backbone_config": None},
        {"backbone": "resnet50", "use_timm_backbone": True, "backbone_config": None},
        {"use_pretrained_backbone": True},
        {"backbone_config": {"model_type": "rt_detr_resnet", "backbone": "some/repo"}},
        {"backbone_config": {"model_type": "timm_backbone"}},
        {
            "backbone_config": {
                "model_type": "rt_detr_resnet",
                "inner": {"auto_map": {"AutoModel": "x.py--X"}},
            }
        },
        {"backbone_kwargs": {"out_indices": [1]}},
        {"auto_map": {"AutoConfig": "code.Config", "AutoModelForObjectDetection": "code.Model"}},
        {"trust_remote_code": True},
        {"quantization_config": {"quant_method": "gptq"}},
        {"base_model_name_or_path": "some/repo"},
    ],
    ids=str,
)
def test_what_lies_elsewhere_is_refused_by_words(changed: Change, fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"config\.json: .*(asks for|is not known|model_type)"):
        open_videos([changed(**fields)])


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {"_name_or_path": "some/repo"},
        {"_attn_implementation": "some/kernels", "attn_implementation": "some/kernels"},
        {
            "transformers_weights": "../../other.safetensors",
            "kernel_config": {"a": 1},
            "fusion_config": {"a": True},
        },
        {"return_dict": False, "disable_custom_kernels": False, "dtype": "some/repo"},
        {"anchor_image_size": [1 << 20, 1 << 20]},  # anchors of 137 GB
    ],
    ids=str,
)
def test_what_nobody_here_knows_changes_nothing(
    changed: Change, detector: Path, fields: dict[str, Any]
) -> None:
    (mine,) = open_videos([changed(**fields)]).follow([PICTURE])
    (usual,) = open_videos([detector]).follow([PICTURE])
    np.testing.assert_array_equal(mine.scores, usual.scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    "value",
    [10**6, 10**30, -1, 0, 2.5, True, "3", None, [2], [[2]], {"a": 1}, float("nan"), float("inf")],
    ids=repr,
)
@pytest.mark.parametrize("name", ["decoder_layers", "d_model"])
def test_numbers_of_a_config_are_bounded_before_a_network_is_built(
    changed: Change, name: str, value: Any
) -> None:
    with pytest.raises(InputError) as caught:
        list(open_videos([changed(**{name: value})]).follow([PICTURE]))
    assert len(str(caught.value)) < 800


def test_a_network_of_more_parameters_than_its_weights_is_not_made(changed: Change) -> None:
    with pytest.raises(InputError, match=r"has more than .* parameters, and its weights are"):
        open_videos([changed(encoder_ffn_dim=10**6)])


def test_the_limit_of_parameters_can_be_set(detector: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROADAWARE_MAX_PARAMETERS", "1000")
    with pytest.raises(
        InputError, match=r"parameters; networks of at most 1,000 (.|\n)*ROADAWARE_MAX_PARAMETERS="
    ):
        open_videos([detector])
    for wrong in ("0", "-5", "many", "1e9"):
        monkeypatch.setenv("ROADAWARE_MAX_PARAMETERS", wrong)
        with pytest.raises(UsageError, match="whole number above 0"):
            open_videos([detector])
    monkeypatch.setenv("ROADAWARE_MAX_PARAMETERS", "10000000")
    assert open_videos([detector])


@pytest.mark.parametrize(
    "name",
    ["../other/model.safetensors", "/etc/passwd", "a/b.safetensors", "..", "pytorch_model.bin", "C:\\x"],
)
def test_an_index_names_files_beside_it(segmenter: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(segmenter, folder)
    (tmp_path / "other").mkdir()
    (folder / "model.safetensors").rename(tmp_path / "other" / "model.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": name}}))
    with pytest.raises(InputError, match="expected an index of safetensors that lie beside it"):
        open_segmenter(folder)


def test_weights_in_parts_are_read(segmenter: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "model"
    shutil.copytree(segmenter, folder)
    whole = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(whole)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in parts.items():
        save_file({name: whole[name] for name in some}, folder / file)
    listed = {name: file for file, some in parts.items() for name in some}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": listed}))
    mine, usual = (open_segmenter(each).segment([PICTURE])[0] for each in (folder, segmenter))
    np.testing.assert_array_equal(mine, usual)


@pytest.mark.parametrize("kind", ["pipe", "folder", "circle", "sparse", "link"])
@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "preprocessor_config.json"])
def test_files_that_are_none_end_at_once(detector: Path, tmp_path: Path, name: str, kind: str) -> None:
    folder = tmp_path / "model"
    shutil.copytree(detector, folder)
    path = folder / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "sparse":
        with path.open("wb") as file:
            file.truncate(100 << 30)
    else:
        path.symlink_to(path.name if kind == "circle" else "/etc/passwd")
    with pytest.raises(InputError):
        list(open_videos([folder]).follow([PICTURE]))


def test_an_adapter_of_another_model_is_refused(detector: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(detector, folder)
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "some/repo"}')
    with pytest.raises(InputError, match="added to another model"):
        open_videos([folder])


@pytest.mark.parametrize(
    "fields",
    [
        {"size": {"height": 10**6, "width": 10**6}},
        {"size": {"height": 0, "width": 10}},
        {"size": [10**9, 2]},
        {"image_std": [0.0, 1.0, 1.0]},
        {"image_mean": [0.5] * 300},
        {"resample": 99},
        {"rescale_factor": "big"},
        {"do_resize": "yes"},
        {"image_processor_type": "os.system"},
        {"image_processor_type": "../x.ImageProcessor"},
        {"auto_map": {"AutoImageProcessor": "code.Own"}},
    ],
    ids=str,
)
def test_descriptions_of_preparation_are_bounded(
    segmenter: Path, tmp_path: Path, fields: dict[str, Any]
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(segmenter, folder)
    path = folder / "preprocessor_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
    with pytest.raises(InputError, match="not understood how images are prepared"):
        open_segmenter(folder)


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        (r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", True),
        (r"<\|startoftext\|>|<\|endoftext\|>|'s|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+", True),
        (r"\s+", True),
        ("(a+)+$", False),
        ("a*a*a*a*b", False),
        ("(?=(a*))*", False),
        ("x" * 1000, False),
        (None, False),
    ],
)
def test_patterns_of_tokenizers_come_to_an_end(tmp_path: Path, pattern: Any, fits: bool) -> None:
    assert is_safe_pattern(pattern) is fits
    tiny_hub.write_clip_words(tmp_path)
    said = json.loads((tmp_path / "tokenizer.json").read_text())
    said["normalizer"] = {"type": "Replace", "pattern": {"Regex": pattern}, "content": " "}
    (tmp_path / "tokenizer.json").write_text(json.dumps(said))
    if fits:
        assert load_tokenizer(tmp_path).encode("dog").ids
    else:
        with pytest.raises(InputError, match=r"no tokenizer: a pattern that could take forever"):
            load_tokenizer(tmp_path)


_DOUBLES = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
_TWICE = [{"Sequence": {"id": "A", "type_id": 0}}] * 2


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("normalizer", {"type": "Sequence", "normalizers": [_DOUBLES] * 40}),
        ("normalizer", {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "a" * 99}] * 40}),
        ("normalizer", {"type": "Prepend", "prepend": "a" * 10**6}),
        ("pre_tokenizer", {"type": "Sequence", "pretokenizers": [{"type": "ByteLevel"}] * 40}),
        (
            "post_processor",
            {
                "type": "Sequence",
                "processors": [{"type": "TemplateProcessing", "single": _TWICE, "special_tokens": {}}] * 40,
            },
        ),
    ],
    ids=("replace", "prepend", "long", "bytes", "template"),
)
def test_parts_of_tokenizers_do_not_make_texts_without_end(
    tmp_path: Path, part: str, said: dict[str, Any]
) -> None:
    tiny_hub.write_clip_words(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), part: said}))
    with pytest.raises(InputError, match=r"no tokenizer: .*letters"):
        load_tokenizer(tmp_path)


def test_a_recipe_names_no_backbone_that_lies_elsewhere() -> None:
    for fields in (
        {"backbone_config": {"model_type": "timm_backbone", "backbone": "a/b"}},
        {"decoder_layers": 10**7},
    ):
        with pytest.raises(UsageError):
            create_model("rt_detr", {**tiny_objects.FIELDS["rt_detr"], **fields}, ["car"])


def test_a_socket_is_refused_while_a_model_is_opened_and_only_then() -> None:
    _watching.clear()
    with block_network("folder"):
        with pytest.raises(InputError, match="asked for the network"):
            socket.create_connection(("127.0.0.1", 9), timeout=1)
        with pytest.raises(InputError, match="asked for the network"):
            socket.getaddrinfo("localhost", 80)
        with block_network("inner"):
            pass
        with pytest.raises(InputError), socket.socket():
            pass
    with socket.socket():
        pass


def test_the_library_of_the_hub_is_offline_within_and_as_before_behind() -> None:
    from huggingface_hub import constants, is_offline_mode

    before = constants.HF_HUB_OFFLINE
    with block_network("folder"):
        assert is_offline_mode()
    assert before == constants.HF_HUB_OFFLINE
