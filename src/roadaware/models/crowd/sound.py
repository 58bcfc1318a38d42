"""The head that is asked where a sound comes from, and the log-mel that it hears; imports torch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import InputError, UsageError
from roadaware.models.crowd.config import CrowdConfig

RATE = 16_000
"""Samples a second of what is heard."""
SECONDS = 3
BANDS, EXAMPLE = 64, 96
"""Bands of the log-mel, and its frames in an example, which is 0.96 s long."""
_WINDOW, _HOP, _FOURIER = 400, 160, 512
_LOWEST_HZ, _HIGHEST_HZ = 125.0, 7500.0
_OFFSET = 0.01
_RATES = (1_000, 768_000)
_WHOLE = "a sound of {}: samples lie in -1 to 1, so divide those of int16 by 32,768"
_LOUDEST = 1e6
_MOST_CHANNELS = 256
"""More than any recorder has: an array of channels by samples."""

# What is heard.


def logmel(wave: Tensor | npt.ArrayLike) -> Tensor:
    """(..., frames, 64) the logarithm of magnitudes in 64 mel bands, 100 frames a second.

    Windows of 25 ms (periodic Hann) every 10 ms, none at the ends that is not whole; magnitudes of a Fourier
    transform of 512; triangles over 125 to 7500 Hz that are straight in mel (1127 ln(1 + f / 700)); log(x + 0.01).

    Args:
        wave: (..., samples) at 16,000 Hz in [-1, 1], of 400 samples or more.

    Raises:
        InputError: if it is shorter, of whole numbers, or a sample is not finite.

    Source: Hershey et al., ICASSP 2017 (VGGish), and its released `mel_features`.

    >>> logmel(torch.zeros(2, 16_000)).shape
    torch.Size([2, 98, 64])
    """
    heard = torch.as_tensor(wave)
    if not heard.is_floating_point():
        raise InputError(_WHOLE.format(heard.dtype))
    if heard.ndim < 1 or heard.shape[-1] < _WINDOW:
        raise InputError(f"a sound of {tuple(heard.shape)}: at least {_WINDOW} samples make a window")
    if not bool(torch.isfinite(heard).all()):
        raise InputError("the sound has a sample that is not finite")
    windows = heard.unfold(-1, _WINDOW, _HOP) * torch.hann_window(_WINDOW, dtype=torch.float64).to(heard)
    magnitudes = torch.fft.rfft(windows, n=_FOURIER).abs()
    return torch.log(magnitudes @ mel_filters().to(heard) + _OFFSET)


def mel_filters() -> Tensor:
    """(257, 64) how much each frequency counts in each band; the constant part counts in none."""

    def to_mel(hertz: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return np.asarray(1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0))

    bins = to_mel(np.linspace(0.0, RATE / 2, _FOURIER // 2 + 1))[:, None]
    edges = np.linspace(to_mel(_LOWEST_HZ), to_mel(_HIGHEST_HZ), BANDS + 2)
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    filters = np.maximum(0.0, np.minimum((bins - low) / (centre - low), (high - bins) / (high - centre)))
    filters[0] = 0.0
    return torch.from_numpy(filters)


def cut_examples(bands: Tensor) -> Tensor:
    """(..., S, 96, 64) examples of 0.96 s, one behind the other, of a log-mel (..., frames, 64).

    Raises:
        InputError: if it has fewer than 96 frames.
    """
    if bands.shape[-2] < EXAMPLE:
        raise InputError(f"a log-mel of {bands.shape[-2]} frames: an example has {EXAMPLE}")
    count = bands.shape[-2] // EXAMPLE
    return bands[..., : count * EXAMPLE, :].reshape(*bands.shape[:-2], count, EXAMPLE, bands.shape[-1])


def fit_sound(wave: npt.ArrayLike, rate: int, *, mono: bool = False) -> Tensor:
    """(channels, 48000) the middle 3 s of a sound at 16,000 Hz; of a shorter one repetitions.

    Args:
        wave: (samples,) or (samples, channels) in [-1, 1], as `io.video.read_sound` reads it; one channel is
            doubled, of more than two the first two count.
        rate: samples a second, 1,000 to 768,000.
        mono: the mean of both channels, scaled so that its range is -1 to 1, as published; silence becomes -1.

    Raises:
        InputError: if there is no sample, they are whole numbers, one is not finite or beyond all loudness, channels come
            first, or the rate is no rate.

    Source: the published form is that of Song et al., CVPR 2022 (SSPL).
    """
    given = np.asarray(wave)
    if np.issubdtype(given.dtype, np.integer):
        raise InputError(_WHOLE.format(given.dtype))
    heard = given.astype(np.float64)
    if heard.ndim == 1:
        heard = heard[:, None]
    if heard.ndim != 2 or not heard.size:
        raise InputError(f"a sound should be (samples, channels) with at least one sample, not {heard.shape}")
    if heard.shape[1] > _MOST_CHANNELS:
        raise InputError(
            f"a sound should be (samples, channels), and has {heard.shape[1]:,} channels",
            hint="give the transpose of (channels, samples)",
        )
    # Not a number fails the comparison, too.
    if not (np.abs(heard) <= _LOUDEST).all():
        raise InputError(
            "the sound has a sample that is not finite, or far too large: samples lie in -1 to 1"
        )
    if isinstance(rate, bool) or not _RATES[0] <= rate <= _RATES[1]:
        raise InputError(f"a sound of {rate!r} samples a second: {_RATES[0]:,} to {_RATES[1]:,} are read")
    whole, wanted = _cut_middle(heard, int(rate) * SECONDS), RATE * SECONDS
    if rate != RATE:
        from scipy.signal import resample_poly

        divisor = int(np.gcd(int(rate), RATE))
        whole = resample_poly(whole, RATE // divisor, int(rate) // divisor, axis=0)
    fitted = _cut_middle(whole, wanted)
    fitted = fitted[:, [0, 0]] if fitted.shape[1] == 1 else fitted[:, :2]
    if mono:
        fitted = fitted.mean(axis=1, keepdims=True)
        fitted = fitted - fitted.min()
        # The small number keeps silence from a division by 0; loud sounds end a little below 1.
        fitted = 2 * (fitted / (fitted.max() + 1e-3) - 0.5)
    return torch.from_numpy(np.ascontiguousarray(fitted.T, dtype=np.float32))


def _cut_middle(wave: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """(count, channels) the middle of a sound, repeated if it is shorter."""
    if len(wave) < count:
        wave = np.tile(wave, (count // len(wave) + 1, 1))
    start = len(wave) // 2 - count // 2
    return wave[start : start + count]


# What a sound is to the network.


class SmallHearing(nn.Module):
    """128 numbers of an example in two channels: four convolutions with a stride, and the mean."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in ((2, 16), (16, 32), (32, 64), (64, 128)):
            layers += [nn.Conv2d(inputs, outputs, 3, 2, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 128))

    def forward(self, examples: Tensor) -> Tensor:
        """(N, 128) of (N, 2, 96, 64) log-mels, left channel first."""
        heard: Tensor = self.layers(examples)
        return heard


class Vggish(nn.Module):
    """128 numbers of an example: VGGish, whose parameters have the names of its port to torch.

    Source: Hershey et al., ICASSP 2017.
    """

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = 1
        for width in (64, 0, 128, 0, 256, 256, 0, 512, 512, 0):
            layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU()] if width else [nn.MaxPool2d(2)]
            inputs = width or inputs
        self.features = nn.Sequential(*layers)
        dense: list[nn.Module] = []
        for inputs, width in ((512 * 6 * 4, 4096), (4096, 4096), (4096, 128)):
            dense += [nn.Linear(inputs, width), nn.ReLU()]
        self.embeddings = nn.Sequential(*dense)

    def forward(self, examples: Tensor) -> Tensor:
        """(N, 128) of (N, 1, 96, 64) log-mels."""
        # Channels last, as in the weights' first home.
        cells = self.features(examples).permute(0, 2, 3, 1).flatten(1)
        heard: Tensor = self.embeddings(cells)
        return heard


# What is seen and what is heard, brought together.


class Coded(nn.Module):
    """The predictive coding module: the image predicts the sound, and the error of that corrects the image.

    Top down, a map of `size` cells becomes one of half, then of a quarter, from which 128 numbers of the sound
    are predicted; bottom up, what was wrong goes back through transposed convolutions. This happens once to
    begin with and `cycles` times more, with norms of its own each time; gains of errors (`a`) and predictions
    (`b`) are learnt for each channel.

    Args:
        width: channels.
        cycles: after the first time.

    Source: Song et al., CVPR 2022 (SSPL), section 3.3, and its released code; for 14 cells its layers, for
        other sizes maps are resized where a transposed convolution does not fit.
    """

    def __init__(self, width: int, cycles: int) -> None:
        super().__init__()
        self.cycles, heard = cycles, 128
        self.predict = nn.ModuleList(
            [
                nn.Conv2d(width, heard, 1),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
            ]
        )
        self.correct = nn.ModuleList(
            [
                nn.ConvTranspose2d(heard, width, 1, bias=False),
                nn.ConvTranspose2d(width, width, 3, stride=2, bias=False),
                nn.ConvTranspose2d(width, width, 3, padding=1, bias=False),
            ]
        )
        self.last = nn.ConvTranspose2d(width, width, 1)
        self.a = nn.ParameterList(torch.ones(1, width, 1, 1) for _ in range(3))
        self.b = nn.ParameterList(torch.full((1, width, 1, 1), 0.5) for _ in range(3))

        def norms(each: int) -> nn.ModuleList:
            return nn.ModuleList(nn.BatchNorm2d(width) for _ in range(each * (1 + cycles)))

        self.predict_norms, self.correct_norms = norms(2), norms(3)

    def forward(self, map: Tensor, heard: Tensor) -> Tensor:
        """(B, width, h, w) the map as the sound corrects it.

        Args:
            map: (B, width, h, w), of at least 4 cells in each direction.
            heard: (B, 128), of length 1.
        """
        # Level 0 is the coarsest; level 2 is the map itself.
        guesses = [map]
        for level in (2, 1):
            guesses.insert(0, self._norm(self.predict_norms, 2, 0, level - 1, self._down(level, guesses[0])))
        states = self._up(guesses, list(guesses), heard, 0)
        for cycle in range(1, self.cycles + 1):
            states[2] = functional.gelu(self._blend(2, states[2], guesses[2]))
            for level in (2, 1):
                guesses[level - 1] = self._down(level, states[level])
                mixed = self._blend(level - 1, states[level - 1], guesses[level - 1])
                states[level - 1] = self._norm(self.predict_norms, 2, cycle, level - 1, mixed)
            states = self._up(guesses, states, heard, cycle)
        coded: Tensor = self.last(states[2])
        return coded

    def _down(self, level: int, map: Tensor) -> Tensor:
        """The next coarser map, as the map of a level predicts it."""
        return functional.max_pool2d(self.predict[level](map), 2)

    def _up(self, guesses: list[Tensor], states: list[Tensor], heard: Tensor, cycle: int) -> list[Tensor]:
        """States of all levels, corrected by what the level below got wrong."""
        said = functional.gelu(self.predict[0](states[0])).mean(dim=(2, 3))
        error = (heard - said)[:, :, None, None].expand(-1, -1, *states[0].shape[2:])
        found: list[Tensor] = []
        for level in range(3):
            raised = self._raise(level, error, states[level].shape[-2:])
            corrected = states[level] + functional.relu(self.a[level]) * raised
            found.append(self._norm(self.correct_norms, 3, cycle, level, corrected))
            error = found[level] - guesses[level]
        return found

    def _raise(self, level: int, error: Tensor, size: torch.Size) -> Tensor:
        """An error in the size of the next level."""
        if level == 0:
            raised: Tensor = self.correct[0](error)
            return raised
        if level == 2:
            error = functional.interpolate(error, size=size, mode="bilinear", align_corners=True)
        raised = self.correct[level](error)
        if raised.shape[-2:] != size:
            raised = functional.interpolate(raised, size=size, mode="bilinear", align_corners=True)
        return raised

    def _blend(self, level: int, state: Tensor, guess: Tensor) -> Tensor:
        share = functional.relu(self.b[level])
        return (1 - share) * state + share * guess

    @staticmethod
    def _norm(norms: nn.ModuleList, each: int, cycle: int, level: int, map: Tensor) -> Tensor:
        return functional.gelu(norms[cycle * each + level](map))


class Attended(NamedTuple):
    """What `attend` finds.

    Args:
        pooled: (B, C) the cells of the image, weighed and summed.
        similarity: (B, H, W) the cosine of each cell with the sound: the localisation map.
        weights: (B, H, W) the same, scaled to [0, 1] in each image.
    """

    pooled: Tensor
    similarity: Tensor
    weights: Tensor


def attend(visual: Tensor, audio: Tensor) -> Attended:
    """Where the image is like the sound.

    Args:
        visual: (B, C, H, W) features of the image.
        audio: (B, C) features of the sound.

    Returns:
        The localisation map; the same scaled by its least and largest value (their distance plus 1e-10), and
        the sum of the cells as they are, weighed by that.

    Raises:
        UsageError: if shapes do not go together.

    Source: Song et al., CVPR 2022 (SSPL), section 3.2, and its released `att_map_weight`, whose answer for a
        batch of one loses an axis.
    """
    if visual.ndim != 4 or audio.shape != visual.shape[:2]:
        raise UsageError(
            f"{tuple(visual.shape)} of the image and {tuple(audio.shape)} of the sound should be (B, C, H, W) "
            "and (B, C)"
        )
    cells = functional.normalize(visual, dim=1)
    similarity = torch.einsum("bchw,bc->bhw", cells, functional.normalize(audio, dim=1))
    least, largest = similarity.amin(dim=(1, 2), keepdim=True), similarity.amax(dim=(1, 2), keepdim=True)
    weights = (similarity - least) / (largest - least + 1e-10)
    return Attended(torch.einsum("bchw,bhw->bc", visual, weights), similarity, weights)


class Located(NamedTuple):
    """Answers of the head.

    Args:
        similarity: (B, s, s) cosines of cells with the sound, the localisation map.
        logits: (B, s, s) the same, scaled, for a loss on the map.
        heard: (B,) logit that the sound that was asked for is heard, and its source seen; zeros as published.
        pooled: (B, width) for the self-supervised loss.
    """

    similarity: Tensor
    logits: Tensor
    heard: Tensor
    pooled: Tensor


class SimSiam(nn.Module):
    """Projections of two views of a clip, and of each the prediction of the other.

    Source: Chen and He, CVPR 2021; in the sizes of SSPL for `hidden` = 2048.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()

        def layer(inputs: int, outputs: int) -> list[nn.Module]:
            return [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]

        self.project = nn.Sequential(
            *layer(width, hidden),
            *layer(hidden, hidden),
            nn.Linear(hidden, hidden, bias=False),
            nn.BatchNorm1d(hidden, affine=False),
        )
        self.predict = nn.Sequential(*layer(hidden, hidden // 4), nn.Linear(hidden // 4, hidden))

    def forward(self, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Predictions p1, p2 and projections z1, z2, (B, hidden) each, for `losses.simsiam`.

        Args:
            one, other: (B, width) what was pooled of two views.
        """
        z1, z2 = self.project(one), self.project(other)
        return self.predict(z1), self.predict(z2), z1, z2


class SoundHead(nn.Module):
    """Where a sound comes from (SSPL with its predictive coding module).

    Published form: the sound of 3 s as a whole is looked for. Compact form: a class of sound is asked for, since
    several sounds at once cannot be told apart by their mean; the two channels of the sound and the place of each
    cell take part; a logit says whether that sound is heard and its source seen, and others which classes are heard. Where
    actions are known, too, each class has a weight for each of them: who claps is looked for among those who move so.

    Args:
        config: of the network.
        sounds: classes that can be asked for.
        channels: of the trunk's map.
        actions: that `match_people` is told of; 0 for none.

    Source: Song et al., CVPR 2022 (SSPL); the question, the places, the logit and `match_people` are ours.
    """

    def __init__(self, config: CrowdConfig, sounds: int, channels: int, actions: int = 0) -> None:
        super().__init__()
        width = config.sound_width
        self.config, self.sounds = config, sounds
        self.asked_for = config.form == "compact"
        self.hearing: nn.Module = Vggish() if config.audio == "vggish" else SmallHearing()
        self.inputs = 1 if config.audio == "vggish" else 2
        question = 32 if self.asked_for else 0
        # The first row is the question for any sound.
        self.question = nn.Embedding(1 + sounds, question) if question else None
        self.from_heard = nn.Sequential(nn.Linear(128 + question, width), nn.ReLU(), nn.Linear(width, width))
        self.from_map = nn.Conv2d(channels + (2 if self.asked_for else 0), width, 1)
        self.coded = Coded(width, config.cycles)
        self.scale, self.shift = nn.Parameter(torch.tensor(10.0)), nn.Parameter(torch.tensor(-2.0))
        self.classes = nn.Linear(128, sounds) if self.asked_for else None
        self.heard = nn.Linear(2 * width + 1, 1) if self.asked_for else None
        self.siamese = SimSiam(width, config.head_width) if config.head_width else None
        self.deeds: nn.Embedding | None = None
        if question and actions:
            self.deeds = nn.Embedding(1 + sounds, actions + 1)
            # A network that has not learnt takes nobody for the source.
            nn.init.zeros_(self.deeds.weight)

    def forward(self, map: Tensor, examples: Tensor, asked: Tensor | None = None) -> Located:
        """Localisation maps of one sound for each clip.

        Args:
            map: (B, C, T, H, W) of the trunk.
            examples: (B, channels, S, 96, 64) log-mels, as `hear` makes them; one channel is doubled where two
                are read, of two the mean is taken where one is read.
            asked: (B,) int64, the class of sound that is asked for; -1, and None for all, is any.

        Raises:
            UsageError: if shapes do not go together, or a class is none.
        """
        batch = len(map)
        spoken = self._hear(examples, batch)
        heard = functional.normalize(spoken.mean(dim=1), dim=1)
        wanted = self._ask(spoken, asked)

        size = (self.config.map_size, self.config.map_size)
        seen = map.mean(dim=2)
        if self.asked_for:
            seen = torch.cat([seen, self._places(seen)], dim=1)
        seen = functional.interpolate(self.from_map(seen), size=size, mode="bilinear", align_corners=False)
        corrected = self.coded(seen, heard)
        found = attend(corrected, wanted)
        known = map.new_zeros(batch)
        if self.heard is not None and self.classes is not None:
            cells = size[0] * size[1]
            present = self.classes(spoken.mean(dim=1))
            # Any sound is there where the surest class is.
            place = torch.full((batch,), -1, device=map.device) if asked is None else asked
            own = present.gather(1, place.clamp(min=0)[:, None])
            own = torch.where(place[:, None] < 0, present.amax(dim=1, keepdim=True), own)
            known = self.heard(torch.cat([found.pooled / cells, wanted, own], dim=1)).squeeze(1)
        return Located(found.similarity, self.scale * found.similarity + self.shift, known, found.pooled)

    def classify(self, examples: Tensor) -> Tensor:
        """(B, sounds) logits that each class is heard, whether its source is seen or not; of the compact form.

        Args:
            examples: as of `forward`.

        Raises:
            UsageError: if shapes are none, or the form is the published one.
        """
        if self.classes is None:
            raise UsageError("the published form knows no classes of sounds")
        found: Tensor = self.classes(self._hear(examples, len(examples)).mean(dim=1))
        return found

    def match_people(self, asked: Tensor, doing: Tensor) -> Tensor:
        """(Q, n + 1) logits that each of n people makes a sound, and the last one that none of them does.

        Args:
            asked: (Q,) int64, classes; -1 for any.
            doing: (n, actions) or (Q, n, actions) scores in [0, 1] of what they do, as `IntelliCare.score_deeds` gives them.

        Raises:
            UsageError: if the head knows no actions.
        """
        if self.deeds is None:
            raise UsageError("this head of sounds knows no actions: the network has no compact head of them")
        weights = self.deeds(asked + 1)
        acts = doing.sqrt() if doing.ndim == 3 else doing.sqrt().expand(len(asked), -1, -1)
        by_person = torch.einsum("qna,qa->qn", acts, weights[:, :-1])
        return torch.cat([by_person, weights[:, -1:]], dim=1)

    def _hear(self, examples: Tensor, batch: int) -> Tensor:
        """(B, S, 128) what the examples of each sound are to the network."""
        if examples.ndim != 5 or len(examples) != batch or examples.shape[1] not in (1, 2):
            raise UsageError(
                f"{tuple(examples.shape)} examples should be ({batch}, 1 or 2, S, {EXAMPLE}, {BANDS})"
            )
        if self.inputs == 1:
            examples = examples.mean(dim=1, keepdim=True)
        elif examples.shape[1] == 1:
            examples = examples.expand(-1, 2, -1, -1, -1)
        each: Tensor = self.hearing(examples.transpose(1, 2).flatten(0, 1))
        return each.view(batch, -1, 128) if batch else each.new_zeros(0, 1, 128)

    def _ask(self, spoken: Tensor, asked: Tensor | None) -> Tensor:
        """(B, width) what is looked for in the image, of (B, S, 128) and the classes that are asked for."""
        if self.question is None:
            mean: Tensor = self.from_heard(spoken).mean(dim=1)
            return mean
        asked = torch.full((len(spoken),), -1, device=spoken.device) if asked is None else asked
        if len(asked) != len(spoken) or bool(((asked < -1) | (asked >= self.sounds)).any()):
            raise UsageError(
                f"classes of sounds are 0 to {self.sounds - 1}, or -1 for any; one for each clip"
            )
        question = self.question(asked + 1)
        # Compared with the mean of what is heard, or a few loud moments would speak for all.
        question_and_words: Tensor = self.from_heard(torch.cat([spoken.mean(dim=1), question], dim=1))
        return question_and_words

    @staticmethod
    def _places(map: Tensor) -> Tensor:
        """(B, 2, H, W) column and row of each cell in -1 to 1: left and right are heard."""
        rows = torch.linspace(-1, 1, map.shape[2], device=map.device, dtype=map.dtype)
        columns = torch.linspace(-1, 1, map.shape[3], device=map.device, dtype=map.dtype)
        grid = torch.stack([columns[None].expand(len(rows), -1), rows[:, None].expand(-1, len(columns))])
        return grid.expand(len(map), -1, -1, -1)


def hear(wave: npt.ArrayLike, rate: int, *, mono: bool = False) -> Tensor:
    """(channels, S, 96, 64) log-mels of the middle 3 s of a sound, for `SoundHead`.

    Args:
        wave, rate, mono: as of `fit_sound`; mono is the published form.

    Raises:
        InputError: as `fit_sound`.
    """
    return cut_examples(logmel(fit_sound(wave, rate, mono=mono)))


def cover_cells(boxes: npt.NDArray[np.float32], size: tuple[int, int], cells: tuple[int, int]) -> Tensor:
    """(rows, columns) how much of each cell the box that covers most of it covers, in [0, 1].

    Args:
        boxes: (n, 4) corners in pixels.
        size: height and width of the image.
        cells: rows and columns.
    """
    held = torch.from_numpy(boxes).float()
    if not len(held):
        return torch.zeros(cells)

    def along(low: Tensor, high: Tensor, length: int, count: int) -> Tensor:
        edges = torch.linspace(0, length, count + 1)
        inner = torch.minimum(high[:, None], edges[None, 1:]) - torch.maximum(low[:, None], edges[None, :-1])
        return inner.clamp(min=0) / (length / count)

    columns = along(held[:, 0], held[:, 2], size[1], cells[1])
    rows = along(held[:, 1], held[:, 3], size[0], cells[0])
    return (rows[:, :, None] * columns[:, None, :]).amax(dim=0)
