"""A JSON file read around its long list, and the list in parts: what `json` reads, at any size of blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roadaware.datasets import read
from roadaware.errors import InputError
from roadaware.formats import coco_sets
from roadaware.io import json_stream
from roadaware.io.json_stream import iterate_parts, read_around
from roadaware.io.sources import digest, open_file

TEXTS = st.text(st.sampled_from('a"\\[]{},: é\n'), max_size=6) | st.just("annotations")
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
QUIET = settings(
    deadline=None, database=None, derandomize=True, max_examples=150, suppress_health_check=list(HealthCheck)
)


def read_streamed(path: Path) -> tuple[Any, list[Any] | None]:
    """The rest of a document, and the elements of its list."""
    with open_file(path) as stream:
        around = read_around(stream, "annotations", path.name)
        assert around.digest == digest(path.read_bytes())
        if around.parts is None:
            return around.rest, None
        return around.rest, [each for part in iterate_parts(stream, around.parts, path.name) for each in part]


@QUIET
@given(
    st.dictionaries(TEXTS.filter(lambda name: name != "annotations"), VALUES, max_size=3),
    st.lists(VALUES, max_size=9) | VALUES.filter(lambda value: not isinstance(value, list)),
    st.integers(0, 3), st.sampled_from([None, 1, 3]), st.booleans(), st.integers(1, 40),
)  # fmt: skip
def test_it_is_what_json_reads_at_any_size_of_blocks(
    tmp_path_factory: pytest.TempPathFactory, rest: dict[str, Any], listed: Any, place: int, indent: int | None,
    plain: bool, block: int,
) -> None:  # fmt: skip
    members = list(rest.items())
    members.insert(place, ("annotations", listed))
    path = tmp_path_factory.getbasetemp() / "streamed.json"
    path.write_text(json.dumps(dict(members), indent=indent, ensure_ascii=plain), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "BLOCK", block)
        patch.setattr(json_stream, "_AHEAD", 90)
        found, elements = read_streamed(path)
    if isinstance(listed, list):
        assert elements == listed
        assert found == {**rest, "annotations": []}
    else:
        assert elements is None
        assert found == dict(members)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"annotations": [1, 2', "does not end"),
        ('{"annotations": [1,, 2]}', "strict JSON"),
        ('{"annotations": [1, 2,]}', "strict JSON"),
        ('{"annotations": [,]}', "strict JSON"),
        ('{"annotations": [1 2]}', "strict JSON"),
        ('{"annotations": [NaN]}', "strict JSON"),
        ('{"annotations": [{"a": 1, "a": 2}]}', "stands twice"),
        ('{"annotations": [1], "annotations": [2]}', "stands twice"),
        ('{"annotations": [1]', "strict JSON"),
        ('{"annotations": ["\xff"]}', "UTF-8"),
        ("", "empty"),
        ("\\" * 300, "strict JSON"),
    ],
)
def test_what_is_no_json_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, says: str
) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    for block in (3, 1 << 20):
        monkeypatch.setattr(json_stream, "BLOCK", block)
        with pytest.raises(InputError, match=says):
            read_streamed(path)


def test_a_large_coco_file_is_read_in_parts_as_it_is_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With tracks, an odd annotation, ids that stand twice or are none, and categories behind the annotations."""
    images = [{"id": n, "file_name": f"{n}.jpg", "width": 640, "height": 480} for n in range(1, 40)]
    annotations: list[Any] = [
        {"id": n, "image_id": 1 + n % 39, "category_id": 1 + n % 2, "bbox": [n % 300, 5.25, 20 + n % 7, 40.5],
         "iscrowd": int(n % 11 == 0), "track_id": n // 39}
        for n in range(900)
    ]  # fmt: skip
    annotations[100]["category_id"] = 9
    annotations[200]["bbox"] = "none"
    annotations[300] = 7
    categories = [{"id": 1, "name": "person"}, {"id": 2, "name": "car"}]
    for wrong in (False, True):
        if wrong:
            annotations[800]["id"], annotations[801]["id"] = 5, "x"
        path = tmp_path / "annotations.json"
        path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
        at_once = read("coco", path, cache=False)
        with monkeypatch.context() as patch:
            patch.setattr(coco_sets, "LARGEST_WHOLE", 0)
            patch.setattr(json_stream, "BLOCK", 5000)
            in_parts = read("coco", path, cache=False)
            nothing = tmp_path / "nothing" / "annotations.json"
            nothing.parent.mkdir(exist_ok=True)
            nothing.write_text(json.dumps({"images": images, "annotations": [], "categories": categories}))
            assert read("coco", nothing.parent, cache=False).boxes.is_empty()
        assert len(in_parts.rejected) == 3 + 2 * wrong
        assert len(in_parts.boxes) == 897 - 2 * wrong
        assert in_parts.meta == at_once.meta
        for name, table in at_once.tables().items():
            assert in_parts.tables()[name].equals(table), name
