"""Configs as plain data and back."""

from dataclasses import dataclass, replace

import pytest

from roadaware.config import digest, from_dict, to_dict
from roadaware.errors import UsageError


@dataclass(frozen=True)
class Cut:
    """A config with every kind of field."""

    size: int
    name: str = "x"
    edges: tuple[float, ...] = (0.5, 1.0)
    pairs: tuple[tuple[int, int], ...] = ((1, 2), (3, 4))
    limit: int | None = None


def test_a_config_comes_back_equal():
    cut = Cut(3, limit=7)
    assert to_dict(cut)["type"] == "Cut"
    assert from_dict(Cut, to_dict(cut)) == cut
    assert hash(from_dict(Cut, to_dict(cut))) == hash(cut)


def test_defaults_fill_what_is_not_said():
    assert from_dict(Cut, {"size": 3}) == Cut(3)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"size": 3, "sise": 4}, "Cut has no field sise; it has edges, limit, name, pairs, size"),
        ({"type": "Other", "size": 3}, "expected a Cut config, got Other"),
        ({"name": "y"}, r"Cut cannot be made of \['name'\]: .*size"),
    ],
)
def test_fields_that_do_not_fit_are_refused(fields, told):
    with pytest.raises(UsageError, match=told):
        from_dict(Cut, fields)


def test_what_is_no_config_is_refused():
    for wrong in (Cut, {"size": 3}):
        with pytest.raises(TypeError, match="dataclass instance"):
            to_dict(wrong)


def test_the_digest_changes_with_every_field_and_only_then():
    cut = Cut(3)
    changes = {"size": 4, "name": "y", "edges": (0.5,), "pairs": (), "limit": 0}
    digests = {digest(replace(cut, **{name: value})) for name, value in changes.items()} | {digest(cut)}
    assert len(digests) == len(changes) + 1
    assert digest(Cut(3)) == digest(cut)
    assert len(digest(cut)) == 12
