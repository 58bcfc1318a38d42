"""DoubtConfig: how a network is evaluated several times, so that its outputs may differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roadaware.errors import UsageError

Kind = Literal["none", "dropout", "last-dropout", "last-flipout"]


@dataclass(frozen=True)
class DoubtConfig:
    """Source of variation between passes.

    Args:
        kind: `none`, nothing; `dropout`, all dropout of the network; `last-dropout`, only what is dropped
            before the last layer; `last-flipout`, the weights of the last layer, which are normal
            distributions.
        rate: how often an input of the last layer is dropped; with `dropout`, 0 adds no dropout there.
        passes: how many answers are averaged.
        prior: of `last-flipout`, the deviation of weights before anything was learnt; 0 lets it follow them.

    Raises:
        UsageError: if a value is impossible.
    """

    kind: Kind = "none"
    rate: float = 0.0
    passes: int = 30
    prior: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        for holds, wanted in (
            (0 <= self.rate < 1, "rate lies in [0, 1)"),
            (self.passes >= 1, "passes is at least 1"),
            (self.prior >= 0, "prior is a deviation, or 0"),
            (self.kind != "last-dropout" or self.rate > 0, "last-dropout needs a rate, such as 0.5"),
            (not self.rate or "dropout" in self.kind, f"{self.kind} drops nothing: its rate is 0"),
        ):
            if not holds:
                raise UsageError(f"there is no such doubt: {wanted}")

    @property
    def draws(self) -> bool:
        """Whether passes differ."""
        return self.kind != "none"
