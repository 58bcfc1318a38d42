"""How far probabilities of labels are from satisfying logical requirements, by three fuzzy logics; imports torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

Logic = Literal["product", "godel", "lukasiewicz"]


def compute_violation(literals: Tensor, logic: Logic) -> Tensor:
    """How far a disjunction is from true: 1 less its truth.

    Its truth is the t-conorm of its literals' truths l: 1 - prod(1 - l) by the product, max(l) by Goedel,
    min(1, sum(l)) by Lukasiewicz.

    Args:
        literals: (..., M) truth of each literal, in [0, 1].
        logic: which t-norm.

    Returns:
        (...) from 0, satisfied, to 1.

    Source: Giunchiglia et al., Machine Learning 112, 2023, section 5.1; Hajek, Metamathematics of fuzzy logic, 1998.

    >>> [round(float(compute_violation(torch.tensor([0.5, 0.2]), each)), 2) for each in ("product", "godel", "lukasiewicz")]
    [0.4, 0.5, 0.3]
    """
    wrong = 1 - literals
    if logic == "product":
        return wrong.prod(dim=-1)
    if logic == "godel":
        return wrong.amin(dim=-1)
    return (1 - literals.sum(dim=-1)).clamp(min=0)


class LogicLoss(nn.Module):
    """The mean violation of clauses by rows of class logits, summed over rows.

    Args:
        clauses: each of literals k for class k - 1 and -k for its absence, where classes are the columns of the logits.
        logic: by which truth is reckoned.

    Source: Giunchiglia et al., Machine Learning 112, 2023, who add it to the loss of 3D-RetinaNet with a weight.
    """

    def __init__(self, clauses: Sequence[Sequence[int]], logic: Logic) -> None:
        super().__init__()
        self.logic, self.n_clauses = logic, len(clauses)
        self._lengths = sorted({len(clause) for clause in clauses})
        # Clauses of one length together: most have two literals, and the longest fifteen.
        for length in self._lengths:
            held = torch.tensor([clause for clause in clauses if len(clause) == length])
            self.register_buffer(f"clauses_{length}", held, persistent=False)

    def forward(self, logits: Tensor) -> Tensor:
        """The sum over rows of the mean violation of all clauses.

        Args:
            logits: (k, C).
        """
        truth = torch.sigmoid(logits)
        total = logits.new_zeros(())
        for length in self._lengths:
            held = self.get_buffer(f"clauses_{length}")
            chosen = truth[:, held.abs() - 1]
            literals = torch.where(held > 0, chosen, 1 - chosen)
            total = total + compute_violation(literals, self.logic).sum()
        # With no rows it hangs on the network all the same, so that every parameter has a gradient.
        return total / max(1, self.n_clauses) + logits.sum() * 0
