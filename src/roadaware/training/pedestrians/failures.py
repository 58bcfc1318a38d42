"""Failures of fits, seeds and recipes, one line each, equal reasons once."""

from __future__ import annotations

from collections.abc import Mapping

from roadaware.errors import RoadawareError


class FailedSeedsError(RoadawareError):
    """Every seed of a run failed."""

    exit_code = 1

    @classmethod
    def of(cls, failed: Mapping[int, str]) -> FailedSeedsError:
        """The error that names what went wrong.

        Args:
            failed: seed to why, of all seeds.
        """
        alike = group_seed_errors(failed)
        if len(alike) == 1 < len(failed):
            return cls(f"every seed failed, and all for one reason: {next(iter(alike.values()))}")
        return cls("every seed failed. " + "; ".join(f"{who}: {why}" for who, why in alike.items()))


def format_error(error: Exception) -> str:
    """Why something did not work, in one line; another's error with its kind."""
    text = str(error) if isinstance(error, RoadawareError) else f"{type(error).__name__}: {error}"
    return text.replace("\n  ", "; ")


def group_seed_errors(failed: Mapping[int, str]) -> dict[str, str]:
    """Seeds in words, to why they failed; those that failed for the same reason stand together.

    Args:
        failed: seed to why.

    >>> group_seed_errors({0: "no video", 1: "no video", 2: "the loss is nan"})
    {'seeds 0, 1': 'no video', 'seed 2': 'the loss is nan'}
    """
    alike = group_errors({str(seed): why for seed, why in failed.items()})
    return {f"seed{'s' * (', ' in who)} {who}": why for who, why in alike.items()}


def group_errors(failed: Mapping[str, str]) -> dict[str, str]:
    """Names with commas, to why they failed; a reason that several share is reported once.

    Args:
        failed: name to why.
    """
    names: dict[str, list[str]] = {}
    for name, why in failed.items():
        names.setdefault(why, []).append(name)
    return {", ".join(who): why for why, who in names.items()}
