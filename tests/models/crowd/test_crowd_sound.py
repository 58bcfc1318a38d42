"""What is heard equals VGGish's form, attention and predictive coding their plain versions; odd sounds are met."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_crowd import plain_attend, plain_logmel
from torch import Tensor
from torch.nn import functional

from roadaware.errors import InputError, UsageError
from roadaware.models.crowd import logmel, sound
from roadaware.models.crowd.config import CrowdConfig

torch.set_num_threads(1)


@pytest.mark.parametrize("samples", [400, 559, 560, 16_000])
def test_log_mel_is_the_plain_one(samples: int) -> None:
    rng = np.random.default_rng(samples)
    wave = rng.normal(0, 0.2, samples) + np.sin(np.arange(samples) * 0.3)
    wanted = plain_logmel(wave)
    assert np.abs(logmel(torch.from_numpy(wave)).numpy() - wanted).max() < 1e-9
    assert np.abs(logmel(wave.astype(np.float32)).numpy() - wanted).max() < 1e-4
    both = logmel(torch.from_numpy(np.stack([wave, -wave])))
    assert torch.equal(both[0], both[1])


def test_mel_filters_are_those_of_the_library() -> None:
    audio_utils = pytest.importorskip("transformers.audio_utils")
    theirs = audio_utils.mel_filter_bank(
        257, 64, 125.0, 7500.0, 16_000, norm=None, mel_scale="kaldi", triangularize_in_mel_space=True
    )
    assert np.abs(sound.mel_filters().numpy() - theirs).max() < 1e-9


def test_silence_has_a_log_mel_and_too_little_has_none() -> None:
    assert torch.allclose(logmel(torch.zeros(800)), torch.tensor(np.log(0.01)).float())
    for bad in (torch.zeros(399), torch.full((800,), float("nan")), torch.tensor(1.0)):
        with pytest.raises(InputError):
            logmel(bad)
    for read in (logmel, lambda wave: sound.hear(wave, 16_000)):
        with pytest.raises(InputError, match="divide those of int16 by 32,768"):
            read(np.zeros(16_000, np.int16))
    with pytest.raises(InputError, match="an example has 96"):
        sound.cut_examples(torch.zeros(95, 64))


@pytest.mark.parametrize("batch", [1, 3])
def test_attention_is_the_plain_one(batch: int) -> None:
    rng = np.random.default_rng(batch)
    visual, audio = rng.normal(size=(batch, 5, 4, 3)), rng.normal(size=(batch, 5))
    wanted = plain_attend(visual, audio)
    for dtype, close in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        found = sound.attend(torch.from_numpy(visual).to(dtype), torch.from_numpy(audio).to(dtype))
        for ours, plain in zip(found, wanted, strict=True):
            assert ours.shape == plain.shape
            assert np.abs(ours.numpy() - plain).max() < close


def test_attention_of_equal_cells_and_of_silence_is_finite() -> None:
    found = sound.attend(torch.ones(1, 3, 2, 2), torch.zeros(1, 3))
    assert all(bool(each.isfinite().all()) for each in found)
    with pytest.raises(UsageError, match=r"\(B, C\)"):
        sound.attend(torch.ones(1, 3, 2, 2), torch.zeros(2, 3))


def _plain_coding(m: sound.Coded, vis: Tensor, audio: Tensor) -> Tensor:
    """The recursion of the paper at 14 cells, written out: maps of 14, 7 and 3 cells."""
    g = functional.gelu

    def pooled(k: int, x: Tensor) -> Tensor:
        return functional.max_pool2d(functional.conv2d(x, m.predict[k].weight, padding=1), 2)

    def said(x: Tensor) -> Tensor:
        return g(functional.conv2d(x, m.predict[0].weight, m.predict[0].bias)).mean((2, 3))

    def raise3(e: Tensor) -> Tensor:
        spread = e[:, :, None, None].expand(-1, -1, 3, 3)
        return functional.conv_transpose2d(spread, m.correct[0].weight)

    def raise7(e: Tensor) -> Tensor:
        return functional.conv_transpose2d(e, m.correct[1].weight, stride=2)

    def raise14(e: Tensor) -> Tensor:
        up = functional.interpolate(e, scale_factor=2, mode="bilinear", align_corners=True)
        return functional.conv_transpose2d(up, m.correct[2].weight, padding=1)

    relu, pn, cn = functional.relu, m.predict_norms, m.correct_norms
    p7 = g(pn[1](pooled(2, vis)))
    p3 = g(pn[0](pooled(1, p7)))
    u3 = g(cn[0](p3 + relu(m.a[0]) * raise3(audio - said(p3))))
    u7 = g(cn[1](p7 + relu(m.a[1]) * raise7(u3 - p3)))
    u14 = g(cn[2](vis + relu(m.a[2]) * raise14(u7 - p7)))
    b3, b7, b14 = (relu(b) for b in m.b)
    for t in range(1, m.cycles + 1):
        u14 = g((1 - b14) * u14 + b14 * vis)
        p7 = pooled(2, u14)
        u7 = g(pn[2 * t + 1]((1 - b7) * u7 + b7 * p7))
        p3 = pooled(1, u7)
        u3 = g(pn[2 * t]((1 - b3) * u3 + b3 * p3))
        u3 = g(cn[3 * t](u3 + relu(m.a[0]) * raise3(audio - said(u3))))
        u7 = g(cn[3 * t + 1](u7 + relu(m.a[1]) * raise7(u3 - p3)))
        u14 = g(cn[3 * t + 2](u14 + relu(m.a[2]) * raise14(u7 - p7)))
    return functional.conv_transpose2d(u14, m.last.weight, m.last.bias)


@pytest.mark.parametrize("cycles", [0, 1, 2, 4])
@pytest.mark.parametrize("training", [True, False])
def test_predictive_coding_is_the_published_recursion(cycles: int, training: bool) -> None:
    torch.manual_seed(cycles)
    coded = sound.Coded(6, cycles).double()
    for parameter in coded.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    vis, audio = torch.randn(3, 6, 14, 14).double(), functional.normalize(torch.randn(3, 128).double(), dim=1)
    coded.train(training)
    with torch.no_grad():
        assert torch.allclose(coded(vis, audio), _plain_coding(coded, vis, audio), atol=1e-9)
    for size in (28, 9, 4):
        assert coded(torch.randn(3, 6, size, size).double(), audio).shape == (3, 6, size, size)


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 44_100, 48_000, 192_000])
@pytest.mark.parametrize("seconds", [0.3, 3.0, 5.0])
def test_any_rate_and_length_becomes_three_seconds(rate: int, seconds: float) -> None:
    time = np.arange(int(rate * seconds)) / rate
    wave = np.stack([np.sin(2 * np.pi * 440 * time), np.zeros_like(time)], axis=1)
    fitted = sound.fit_sound(wave, rate)
    assert fitted.shape == (2, 48_000)
    assert fitted.dtype == torch.float32
    # The tone is still there, on its side alone.
    spectrum = torch.fft.rfft(fitted[0, 8_000:40_000]).abs()
    assert abs(int(spectrum.argmax()) / 2 - 440) <= 5
    assert float(fitted[1].abs().max()) < 1e-6
    assert sound.hear(wave, rate).shape == (2, 3, 96, 64)


def test_mono_is_doubled_and_of_many_channels_two_count() -> None:
    wave = np.random.default_rng(0).normal(0, 0.1, 48_000)
    one = sound.fit_sound(wave, 16_000)
    assert torch.equal(one[0], one[1])
    assert torch.equal(one, sound.fit_sound(wave[:, None], 16_000))
    many = sound.fit_sound(np.stack([wave, -wave, wave * 0, wave], axis=1), 16_000)
    assert torch.equal(many, torch.stack([one[0], -one[0]]))


def test_the_published_range_is_one_and_silence_is_even() -> None:
    wave = np.random.default_rng(0).normal(0, 0.1, (48_000, 2))
    fitted = sound.fit_sound(wave, 16_000, mono=True)
    assert fitted.shape == (1, 48_000)
    assert float(fitted.min()) == -1.0
    assert 0.99 < float(fitted.max()) < 1
    silent = sound.fit_sound(np.zeros(48_000), 16_000, mono=True)
    assert bool((silent == -1).all())
    assert bool((sound.fit_sound(np.zeros(48_000), 16_000) == 0).all())


@pytest.mark.parametrize(
    ("wave", "rate"),
    [
        (np.zeros(0), 16_000),
        (np.zeros((0, 2)), 16_000),
        (np.zeros((10, 2, 2)), 16_000),
        (np.zeros((2, 16_000)), 16_000),  # channels first
        (np.array([0.0, np.nan]), 16_000),
        (np.array([0.0, np.inf]), 16_000),
        (np.full(10, 1e9), 16_000),
        (np.zeros(10), 0),
        (np.zeros(10), 10**9),
        (np.zeros(10), True),
    ],
)
def test_what_is_no_sound_is_refused(wave: np.ndarray, rate: int) -> None:
    with pytest.raises(InputError):
        sound.fit_sound(wave, rate)


@pytest.mark.parametrize("form", ["compact", "published"])
def test_the_head_hears_one_channel_or_two(form: str) -> None:
    torch.manual_seed(0)
    head = sound.SoundHead(CrowdConfig.tiny(form=form), 4, 16).eval()
    map, examples = torch.randn(2, 16, 3, 4, 6), torch.randn(2, 2, 3, 96, 64)
    with torch.no_grad():
        found = head(map, examples)
        assert found.similarity.shape == found.logits.shape == (2, 14, 14)
        assert bool((found.similarity.abs() <= 1 + 1e-6).all())
        assert found.heard.shape == (2,)
        mono = head(map, examples[:, :1])
        doubled = head(map, examples[:, :1].expand(-1, 2, -1, -1, -1))
        assert torch.equal(mono.similarity, doubled.similarity)
        asked = head(map, examples, torch.tensor([1, 3]))
        if form == "compact":
            assert not torch.equal(asked.similarity, found.similarity)
            anything = head(map, examples, torch.tensor([-1, -1]))
            assert torch.equal(anything.similarity, found.similarity)
            for bad in (torch.tensor([4, 0]), torch.tensor([-2, 0]), torch.tensor([0])):
                with pytest.raises(UsageError, match="0 to 3"):
                    head(map, examples, bad)
        silent = head(
            map,
            logmel(torch.zeros(2, 48_000))
            .unsqueeze(0)
            .expand(2, -1, -1, -1)[:, :, :288]
            .unflatten(2, (3, 96)),
        )
        assert all(bool(each.isfinite().all()) for each in silent)
    for shape in ((1, 2, 3, 96, 64), (2, 3, 3, 96, 64), (2, 3, 96, 64)):
        with pytest.raises(UsageError, match="examples should be"):
            head(map, torch.zeros(shape))


def test_people_are_matched_by_what_they_do() -> None:
    """The weights of the class times the roots of the scores, summed, beside one number for nobody."""
    torch.manual_seed(0)
    head = sound.SoundHead(CrowdConfig.tiny(), 4, 16, actions=3)
    doing, asked = torch.rand(5, 3), torch.tensor([2, -1])
    assert head.match_people(asked, doing).tolist() == [[0.0] * 6] * 2
    assert head.deeds is not None
    torch.nn.init.normal_(head.deeds.weight)
    with torch.no_grad():
        found = head.match_people(asked, doing).numpy()
        assert np.array_equal(head.match_people(asked, doing.expand(2, -1, -1)).numpy(), found)
        assert head.match_people(asked, doing[:0]).shape == (2, 1)
    weights = head.deeds.weight.detach().numpy()
    for row, which in enumerate((3, 0)):
        plain = [sum(weights[which, a] * float(person[a]) ** 0.5 for a in range(3)) for person in doing]
        assert np.allclose(found[row], [*plain, weights[which, 3]], atol=1e-5)
    for other in (
        sound.SoundHead(CrowdConfig.tiny(), 4, 16),
        sound.SoundHead(CrowdConfig.tiny(form="published"), 4, 16, 3),
    ):
        with pytest.raises(UsageError, match="knows no actions"):
            other.match_people(asked, doing)


@pytest.mark.slow
def test_vggish_has_the_published_shapes() -> None:
    shapes = {name: tuple(value.shape) for name, value in sound.Vggish().state_dict().items()}
    places = {0: (64, 1), 3: (128, 64), 6: (256, 128), 8: (256, 256), 11: (512, 256), 13: (512, 512)}
    for place, (outputs, inputs) in places.items():
        assert shapes[f"features.{place}.weight"] == (outputs, inputs, 3, 3)
    dense = {0: (4096, 12288), 2: (4096, 4096), 4: (128, 4096)}
    for place, shape in dense.items():
        assert shapes[f"embeddings.{place}.weight"] == shape
    assert len(shapes) == 18
    with torch.no_grad():
        assert sound.Vggish()(torch.zeros(2, 1, 96, 64)).shape == (2, 128)


def test_two_views_are_projected_and_predicted() -> None:
    torch.manual_seed(0)
    p1, p2, z1, z2 = sound.SimSiam(6, 16)(torch.randn(5, 6), torch.randn(5, 6))
    assert p1.shape == p2.shape == z1.shape == z2.shape == (5, 16)
    # The last norm has no parameters: projections have mean 0 over the batch.
    assert torch.allclose(z1.mean(dim=0), torch.zeros(16), atol=1e-5)
