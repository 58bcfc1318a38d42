"""What networks on poses share: joints as a picture and the distances between them; imports torch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.networks.base import CrossingNet, of_kind


class PoseNet(CrossingNet):
    """A network that needs a pose, and takes other sequences beside it."""

    def find_pose(self) -> list[str]:
        """Set `pose`, its name, `joints` and `pairs`; the other sequences.

        Raises:
            UsageError: if there is no pose of x and y of joints, or an input is no sequence.
        """
        name, poses = self.entry.card.name, of_kind(self.shapes, "pose")
        odd = [given for given in self.shapes if given not in self.sequences]
        if len(poses) != 1 or odd:
            raise UsageError(f"{name} needs one pose, and sequences beside it, not {', '.join(self.shapes)}")
        self.pose = poses[0]
        numbers = self.shapes[self.pose][1]
        if numbers % 2 or numbers < 4:
            raise UsageError(f"{name} takes a pose as x and y of two joints or more, not {numbers} numbers")
        self.joints = numbers // 2
        self.pairs = self.joints * (self.joints - 1) // 2
        return [given for given in self.sequences if given != self.pose]

    def standardise(self, name: str, mean: Tensor, spread: Tensor) -> None:
        """As every network, but a pose stays as it is: distances need both axes in one unit."""
        if name != self.pose:
            super().standardise(name, mean, spread)


def as_picture(pose: Tensor) -> Tensor:
    """(B, 2, T, joints) of x and y of each joint in turn (B, T, 2 joints)."""
    return _each(pose).permute(0, 3, 1, 2)


def distances(pose: Tensor) -> Tensor:
    """(B, T, joints (joints - 1) / 2) between all pairs of joints of a frame, (0, 1), (0, 2) .. in turn."""
    at = _each(pose)
    one, other = torch.triu_indices(at.shape[-2], at.shape[-2], 1, device=pose.device)
    # a distance of 0 has no slope, hence the least one
    return (at[..., one, :] - at[..., other, :]).square().sum(-1).clamp_min(1e-12).sqrt()


def _each(pose: Tensor) -> Tensor:
    """(B, T, joints, 2)."""
    return pose.reshape(*pose.shape[:-1], -1, 2)


class ChannelDropout(nn.Module):
    """Dropout of whole channels of (B, C, H, W), drawn by `nn.Dropout` so that it is found where that is."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.drop = nn.Dropout(dropout)

    def forward(self, picture: Tensor) -> Tensor:
        """The picture without some channels."""
        kept: Tensor = self.drop(picture.new_ones(*picture.shape[:2], 1, 1))
        return picture * kept
