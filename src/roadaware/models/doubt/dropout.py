"""Dropout that stays active when a network is asked, and nothing else with it; imports torch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from roadaware.errors import UsageError


@contextmanager
def dropping(network: nn.Module) -> Iterator[None]:
    """Dropout active, and nothing else: batch norms stay as they are in eval mode.

    Args:
        network: in eval mode, and so again afterwards.
    """
    found = dropouts(network)
    for module in found:
        module.train()
    try:
        yield
    finally:
        for module in found:
            module.eval()


def dropouts(network: nn.Module) -> list[nn.Module]:
    """The modules of a network that drop something.

    Args:
        network: of any sort.
    """
    kinds = nn.modules.dropout._DropoutNd
    return [module for module in network.modules() if isinstance(module, kinds) and module.p > 0]


def refuse_without_dropout(network: nn.Module) -> None:
    """Refuse a network every pass of which would be the same.

    Args:
        network: of any sort.

    Raises:
        UsageError: if it drops nothing.
    """
    if not dropouts(network):
        raise UsageError(
            f"{type(network).__name__} has no dropout, and would say the same in every pass; train it with "
            "doubt: {kind: dropout, rate: 0.5}, which drops inputs of the last layer, or with last-dropout"
        )
