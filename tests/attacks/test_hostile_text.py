"""Text that means something to a terminal, a page, a shell or a sheet is data and stays data."""

from __future__ import annotations

import re
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import pytest
from sets import NativeSet, edit, rows_add_up

from roadaware.errors import FindingsError, InputError
from roadaware.scenes.store import open_scenes, save

PAYLOADS = {
    "script": "<script>alert(1)</script>",
    "image": '"><img src=x onerror=alert(1)>',
    "link": "javascript:alert(1)",
    "end_of_script": "</script><svg onload=alert(1)>",
    "template": "{{7*7}}{% raw %}${7*7}",
    "lookup": "${jndi:ldap://127.0.0.1/a}",
    "formula": '=HYPERLINK("http://127.0.0.1","x")',
    "formula_at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "shell": "$(touch /tmp/canary); `id` | sh",
    "format": "%s%n%x {0.__class__} {}",
    "sql": "'; DROP TABLE boxes; --",
    "path": "../../../../etc/passwd",
    "math": "$\\frac{1}{0}$",
    "right_to_left": "a\u202egpj.exe",
    "line_separator": "a\u2028b\u2029c",
    "c1_escape": "a\x9b2Jb",
    "delete": "a\x7fb",
    "zero_width": "a\u200bb\ufeffc",
    "combining": "a" + "\u0301" * 50,
    "emoji": "🚶\U0001f3fd\u200d➡",
    "long": "n" * 5000,
}
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def _renamed(data: bytes, payload: str) -> tuple[bytes, str]:
    """The first track, in its element texts and its attribute values, under another id."""
    found = re.search(rb'(?<=name="id">)[^<]*', data)
    assert found is not None
    old = found[0].decode()
    return data.replace(f'name="id">{old}<'.encode(), f'name="id">{escape(payload)}<'.encode()), old


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_an_id_survives_as_it_is(native: NativeSet, root: Path, tmp_path: Path, payload: str) -> None:
    native.alone(root)
    data, old = _renamed((root / native.main).read_bytes(), payload)
    (root / native.main).write_bytes(data)
    for name in native.others:
        text = (root / name).read_text()
        (root / name).write_text(text.replace(f'id="{old}"', f"id={quoteattr(payload)}"))
    scenes = native.read(root)
    assert scenes.tubes.filter(name=payload).height == 1
    assert not scenes.boxes.join(scenes.tubes.filter(name=payload), on="tube", how="semi").is_empty()
    rows_add_up(scenes)
    save(scenes, tmp_path / "saved")
    assert open_scenes(tmp_path / "saved") == scenes


@pytest.mark.slow
@pytest.mark.spread(2)
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_messages_about_it_are_printable(native: NativeSet, root: Path, payload: str) -> None:
    native.alone(root)
    data, _ = _renamed((root / native.main).read_bytes(), payload)
    twice = data.replace(b"</track>", b"</track>" + re.findall(rb"<track.*?</track>", data)[0], 1)
    hostile = escape(payload).encode()
    twice = re.sub(rb'(?<=name="occlusion">)[a-z]+', lambda _: hostile, twice, count=1)
    (root / native.main).write_bytes(twice)
    scenes = native.read(root)
    told = scenes.rejected["item"].to_list() + scenes.rejected["reason"].to_list()
    told += [f"{warning['what']} {warning['example']}" for warning in scenes.meta.notes["warnings"]]
    assert len(told) >= 3
    for text in told:
        assert not UNPRINTABLE.search(text or "")
        assert len(text or "") < 1000
    with pytest.raises(FindingsError) as caught:
        native.read(root, strict=True)
    assert not UNPRINTABLE.search(str(caught.value))


@pytest.mark.parametrize("payload", ["\x1b[2J", "\x1b]8;;http://x\x07y\x1b]8;;\x07", "\x00", "\x08\x08"])
def test_control_characters_are_no_xml(native: NativeSet, root: Path, payload: str) -> None:
    native.alone(root)
    edit(root / native.main, lambda data: _renamed(data, payload)[0])
    with pytest.raises(InputError, match="not well-formed") as caught:
        native.read(root)
    assert not UNPRINTABLE.search(str(caught.value))


def test_character_references_are_read_as_characters(native: NativeSet, root: Path) -> None:
    native.alone(root)
    edit(root / native.main, lambda data: _renamed(data, "PAYLOAD")[0].replace(b"PAYLOAD", b"&#60;&#x202e;b"))
    assert native.read(root).tubes.filter(name="<\u202eb").height == 1


def test_a_root_with_a_hostile_name_is_told_printably(native: NativeSet, root: Path) -> None:
    hostile = root.parent / "set\x1b[2J\u202e\n<b>"
    root.rename(hostile)
    native.alone(hostile)
    native.read(hostile)
    (hostile / native.main).write_bytes(b"<no")
    with pytest.raises(InputError) as caught:
        native.read(hostile)
    assert not UNPRINTABLE.search(str(caught.value))
    assert "\\x1b[2J" in str(caught.value)
