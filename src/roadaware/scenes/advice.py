"""Advice: a detector's recommended linker fields and threshold, kept in the meta of its predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from roadaware.errors import DamagedError
from roadaware.scenes.tables import Meta

_NOTE = "advice"
_MIN_SCORE = "min_score"
_LINKING = "linking."


@dataclass(frozen=True)
class Advice:
    """Recommended use of a detector's predictions, set by who trained or calibrated it.

    Args:
        linking: fields of `LinkerConfig` to their values; of all others the linker's defaults hold.
        min_score: the operating threshold: agentness at which a box is taken to be there by whatever decides
            (streams, drawing, tracking). Metrics that rank boxes take the weaker ones too. None where nothing
            is known.
        disputed: what several detectors advise differently, such as `linking.min_iou`, to their values (None
            for one that says nothing); none of them holds.
    """

    linking: Mapping[str, Any] = field(default_factory=dict)
    min_score: float | None = None
    disputed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything is said."""
        return bool(self.linking or self.disputed) or self.min_score is not None

    def as_plain(self) -> dict[str, Any]:
        """JSON-ready; unset fields are left out."""
        found: dict[str, Any] = {"linking": dict(self.linking)} if self.linking else {}
        if self.min_score is not None:
            found[_MIN_SCORE] = self.min_score
        if self.disputed:
            found["disputed"] = {name: list(values) for name, values in self.disputed.items()}
        return found


def parse_advice(plain: object, where: str = "") -> Advice:
    """The advice in plain data, as `Advice.as_plain` gave it; other fields are passed over.

    Whether the fields of `linking` fit a linker shows when they are applied to one.

    Args:
        plain: a mapping; None where nothing is said.
        where: names the file in errors.

    Raises:
        DamagedError: if a field is of a wrong kind, or the threshold is no score.
    """
    if plain is None:
        return Advice()
    fields = _mapping(plain, "advice", where)
    linking = _mapping(fields.get("linking") or {}, "advice on linking", where)
    disputed = _mapping(fields.get("disputed") or {}, "list of disputed advice", where)
    score = fields.get(_MIN_SCORE)
    if score is not None and (type(score) not in (int, float) or not 0 <= score <= 1):
        message = f"expected a detector's threshold as a score from 0 to 1, found {str(score)[:40]!r}"
        raise DamagedError(message, where=where or None)
    return Advice(
        dict(linking),
        None if score is None else float(score),
        {name: tuple(values) if isinstance(values, list) else (values,) for name, values in disputed.items()},
    )


def _mapping(value: object, what: str, where: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping) and all(isinstance(name, str) for name in value):
        return value
    message = f"expected a detector's {what} as fields, found {type(value).__name__}"
    raise DamagedError(message, where=where or None)


def get_advice(meta: Meta) -> Advice:
    """The advice that tables carry; empty where they carry none.

    Raises:
        DamagedError: as `parse_advice`.
    """
    return parse_advice(meta.notes.get(_NOTE), "meta.json")


def set_advice(meta: Meta, advice: Advice) -> Meta:
    """A copy of the meta that carries the advice in place of any before; an empty one leaves no trace."""
    notes = {name: note for name, note in meta.notes.items() if name != _NOTE}
    return replace(meta, notes={**notes, _NOTE: advice.as_plain()} if advice else notes)


def merge_advice(parts: Sequence[Advice]) -> Advice:
    """Merge the advice of several detectors: fields on which all agree; the rest is `disputed`.

    One that says nothing of a field differs from one that does, since the field's default suits it.

    Args:
        parts: of each set of predictions, or of each network of a mean.
    """
    each = [(_flat(part), part.disputed) for part in parts]
    agreed: dict[str, Any] = {}
    disputed: dict[str, tuple[Any, ...]] = {}
    for name in dict.fromkeys(name for fields, apart in each for name in (*fields, *apart)):
        values = [value for fields, apart in each for value in apart.get(name, (fields.get(name),))]
        distinct = tuple(value for at, value in enumerate(values) if value not in values[:at])
        if len(distinct) == 1:
            agreed[name] = distinct[0]
        else:
            disputed[name] = distinct
    score = agreed.pop(_MIN_SCORE, None)
    return Advice({name.removeprefix(_LINKING): value for name, value in agreed.items()}, score, disputed)


def _flat(advice: Advice) -> dict[str, Any]:
    """Every field by one name."""
    found = {f"{_LINKING}{name}": value for name, value in advice.linking.items()}
    return found if advice.min_score is None else {**found, _MIN_SCORE: advice.min_score}
