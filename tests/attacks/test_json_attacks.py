"""JSON that would exhaust the machine or mean something elsewhere: refused fast or kept as data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import damage
import pytest
from sets import SETS, NativeSet, copied, edit, rows_add_up, tree
from test_hostile_text import PAYLOADS, UNPRINTABLE
from test_zip_attacks import NAMES

from roadaware.errors import FindingsError, InputError
from roadaware.scenes.store import open_scenes, save

JSON = [name for name, each in SETS.items() if each.maker.FORMAT == "json"]
MEBIBYTE = 1 << 20
Watched = Callable[[NativeSet, list[Path]], list[dict[str, Any]]]


@pytest.fixture(params=JSON)
def native(request: pytest.FixtureRequest) -> NativeSet:
    """Each set of JSON files."""
    return SETS[request.param]


def more(text: Callable[[], bytes]) -> Callable[[bytes], bytes]:
    """The document with one more member, which is made when it is asked for."""
    return lambda data: damage.one_more(data, text())


BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "depth_100k": more(lambda: b"[" * 100_000 + b"]" * 100_000),
    "depth_100k_of_objects": more(lambda: b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "a_million_open_lists": lambda data: data[:-1] + b', "more": ' + b"[" * MEBIBYTE,
    "an_integer_of_5000_digits": more(lambda: b"9" * 5000),
    "an_integer_of_4_million_digits": more(lambda: b"-" + b"9" * (4 * MEBIBYTE)),
    "an_unfinished_text_of_8_mb": lambda data: data[:-1] + b', "more": "' + b"a" * (8 * MEBIBYTE),
    "a_name_twice_among_100k": more(
        lambda: b"{" + b",".join(b'"%d":0' % n for n in range(100_000)) + b',"0":1}'
    ),
    "garbage_behind_the_end": lambda data: data + b" " * (8 * MEBIBYTE) + b"x",
}
HARMLESS: dict[str, Callable[[bytes], bytes]] = {
    "8_mb_of_blanks": lambda data: data + b" " * (8 * MEBIBYTE),
    "a_text_of_8_mb": more(lambda: b'"' + b"a" * (8 * MEBIBYTE) + b'"'),
    "a_million_empty_lists": more(lambda: b"[" + b"[]," * MEBIBYTE + b"[]]"),
    "a_million_names": more(lambda: b"{" + b",".join(b'"%d":0' % n for n in range(MEBIBYTE)) + b"}"),
}


def counts(native: NativeSet) -> dict[str, Callable[[Any], None]]:
    """Numbers that a careless reader would make room for."""
    if hasattr(native.maker, "numbers"):
        own: dict[str, Callable[[Any], None]] = native.maker.numbers()
        return own

    def at_video(key: str, value: Any) -> Callable[[Any], None]:
        return lambda content: next(iter(content["db"].values())).update({key: value})

    def at_frame(key: str) -> Callable[[Any], None]:
        def change(content: Any) -> None:
            holder = next(iter(content["db"].values())) if "db" in content else content
            holder["frames"][key] = holder["frames"].pop("2")

        return change

    found = {f"frame_{key}": at_frame(key) for key in ("9" * 8, "9" * 300, "99999999999")}
    if native.name == "road":
        found |= {f"numf_{value}": at_video("numf", value) for value in (10_000_000, 10**9, 10**18)}
    return found


def withstand(native: NativeSet, root: Path, watched: Watched, bombs: list[str]) -> None:
    """Read the set with each number and with each bomb in one process that watches itself."""
    native.alone(root)
    data = (root / native.main).read_bytes()
    numbers = counts(native)
    places = {name: copied(root, root.parent / name[:40]) for name in (*numbers, *bombs)}
    for name, alter in numbers.items():
        content = json.loads(data)
        alter(content)
        (places[name] / native.main).write_text(json.dumps(content))
    for name in bombs:
        edit(places[name] / native.main, (BOMBS | HARMLESS)[name])
    answers = dict(zip(places, watched(native, list(places.values())), strict=True))
    for name in numbers:
        answer = answers[name]
        assert answer["ended"] in ("InputError", "read"), name
        assert answer["cpu_s"] < 1, (name, answer["cpu_s"])
        assert answer["grown_mb"] < 64, (name, answer["grown_mb"])
    for name in bombs:
        answer = answers[name]
        size = (places[name] / native.main).stat().st_size / MEBIBYTE
        assert answer["ended"] == ("InputError" if name in BOMBS else "read"), (name, answer["text"][:300])
        assert answer["cpu_s"] < 4, (name, answer["cpu_s"])
        assert answer["grown_mb"] < 64 + 8 * size, (name, answer["grown_mb"])
        assert answer["seen"] == [], name
        assert len(answer["text"]) < 1_000_000, name


@pytest.mark.slow
def test_numbers_and_bombs_cost_little_time_and_memory(
    native: NativeSet, root: Path, watched: Watched
) -> None:
    """A third of the bombs for each format, each bomb for two formats or more."""
    withstand(native, root, watched, list(BOMBS | HARMLESS)[JSON.index(native.name) % 3 :: 3])


@pytest.mark.slow
def test_numbers_and_all_bombs_cost_little_time_and_memory(
    native: NativeSet, root: Path, watched: Watched
) -> None:
    withstand(native, root, watched, list(BOMBS | HARMLESS))


def renamed(native: NativeSet, data: bytes, payload: str) -> bytes:
    """The document with one track's name, in its tubes and boxes, put for another."""
    if hasattr(native.maker, "with_name"):
        return bytes(native.maker.with_name(data, payload))
    old = {"road": "544e13cc-001-01", "vott": "12"}[native.name]
    text = data.decode()
    if native.name == "road":
        return text.replace(f'"{old}"', json.dumps(payload)).encode()
    return text.replace(f'"id": {old},', f'"id": {json.dumps(payload)},').encode()


@pytest.mark.slow
@pytest.mark.spread(4)
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_a_name_survives_as_it_is(native: NativeSet, root: Path, tmp_path: Path, payload: str) -> None:
    native.alone(root)
    edit(root / native.main, lambda data: renamed(native, data, payload))
    scenes = native.read(root)
    owners, owner = (scenes.tubes, "tube") if len(scenes.tubes) else (scenes.sounds, "sound")
    named = owners.filter(name=payload)
    assert not scenes.boxes.join(named, on=owner, how="semi").is_empty()
    rows_add_up(scenes)
    save(scenes, tmp_path / "saved")
    assert open_scenes(tmp_path / "saved") == scenes


def hostile(content: Any, payload: str) -> None:
    """Put a text where a frame, a box and a label are due."""
    holder = next(iter(content["db"].values())) if "db" in content else content
    holder["frames"][payload] = {"annos": {payload: {"box": payload}}}
    frame = holder["frames"]["2"]
    if "db" in content:
        frame["annos"][payload] = {"box": [payload, 1, 2, 3]}
        holder["agent_tubes"][payload] = {"label_id": payload, "annos": {payload: payload}}
    else:
        frame.append({"x1": payload, "tags": [payload]})


@pytest.mark.slow
@pytest.mark.spread(4)
@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS)
def test_messages_about_it_are_printable(native: NativeSet, root: Path, payload: str) -> None:
    """A label, a frame, a box and a video of that name are refused or told in words fit for a terminal."""
    native.alone(root)
    content = json.loads((root / native.main).read_bytes())
    (native.maker.hostile if hasattr(native.maker, "hostile") else hostile)(content, payload)
    (root / native.main).write_text(json.dumps(content))
    scenes = native.read(root)
    told = scenes.rejected["item"].to_list() + scenes.rejected["reason"].to_list()
    told += [f"{warning['what']} {warning['example']}" for warning in scenes.meta.notes["warnings"]]
    assert len(told) >= 2
    for text in told:
        assert not UNPRINTABLE.search(text or "")
        assert len(text or "") < 1000
    with pytest.raises(FindingsError) as caught:
        native.read(root, strict=True)
    assert not UNPRINTABLE.search(str(caught.value))


@pytest.mark.parametrize("payload", ["\x1b[2J", "\x00", "\x07"])
def test_raw_control_characters_are_no_json(native: NativeSet, root: Path, payload: str) -> None:
    native.alone(root)
    edit(
        root / native.main,
        lambda data: data.replace(f'"{native.member}"'.encode(), f'"{payload}"'.encode(), 1),
    )
    with pytest.raises(InputError, match="control character") as caught:
        native.read(root)
    assert not UNPRINTABLE.search(str(caught.value))


@pytest.mark.parametrize("name", NAMES)
def test_names_that_climb_lead_nowhere(native: NativeSet, root: Path, name: str) -> None:
    """Names of videos are data: nothing is opened by them; those of members condemn their archive."""
    archive = damage.with_member(damage.packed(root, root.parent / "set.zip"), name, b"{}")
    before = tree(root.parent)
    with pytest.raises(InputError, match="leads out"):
        native.read(archive)
    assert tree(root.parent) == before
