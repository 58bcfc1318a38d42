"""docs/metrics.md names every metric and every field of the configuration, with its values."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from roadaware.metrics.pedestrians import METRIC_NAMES, PedestrianConfig

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")


def test_every_metric_is_named():
    rates = [name for name in METRIC_NAMES if not name.startswith(("soft_", "hard_"))]
    assert [name for name in rates if f"`{name}`" not in PAGE] == [], "docs/metrics.md should name them"
    assert "`soft_...`" in PAGE
    assert "`hard_...`" in PAGE


@pytest.mark.parametrize("field", [f.name for f in fields(PedestrianConfig) if f.name != "task"])
def test_every_field_stands_with_its_two_values(field):
    rows = [line for line in PAGE.splitlines() if re.match(rf"\| [^|]*`{field}`", line)]
    cells = [cell.strip() for cell in rows[-1].split("|")][2:4]
    for cell, make in zip(cells, (PedestrianConfig.reference, PedestrianConfig.default), strict=True):
        value = getattr(make("risk"), field)
        text = value if isinstance(value, str) else json.dumps(value)
        assert text in cell.replace("`", "")
