"""What networks that tell path and cell share: sequences, cells by number, semantic maps; imports torch."""

from __future__ import annotations

from torch import Tensor, nn

from roadaware.errors import UsageError
from roadaware.models.crossing.inputs import named
from roadaware.models.crossing.networks.base import CrossingNet, of_kind

CELLS = 609
"""Numbers that a cell can have: 0 to 575, or 0 to 608 where centres are rounded."""


class CellEmbedding(nn.Module):
    """Learned numbers of each cell: (B, T, 1) the cell, as a float, to (B, T, width).

    Args:
        width: of the answer.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(CELLS, width)

    def forward(self, cell: Tensor) -> Tensor:
        """What is known of the cells; beyond the last one is the last."""
        found: Tensor = self.table(cell[..., 0].round().long().clamp(0, CELLS - 1))
        return found


class MultiTaskNet(CrossingNet):
    """A network on sequences, among them the cell, and at most one input of semantic maps."""

    def read(self, width: int) -> list[int]:
        """Set `maps`, the names of the semantic maps, and add what reads cells; the widths of the sequences.

        Args:
            width: of what is learned of a cell.

        Raises:
            UsageError: if there are several maps, no sequence, or an input that is neither.
        """
        self.maps = of_kind(self.shapes, "maps")
        odd = [given for given in self.shapes if given not in self.maps + self.sequences]
        if len(self.maps) > 1 or odd or not self.sequences:
            raise UsageError(
                f"{self.entry.card.name} reads sequences and at most one input of semantic maps, "
                f"not {', '.join(self.shapes)}"
            )
        self._cells = of_kind(self.shapes, "grid")
        self.cells = nn.ModuleList(CellEmbedding(width) for _ in self._cells)
        return [width if name in self._cells else self.shapes[name][1] for name in self.sequences]

    def numbers(self, x: dict[str, Tensor]) -> list[Tensor]:
        """The sequences, each (B, T, its width)."""
        known = {name: table(x[name]) for name, table in zip(self._cells, self.cells, strict=True)}
        return [known[name] if name in known else x[name] for name in self.sequences]

    def standardise(self, name: str, mean: Tensor, spread: Tensor) -> None:
        """As every network, but the number of a cell stays as it is."""
        if named(name).kind != "grid":
            super().standardise(name, mean, spread)
