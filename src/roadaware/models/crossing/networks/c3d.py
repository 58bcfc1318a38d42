"""C3D: 3x3x3 convolutions on a short clip; imports torch."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.entries.clips import C3D, C3DConfig
from roadaware.models.crossing.networks.base import Looked
from roadaware.models.crossing.networks.pictures import Normalise, PictureNet, relu_start

_LAYERS = (("conv1",), ("conv2",), ("conv3a", "conv3b"), ("conv4a", "conv4b"), ("conv5a", "conv5b"))
"""The convolutions between pools, by the names of the released weights."""


class C3DFeatures(nn.Module):
    """The convolutions of C3D: clips (B, 3, T, H, W) to (B, `width`), flattened from (channels, T, H, W).

    Each of the five stages halves rows and columns, the last with a border of zeros; all but the first halve
    the frames too, as long as there are two left (published: 16 frames; 8 or 15 end with one as well).

    Args:
        clip: (frames, height, width) in pixels.
        filters: channels of the five stages.

    Raises:
        UsageError: if the picture is smaller than 16 pixels.

    Source:
        Tran et al., ICCV 2015, Figure 3.
    """

    def __init__(self, clip: tuple[int, int, int], filters: Sequence[int] = (64, 128, 256, 512, 512)) -> None:
        super().__init__()
        frames, rows, columns = clip
        if min(rows, columns) < 16 or frames < 1:
            raise UsageError(f"C3D needs at least one frame of 16 pixels, not {frames} of {rows} x {columns}")
        before = 3
        for stage, (names, after) in enumerate(zip(_LAYERS, filters, strict=True)):
            for name in names:
                setattr(self, name, nn.Conv3d(before, after, 3, padding=1))
                before = after
            in_time = 2 if stage and frames > 1 else 1
            border = int(stage == len(_LAYERS) - 1)
            pool = nn.MaxPool3d((in_time, 2, 2), padding=(0, border, border))
            setattr(self, f"pool{stage + 1}", pool)
            frames, rows, columns = frames // in_time, rows // 2 + border, columns // 2 + border
        # with a border an odd side 2n + 1 gives n + 1, an even side 2n gives n + 1 as well
        self.width = before * frames * rows * columns
        relu_start(self)

    def forward(self, clip: Tensor) -> Tensor:
        """The features of clips (B, 3, T, H, W)."""
        for stage, names in enumerate(_LAYERS):
            for name in names:
                clip = getattr(self, name)(clip).relu()
            clip = getattr(self, f"pool{stage + 1}")(clip)
        return clip.flatten(1)


class C3DNet(PictureNet):
    """C3D with two fully connected layers."""

    entry = C3D
    config: C3DConfig

    def build(self) -> int:
        """Convolutions and fully connected layers, by the names of the released weights."""
        self.normalise = Normalise(self.config.pixels, self.config.swapped)
        self.trunk = C3DFeatures(self.clip_shape(), self.config.filters)
        self.fc6 = nn.Linear(self.trunk.width, self.config.hidden)
        self.fc7 = nn.Linear(self.config.hidden, self.config.hidden)
        self.dropout6, self.dropout7 = nn.Dropout(self.config.dropout), nn.Dropout(self.config.dropout)
        relu_start(self.fc6)
        relu_start(self.fc7)
        return self.config.hidden

    def look(self, x: dict[str, Tensor]) -> Looked:
        """What the second fully connected layer gives."""
        clip = self.normalise(self.clip(x)).transpose(1, 2)
        inner = self.dropout6(self.fc6(self.trunk(clip)).relu())
        return Looked(self.dropout7(self.fc7(inner).relu()), {})
