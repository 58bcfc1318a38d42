"""Files of weights, predictors and archives that lie about themselves: each a typed error, soon."""

from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import model_originals

from roadaware.errors import DamagedError, InputError
from roadaware.io.images import MaskReader
from roadaware.models import load_model_class
from roadaware.models.crossing.predictor import Predictor, is_predictor
from roadaware.models.loading import digest_model_files, open_stream
from roadaware.models.tensor_files import read_tensors
from roadaware.tasks.crossing_inputs.pose import read_poses

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("originals")
    for target in ("facts", "predictors"):
        model_originals.write_originals(target, folder / target)
    return folder


def changed(source: Path, path: Path, *names: str, value: Any) -> Path:
    """A copy of a file of ours whose facts say something else."""
    data = source.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header, rest = json.loads(data[8 : 8 + size]), data[8 + size :]
    facts = json.loads(header["__metadata__"]["roadaware"])
    held = facts
    for name in names[:-1]:
        held = held[name]
    held[names[-1]] = value
    header["__metadata__"]["roadaware"] = json.dumps(facts)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + rest)
    return path


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("anchor_ratios", [0.0, 1.0, 2.0]),
        ("anchor_ratios", [-1.0, 1.0, 2.0]),
        ("anchor_ratios", []),
        ("anchor_ratios", [1.0] * 10**5),
        ("anchor_scales", [float("inf"), 1.0]),
        ("anchor_sizes_px", [1e30, 32.0, 64.0, 128.0]),
        ("short_side_px", 10**9),
        ("multiple_px", 0),
        ("std", [0.0, 1.0, 1.0]),
        ("width", 10**9),
        ("head_layers", 10**9),
        ("stage_blocks", [10**9, 1, 1, 1]),
        ("stage_widths", [8.5, 8, 8, 8]),
        ("width", True),
        ("prior", "small"),
        ("backbone", "transformers"),
        ("causal", None),
        ("trunk", "__import__"),
    ],
    ids=repr,
)
def test_every_number_of_a_detector_is_looked_at(
    originals: Path, tmp_path: Path, name: str, value: Any
) -> None:
    source = originals / "facts" / "compact.safetensors"
    if name == "trunk":
        path = changed(source, tmp_path / "a.safetensors", "config", "trunk", value="TimmBackboneConfig")
        path = changed(path, tmp_path / "b.safetensors", "config", "backbone", value="transformers")
    else:
        path = changed(source, tmp_path / "a.safetensors", "config", name, value=value)
    with pytest.raises(InputError):
        open_stream([path])


@pytest.mark.parametrize("value", [0, -1, 1e30, True, "hot", None], ids=repr)
def test_a_temperature_is_a_number_above_zero(originals: Path, tmp_path: Path, value: Any) -> None:
    path = changed(
        originals / "predictors" / "steady.safetensors", tmp_path / "a", "temperature", value=value
    )
    with pytest.raises(DamagedError, match="temperature"):
        Predictor.open(path)


@pytest.mark.parametrize(
    "shape", [[10**9, 2], [8, 10**7], [8000, 4], [0, 2], [-1, 2], [8, 2.0], [], [2] * 40, "ab"], ids=repr
)
def test_inputs_have_shapes_that_a_sample_can_have(originals: Path, tmp_path: Path, shape: Any) -> None:
    source = originals / "predictors" / "steady.safetensors"
    with pytest.raises(InputError):
        Predictor.open(changed(source, tmp_path / "a", "shapes", "centre", value=shape))


def test_a_flipped_bit_of_a_pickled_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save({"weight": torch.arange(1000.0)}, path)
    whole, chance = path.read_bytes(), np.random.default_rng(0)
    found = read_tensors(path)["weight"]
    begin = whole.index(found.numpy().tobytes())
    for place in chance.integers(begin, begin + 4000, 20):
        data = bytearray(whole)
        data[place] ^= 1 << int(chance.integers(8))
        path.write_bytes(data)
        with pytest.raises(DamagedError, match="Bad CRC-32"):
            read_tensors(path)


def test_members_of_a_pickled_file_that_share_their_bytes_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", bytes(10_000))
        # The list of members names the same bytes again.
        for n in range(3):
            again = zipfile.ZipInfo(f"archive/data/{n}")
            first = archive.infolist()[0]
            for name in ("header_offset", "file_size", "compress_size", "CRC"):
                setattr(again, name, getattr(first, name))
            archive.filelist.append(again)
    with pytest.raises(DamagedError, match="overlap"):
        read_tensors(path)


@pytest.mark.parametrize("kind", ["pipe", "folder", "circle", "sparse", "device"])
def test_what_is_no_file_ends_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a.safetensors"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "circle":
        path.symlink_to(path.name)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(100 << 30)
    pickled = tmp_path / "a.pth"
    pickled.symlink_to(path)
    for opened in (
        lambda: open_stream([path]),
        lambda: Predictor.open(path),
        lambda: read_tensors(path),
        lambda: read_tensors(pickled),
        lambda: load_model_class("boosting").open(path),
    ):
        with pytest.raises(InputError):
            opened()
    assert not is_predictor(path)
    if kind != "folder":
        with pytest.raises(InputError):
            digest_model_files(path)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b"{",
        b'{"a": 1}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "a": 2}',
        b'{"a": {"dtype": "F32", "shape": [1099511627776], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 400]}}',
        b'{"a": {"dtype": "F999", "shape": [1], "data_offsets": [0, 4]}}',
        b'{"__metadata__": {"roadaware": 1}, "a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}',
        b"[" * 5000,
        b'{"a": {"dtype": "F32", "shape": [' + b"9" * 5000 + b'], "data_offsets": [0, 4]}}',
    ],
)
def test_headers_that_lie(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "a.safetensors"
    for size in (len(header), 2**63, 2**40, 0):
        path.write_bytes(struct.pack("<Q", size) + header + b"\0" * 4)
        with pytest.raises(DamagedError, match="not a whole safetensors file"):
            read_tensors(path)
    torch.save({"a": torch.zeros(1)}, path)
    for pickled in (path.read_bytes(), pickle.dumps({"a": list(range(9))})):
        path.write_bytes(pickled)
        with pytest.raises(DamagedError, match="a pickle, which could run code") as refused:
            read_tensors(path)
        assert "download it again" not in str(refused.value)


def test_a_tensor_that_is_one_number_repeated_is_no_weight(tmp_path: Path) -> None:
    path = tmp_path / "a.pth"
    torch.save({"a": torch.zeros(1).expand(1 << 40)}, path)
    with pytest.raises(InputError, match="no plain tensors: a"):
        read_tensors(path)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_numbers_of_eight_bits_are_looked_at_as_others(tmp_path: Path, kind: str) -> None:
    from safetensors.torch import save_file

    for value in (1.0, float("nan")):
        tensors = {"a": torch.full((4,), value).to(getattr(torch, kind))}
        save_file(tensors, tmp_path / "a.safetensors")
        torch.save(tensors, tmp_path / "a.pth")
        for path in (tmp_path / "a.safetensors", tmp_path / "a.pth"):
            if value == 1:
                assert read_tensors(path)["a"].float().tolist() == [1.0] * 4
            else:
                with pytest.raises(InputError, match="not finite in the checkpoint: a"):
                    read_tensors(path)


def test_a_flipped_bit_of_a_predictor_is_reported_and_files_without_a_digest_are_read(
    originals: Path, tmp_path: Path
) -> None:
    source, path = originals / "predictors" / "steady.safetensors", tmp_path / "a.safetensors"
    data = bytearray(source.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedError, match="not those that were saved"):
        Predictor.open(path)
    changed(source, path, "digest", value="")
    assert Predictor.open(path).labels == Predictor.open(source).labels


def test_a_checkpoint_that_unpacks_is_refused(tmp_path: Path) -> None:
    path, packed = tmp_path / "a.pth", tmp_path / "b.pth"
    torch.save({"a": torch.zeros(10_000)}, path)
    with zipfile.ZipFile(path) as held, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in held.namelist():
            archive.writestr(name, held.read(name))
    with pytest.raises(InputError, match="packed"):
        read_tensors(packed)


@pytest.mark.parametrize("way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, 9, 14, 99], ids=str)
def test_members_in_another_packing_are_typed_errors(originals: Path, tmp_path: Path, way: int) -> None:
    written = way if way in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2) else zipfile.ZIP_STORED
    masks, poses, model = tmp_path / "masks.zip", tmp_path / "poses.npz", tmp_path / "model.npz"
    for path, name in ((masks, "000000.png"), (poses, "poses.npy"), (model, "facts.json")):
        with zipfile.ZipFile(path, "w", written) as archive:
            archive.writestr(name, b"content" * 100)
        if way != written:
            data = bytearray(path.read_bytes())
            for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
                place = data.find(mark) + at
                data[place : place + 2] = way.to_bytes(2, "little")
            path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="packed in an unusual way"):
        MaskReader(masks)
    with pytest.raises(InputError, match="packed in an unusual way"):
        load_model_class("boosting").open(model)
    with pytest.raises(InputError):
        read_poses(poses)


def test_trees_that_lead_nowhere_end(originals: Path, tmp_path: Path) -> None:
    from roadaware.io.npz import open_arrays, save_arrays

    arrays, facts = open_arrays(originals / "predictors" / "boosting.npz")
    samples = model_originals._samples(np.ones((4, 8, 4)), np.zeros(4, np.int64))
    for change in (
        {"depth": np.array(10**9)},
        {"left": np.full_like(arrays["left"], 10**6)},
        {"feature": np.full_like(arrays["feature"], 10**6)},
        {"value": np.full_like(arrays["value"], np.nan)},
        {"start": np.zeros(7)},
    ):
        save_arrays(tmp_path / "a.npz", {**arrays, **change}, facts)
        model = load_model_class("boosting").open(tmp_path / "a.npz")
        if "depth" in change:
            assert model.predict(samples).shape == (4, 1)
        else:
            with pytest.raises(InputError):
                model.predict(samples)
