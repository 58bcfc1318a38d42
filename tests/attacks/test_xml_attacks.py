"""XML that would exhaust the machine, read its secrets or call home: refused fast, and nothing gets out."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import damage
import pytest
from sets import NativeSet, copied, edit
from watched import Watch

BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "billion_laughs": damage.laughs,
    "quadratic_entity": damage.quadratic,
    "depth_100k": damage.deep,
    "attribute_of_12_mb": damage.long_attribute,
    "attribute_of_12_mb_in_a_head": lambda data: damage.swap(
        data, b"<meta>", b"<meta a='" + b"a" * 12_582_912 + b"'>"
    ),
    "entity_in_utf_16": lambda data: b"\xff\xfe" + damage.laughs(data).decode().encode("utf-16-le"),
    "entity_behind_a_mark": lambda data: b"\xef\xbb\xbf \r\n" + damage.laughs(data),
    "a_million_open_boxes": lambda data: damage.inside_root(data, b"<box " * 1_000_000),
    "a_million_open_tracks": lambda data: damage.inside_root(data, b"<track " * 1_000_000),
    "a_million_attributes": lambda data: damage.swap(
        data, b"<meta>", b"<meta " + b'a="" ' * 1_000_000 + b">"
    ),
    "a_million_empty_boxes": lambda data: damage.inside_root(data, b"<box/>" * 1_000_000 + b"<x>"),
    "a_length_of_10_digits": lambda data: damage.swap(data, rb"(?<=<size>)\d+", b"9999999999"),
    "a_length_of_5000_digits": lambda data: damage.swap(data, rb"(?<=<size>)\d+", b"9" * 5000),
    "a_length_behind_zeros": lambda data: damage.swap(data, rb"(?<=<size>)\d+", b"000000000001999999999"),
    "a_frame_of_5000_digits": lambda data: damage.swap(data, rb'(?<=<box frame=")\d+', b"9" * 5000),
}


class Listener:
    """A local server that only counts who connects."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}/x.dtd"
        self.callers = 0
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                caller, _ = self.socket.accept()
            except OSError:
                return
            self.callers += 1
            caller.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    held = Listener()
    yield held
    held.socket.close()


def withstand(
    native: NativeSet, root: Path, watched: Callable[..., list[dict[str, Any]]], bombs: list[str]
) -> None:
    """Read the set with each bomb in one process that watches itself."""
    native.alone(root)
    places = []
    for name in bombs:
        place = copied(root, root.parent / name)
        edit(place / native.main, BOMBS[name])
        places.append(place)
    for name, answer in zip(bombs, watched(native, places), strict=True):
        if name != "a_frame_of_5000_digits":
            assert answer["ended"] == "InputError", name
        assert answer["cpu_s"] < 2, (name, answer["cpu_s"])
        assert answer["grown_mb"] < 160, (name, answer["grown_mb"])
        assert answer["seen"] == [], name
        assert len(answer["text"]) < 1_000_000, name


@pytest.mark.slow
def test_bombs_are_refused_fast_and_in_little_memory(
    native: NativeSet, root: Path, watched: Callable[..., list[dict[str, Any]]]
) -> None:
    """Each bomb for one of the sets, which are read by the same code."""
    withstand(native, root, watched, list(BOMBS)[native.name == "pie" :: 2])


@pytest.mark.slow
def test_all_bombs_are_refused_fast_and_in_little_memory(
    native: NativeSet, root: Path, watched: Callable[..., list[dict[str, Any]]]
) -> None:
    withstand(native, root, watched, list(BOMBS))


def leaks(secret: Path, url: str) -> dict[str, Callable[[bytes], bytes]]:
    """Ways to make a careless parser fetch a file or call a server."""
    file = secret.as_uri()
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{}" parse="text"/>'
    hint = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:noNamespaceSchemaLocation="{}"'
    return {
        "entity_of_a_file": lambda data: damage.external_entity(data, file),
        "entity_of_a_server": lambda data: damage.external_entity(data, url),
        "entity_of_an_ftp_server": lambda data: damage.external_entity(data, url.replace("http", "ftp")),
        "dtd_of_a_file": lambda data: damage.external_dtd(data, file),
        "dtd_of_a_server": lambda data: damage.external_dtd(data, url),
        "parameter_entity_of_a_file": lambda data: damage.parameter_entity(data, file),
        "parameter_entity_of_a_server": lambda data: damage.parameter_entity(data, url),
        "public_dtd": lambda data: damage.before_root(data, f'<!DOCTYPE a PUBLIC "-//X//Y" "{url}">'),
        "include_of_a_file": lambda data: damage.inside_root(data, include.format(file)),
        "include_of_a_server": lambda data: damage.inside_root(data, include.format(url)),
        "schema_of_a_server": lambda data: damage.swap(
            data, rb"<annotations", f"<annotations {hint.format(url)}".encode()
        ),
        "style_sheet_of_a_server": lambda data: damage.before_root(
            data, f'<?xml-stylesheet type="text/xsl" href="{url}"?>'
        ),
        "undeclared_entity": lambda data: damage.swap(data, rb'(?<=name="id">)[^<]*', b"&secret;"),
    }


@pytest.mark.slow
def test_nothing_outside_is_fetched(
    native: NativeSet,
    root: Path,
    tmp_path: Path,
    listener: Listener,
    watched: Callable[..., list[dict[str, Any]]],
) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("canary-7f3a9c")
    native.alone(root)
    places = []
    attacks = leaks(secret, listener.url)
    for name, change in attacks.items():
        place = copied(root, root.parent / name)
        edit(place / native.main, change)
        places.append(place)
    for name, answer in zip(attacks, watched(native, places), strict=True):
        assert "canary" not in answer["text"], name
        assert answer["seen"] == [], name
        harmless = name.startswith(("include", "schema", "style"))
        assert answer["ended"] == ("read" if harmless else "InputError"), name
    assert listener.callers == 0


@pytest.mark.parametrize(
    ("event", "arguments"),
    [
        ("open", ("/etc/hostname", "r", 0)),
        ("open", (b"/etc/hostname", "r", 0)),
        ("open", ("/place/inside", "wb", 0)),
        ("socket.connect", ("127.0.0.1",)),
        ("subprocess.Popen", ("ls",)),
        ("os.system", ("ls",)),
        ("os.remove", ("/place/inside",)),
        ("pickle.find_class", ("os", "system")),
    ],
)
def test_the_watch_would_have_seen(event: str, arguments: tuple[object, ...]) -> None:
    watch = Watch()
    watch.place = "/place"
    watch("open", ("/place/inside", "rb", 0))
    assert watch.seen == []
    watch(event, arguments)
    assert len(watch.seen) == 1


def test_the_listener_would_have_heard(listener: Listener) -> None:
    with socket.create_connection(listener.socket.getsockname()) as caller:
        caller.recv(1)
    assert listener.callers == 1
