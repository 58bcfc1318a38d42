"""Image networks describe crops: trunks with drawn or given weights, and folders of transformers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from roadaware.errors import InputError, UsageError
from roadaware.models.crop_networks import CropNetwork, open_image_model, open_trunk
from roadaware.tasks.unknown_memory import load_crop_encoder

torch.set_num_threads(1)
CROPS = np.random.default_rng(0).integers(0, 256, (2, 224, 224, 3)).astype(np.uint8)


def written(folder: Path, name: str, config: Any) -> Any:
    """A tiny model of a class of transformers, saved with a preparation of images; the model."""
    import transformers as hub

    torch.manual_seed(0)
    model = getattr(hub, name)(config).eval()
    model.save_pretrained(folder)
    hub.ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    return model


@pytest.mark.slow
def test_a_trunk_with_drawn_weights_is_told_by_its_seed() -> None:
    state = torch.random.get_rng_state()
    one, same = (open_trunk("resnet50", seed=5) for _ in range(2))
    assert torch.equal(state, torch.random.get_rng_state())
    found = one.features(CROPS[:1])
    assert found.shape == (1, 2048)
    assert np.linalg.norm(found) == pytest.approx(1, rel=1e-5)
    np.testing.assert_array_equal(found, same.features(CROPS[:1]))
    assert one.digest == "drawn with seed 5"
    with pytest.raises(UsageError, match="trunks are vgg16, resnet50"):
        open_trunk("resnet18")


@pytest.mark.slow
def test_weights_of_a_trunk_are_read_from_a_file(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    from roadaware.models.crossing.networks.stills import VGG16Trunk

    torch.manual_seed(3)
    trunk = VGG16Trunk((64, 128, 256, 512, 512))
    path = tmp_path / "vgg16.safetensors"
    save_file(trunk.state_dict(), path)
    found = load_crop_encoder("vgg16", path)
    held = torch.from_numpy(CROPS).permute(0, 3, 1, 2).float() / 255
    mean, spread = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    with torch.inference_mode():
        plain = trunk.eval()((held - mean[:, None, None]) / spread[:, None, None])
    plain = plain / plain.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(found.features(CROPS), plain.numpy(), atol=1e-5)
    assert found.digest != load_crop_encoder("vgg16").digest


@pytest.mark.parametrize(("kind", "length"), [("ResNet", 16), ("ViT", 8)])
def test_a_folder_of_transformers_gives_its_pooled_output(tmp_path: Path, kind: str, length: int) -> None:
    import transformers as hub

    config = {
        "ResNet": lambda: hub.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
        "ViT": lambda: hub.ViTConfig(
            hidden_size=8,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=8,
            image_size=32,
            patch_size=8,
        ),
    }[kind]()
    model = written(tmp_path, f"{kind}Model", config)
    network = load_crop_encoder(str(tmp_path))
    found = network.features(CROPS)
    small = hub.ViTImageProcessorPil(size={"height": 32, "width": 32})(
        images=list(CROPS), return_tensors="pt"
    )
    with torch.inference_mode():
        plain = model(**small).pooler_output.flatten(1)
    np.testing.assert_allclose(found, (plain / plain.norm(dim=1, keepdim=True)).numpy(), atol=1e-5)
    assert (found.shape, network.name) == ((2, length), kind.lower())


def test_a_model_of_words_is_refused_in_words(tmp_path: Path) -> None:
    import transformers as hub

    config = hub.BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, vocab_size=20
    )
    written(tmp_path, "BertModel", config)
    with pytest.raises(InputError, match="'bert'; known are models of images"):
        open_image_model(tmp_path).features(CROPS)
    with pytest.raises(InputError, match=r"config\.json"):
        open_image_model(tmp_path / "none")


def test_weights_that_are_broken_are_told() -> None:
    broken = CropNetwork(lambda crops: torch.full((len(crops), 4), torch.nan), "broken", "")
    with pytest.raises(InputError, match="broken gives features that are not finite"):
        broken.features(CROPS)
    assert broken.features(CROPS[:0]).shape == (0, 0)
