"""Checks: what a study is refused for before anything is read, and what would have to be said instead."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from roadaware.errors import UsageError
from roadaware.models import CROSSING, MODELS, entry_of
from roadaware.protocols.away.results import DOUBTS

if TYPE_CHECKING:
    from roadaware.protocols.away.config import AwayStudy

_CROPS = "looks at pictures, and the samples of domains are kept as boxes alone"
_JOINTS = "looks at joints of the body, and the samples of domains are kept as boxes alone"
UNASKED = {
    "spi-net": _JOINTS,
    "trouspi-net": _JOINTS,
    **dict.fromkeys(("vgg16", "resnet50", "convlstm", "c3d", "i3d", "two-stream"), _CROPS),
    "constant-velocity": "tells where somebody will be, not who crosses",
}
"""Models of the registry that no study can ask, and why."""
ASKED = tuple(name for name in (*CROSSING, *MODELS) if name not in UNASKED)
"""The others: who crosses is told by boxes alone."""
_ANY_MODEL = ("temperature",)
"""Ways to doubt that need no network."""


def check(study: AwayStudy) -> None:
    """Refuse a study that cannot be run, or that says something without effect.

    Args:
        study: as it was asked for.

    Raises:
        UsageError: at the first thing that is wrong; it says what would have to be said instead.
    """
    # One after another: later checks rely on what the earlier ones have seen to.
    for why in chain.from_iterable(each(study) for each in (_models, _names, _onward, _doubted)):
        raise UsageError(f"the study cannot be run: {why}")


def _models(study: AwayStudy) -> Iterator[str]:
    if not study.models or len(set(study.models)) < len(study.models):
        yield "models are one or more, each once"
    told = f"models are of {', '.join(ASKED)}"
    for name in study.models:
        if name in UNASKED:
            yield f"{name} {UNASKED[name]}; {told}"
        elif name not in ASKED:
            yield f"there is no {name}; {told}"
    strange = [name for name in study.fields if name not in ASKED]
    if strange:
        yield f"fields are by model, and {', '.join(strange)} is none of them; {told}"
    if not all(isinstance(held, dict) for held in study.fields.values()):
        yield "fields are by model, such as fields={steady: {dropout: 0.3}}"


def _names(study: AwayStudy) -> Iterator[str]:
    """What is wrong with domains, numbers, and parts of a whole."""
    chosen = set(study.models)
    for holds, wanted in (
        (len(set(study.names)) == len(study.names) > 0, "domains are one or more, each once"),
        (all(study.roots.values()), "a domain is a name, or NAME=PATH"),
        (1 <= study.seeds <= 1000, "seeds is 1 or more, 1,000 at most"),
        (5 <= study.scenes <= 100_000, "scenes is 5 or more, so that every split has one"),
        (0 <= study.draws <= 100_000, "draws is 0 or more, 100,000 at most"),
        (set(study.doubts) <= set(DOUBTS), f"doubts are of {', '.join(DOUBTS)}"),
        (set(study.doubted) <= chosen, "doubted are some of the models"),
        (set(study.pretrained) <= chosen, "pretrained are some of the models"),
        (set(study.pretrained) <= set(CROSSING), "pretrained are networks; tabular models begin anew"),
        (set(study.doubted_on) <= set(study.names), "doubted_on are some of the domains"),
    ):
        if not holds:
            yield wanted


def _onward(study: AwayStudy) -> Iterator[str]:
    if not all(len(pair) == 2 for pair in study.pairs):
        yield "pretraining looks like crossing@1>jaad-all"
    if not {name for pair in study.pairs for name in pair} <= set(study.names):
        yield "pretraining goes from one of the domains to another"
    if bool(study.pretrained) != bool(study.pretraining):
        there, lacking = ("pretrained", "pretraining") if study.pretrained else ("pretraining", "pretrained")
        yield (
            f"{there} without {lacking} does nothing: --pretrained says who goes on (steady), --pretraining "
            "from which domain to which ('crossing@1>jaad-all')"
        )


def _doubted(study: AwayStudy) -> Iterator[str]:
    """What nobody is doubted by, and who is doubted by nothing."""
    ways = [each for each in study.doubts if each not in ("deterministic", "ensemble")]
    if not study.doubted:
        if study.doubted_on:
            yield "doubted_on without doubted does nothing: --doubted says which models are (steady)"
        if ways and study.doubts != DOUBTS:
            yield f"doubts ({', '.join(ways)}) without doubted do nothing: --doubted says of whom (steady)"
        return
    tabular = [name for name in study.doubted if name not in CROSSING]
    if tabular and not set(ways) & set(_ANY_MODEL):
        yield f"{', '.join(tabular)} can be doubted by temperature alone, and doubts do not hold that"
    lost = [each for each in ways if each not in _ANY_MODEL]
    if lost and len(tabular) == len(study.doubted):
        yield (
            f"{', '.join(lost)} need a network, and doubted names none: {', '.join(tabular)} can be doubted "
            "by temperature alone (--set doubts=[temperature]); or name a network too, such as steady"
        )
    steadfast = [name for name in study.doubted if name in CROSSING and not _drops(name, study)]
    if steadfast and "mc-dropout" in ways:
        yield (
            f"{', '.join(steadfast)} drops nothing, so that mc-dropout says the same in every pass; leave "
            "it out of doubted, or mc-dropout out of doubts"
        )


def _drops(model: str, study: AwayStudy) -> bool:
    """Whether a network of the study has dropout."""
    kind = entry_of(model).config_class
    small = study.size == "small" and hasattr(kind, "small")
    usual = getattr(kind.small() if small else kind(), "dropout", 0.0)
    return bool(study.fields.get(model, {}).get("dropout", usual))
