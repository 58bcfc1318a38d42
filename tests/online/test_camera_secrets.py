"""What is secret in an address stands in no output, however it is written and whatever comes of it."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from camera_servers import Camera, answer, answering, stream

from roadaware import addresses
from roadaware.addresses import Address, keep_secret, mask_secrets, read_address
from roadaware.cli import main
from roadaware.cli import watch as command
from roadaware.errors import UsageError
from roadaware.models.detector import FrameDetections
from roadaware.online import cameras
from roadaware.scenes.store import open_predictions

# The address, where HOST is host and port; what no output may hold; whether it can be read.
WRITTEN: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "plain": ("http://opera:Gehe1mWort@HOST/cam/1", ("opera", "Gehe1mWort"), True),
    "slash": ("http://opera:Gehe/1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), False),
    "hash": ("http://opera:Gehe#1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), False),
    "question": ("http://opera:Gehe?1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), False),
    "at": ("http://opera:Gehe@1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), True),
    "colon": ("http://opera:Gehe:1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), True),
    "encoded": ("http://opera:Gehe%2F1m%23Wort@HOST/cam/1", ("opera", "Gehe", "1m#Wort", "1m%23Wort"), True),
    "unicode": ("http://opera:Gehe1mWört@HOST/cam/1", ("opera", "Gehe1mWört", quote("Gehe1mWört")), True),
    "encoded unicode": (
        "http://opera:Gehe1mW%C3%B6rt@HOST/",
        ("opera", "Gehe1mWört", "Gehe1mW%C3%B6rt"),
        True,
    ),
    "upper case": ("HTTP://opera:Gehe1mWort@HOST/cam/1", ("opera", "Gehe1mWort"), True),
    "no user": ("http://:Gehe1mWort@HOST/cam/1", ("Gehe1mWort",), True),
    "user alone": ("http://Gehe1mWort@HOST/cam/1", ("Gehe1mWort",), True),
    "token": ("http://HOST/cam/1?token=Gehe1mWort&size=big", ("Gehe1mWort",), True),
    "signature": ("http://HOST/cam/1?a=1&X-Amz-Signature=0f3cab99", ("0f3cab99",), True),
    "fragment": ("http://HOST/cam/1#access_token=Gehe1mWort", ("Gehe1mWort",), True),
    "parameters": ("http://HOST/cam;session=Gehe1mWort/1", ("Gehe1mWort",), True),
    "in the path": ("http://HOST/user=opera&password=Gehe1mWort&channel=1", ("opera", "Gehe1mWort"), True),
    "behind its name": ("http://HOST/token/Gehe1mWort/1", ("Gehe1mWort",), True),
    "long part": ("http://HOST/live/8fe1a02277bc4410ad", ("8fe1a02277bc4410ad",), True),
    "backslash": ("http://opera:Gehe\\1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), False),
    "space": ("http://opera:Gehe 1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), False),
    "newline": ("http://opera:Gehe\n1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), False),
    "encoded newline": ("http://opera:Gehe%0D%0A1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), False),
    "quotes": ("http://opera:Gehe\"1m'Wort@HOST/cam/1", ("opera", "Gehe", "1m'Wort"), True),
    "signs": ("http://opera:Gehe$&+,;=1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), True),
    "broken percent": ("http://opera:Gehe%zz1mWort@HOST/cam/1", ("opera", "Gehe", "1mWort"), True),
    "open bracket": ("http://opera:Gehe1mWort@[::1", ("opera", "Gehe1mWort"), False),
    "wrong bracket": ("http://opera:Gehe1mWort@[::g]/", ("opera", "Gehe1mWort"), False),
    "port too large": ("http://opera:Gehe1mWort@127.0.0.1:99999/", ("opera", "Gehe1mWort"), False),
    "port of letters": ("http://opera:Gehe1mWort", ("opera", "Gehe1mWort"), False),
    "no host": ("http://opera:Gehe1mWort@/cam/1", ("opera", "Gehe1mWort"), False),
    "two dots": ("http://opera:Gehe1mWort@a..b/", ("opera", "Gehe1mWort"), False),
    "one slash": ("http:/opera:Gehe1mWort@HOST/cam/1", ("opera", "Gehe1mWort"), False),
    "no scheme": ("opera:Gehe1mWort@HOST/cam/1", ("opera", "Gehe1mWort"), False),
    "wrong scheme": ("rstp://opera:Gehe1mWort@HOST/cam/1", ("opera", "Gehe1mWort"), False),
    "space before": (" http://opera:Gehe1mWort@HOST/cam/1", ("opera", "Gehe1mWort"), False),
    "NUL": ("http://opera:Gehe\0Wort1@HOST/cam/1", ("opera", "Gehe", "Wort1"), False),
    "glob": ("opera:Gehe1mWort@HOST/*?[", ("opera", "Gehe1mWort"), False),
}


class Stub:
    """Finds the same car in every image."""

    kinds, av_labels, delay = {"agent": ("Ped", "Car")}, (), 0

    def reset(self) -> None:
        self.frame = 0

    def step(self, picture: object) -> list[FrameDetections]:
        self.frame += 1
        box, score = np.array([[5, 5, 40, 30]], np.float32), np.array([[0.1, 0.9]], np.float32)
        return [FrameDetections(self.frame - 1, box, score[0, 1:], score, np.zeros(0, np.float32))]

    def finish(self) -> list[FrameDetections]:
        return []


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "load_detector", lambda *given: Stub())
    hasty = functools.partial(cameras.Backoff, first_s=0.01, longest_s=0.01, attempts=2)
    monkeypatch.setattr(cameras, "Backoff", hasty)
    monkeypatch.setattr(addresses, "_secrets", set())
    addresses._pattern.cache_clear()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")


def _forms(secret: str) -> set[bytes]:
    """A secret as it may stand in a file."""
    plain = {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]}
    return {form.encode() for form in plain} | {secret.encode("unicode_escape"), secret.encode("utf-16-le")}


def _said(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, bytes]:
    capfd.readouterr()
    code = main([str(word) for word in words])
    out, err = capfd.readouterr()
    return code, out.encode() + err.encode()


def _leaks(folder: Path, told: bytes, secrets: tuple[str, ...]) -> list[str]:
    """Where a secret stands: in what was told, in the name of a file, or in one."""
    places = {"terminal": told}
    for path in sorted(folder.rglob("*")):
        places[f"name {path}"] = str(path.relative_to(folder)).encode()
        if path.is_file():
            places[str(path)] = path.read_bytes()
    return [
        f"{secret!r} in {place}"
        for secret in secrets
        for form in _forms(secret)
        for place, data in places.items()
        if form in data
    ]


@pytest.mark.parametrize("name", WRITTEN)
def test_an_address_that_cannot_be_watched_shows_no_secret(
    name: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text, secrets, readable = WRITTEN[name]
    busy = answering(answer("503 Gehe1mWort opera", Retry_After="opera"))
    with Camera(busy) as camera:
        given = text.replace("HOST", f"127.0.0.1:{camera.port}")
        for more in ((), ("-vv",)):
            code, told = _said(capfd, "watch", given, "--json", tmp_path / "said.json", *more)
            assert code == (3 if readable else 2), told.decode()
            assert (b"503" in told) == readable
            assert _leaks(tmp_path, told, secrets) == []
        assert camera.connections == (2 if readable else 0)


def _elsewhere(given: str) -> list[tuple[object, ...]]:
    """Requests in which an address stands where none belongs."""
    return [
        (given,),
        ("watch", given, "too", "many"),
        ("watch", "--nosuch", given),
        ("watch", "film.mp4", "--weights", given),
        ("watch", "film.mp4", f"--crossing={given}", "--name", given),
        ("read", given, "-vv"),
        ("read", "jaad", given),
        ("predict", given, given),
        ("train", given),
        ("label", "import", given, given),
        ("report", given),
        ("evaluate", "events", "--truth", given, "--predictions", given),
    ]


@pytest.mark.spread(12)
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("place", range(12))
def test_an_address_in_the_wrong_place_shows_no_secret(
    name: str, place: int, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text, secrets, _ = WRITTEN[name]
    words = _elsewhere(text.replace("HOST", "127.0.0.1:9"))[place]
    code, told = _said(capfd, *words)
    assert code in (2, 3, 4), told.decode()
    # A fault that breaks an address over two lines would hide a secret from the search.
    assert _leaks(tmp_path, told.replace(b"\n", b""), secrets) == []


@pytest.mark.slow
@pytest.mark.parametrize("end", ["gone", "whole"])
@pytest.mark.parametrize("name", [name for name, (_, _, readable) in WRITTEN.items() if readable])
def test_a_watch_keeps_no_secret_in_its_folder(
    name: str, end: str, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text, secrets, _ = WRITTEN[name]
    good = answer(body=stream(codec="mpeg4", form="matroska"))
    fault = answer("503 Gehe1mWort", Location="http://opera:Gehe1mWort@127.0.0.1:9/")
    with Camera(answering(good, good, fault)) as camera:
        given = text.replace("HOST", f"127.0.0.1:{camera.port}")
        words = ["--weights", "x", "--crossing", "none", "-vv", "--json", "-"]
        code, told = _said(capfd, "watch", given, *words, *(["--seconds", "0.2"] if end == "whole" else []))
    assert code == (0 if end == "whole" else 3), told.decode()
    found = list(tmp_path.glob("runs/watch-http-*"))
    assert len(found) == 1
    assert {"events.jsonl", "predictions", "summary.json", "video.mp4"} <= {
        path.name for path in found[0].iterdir()
    }
    summary = json.loads((found[0] / "summary.json").read_text())
    assert (summary["ended"]["reason"], summary["frames"] > 0) == ("time" if end == "whole" else "gone", True)
    assert ("503" in summary["ended"]["message"]) == (end == "gone")
    assert open_predictions(found[0] / "predictions").videos["video"].item().startswith("http://127.0.0.1")
    assert _leaks(tmp_path, told, secrets) == []


def test_a_fault_of_ours_shows_no_secret_either(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = "rtsp://opera:Gehe%2F1mWort@camera/1?token=T0kenT0ken"

    def fails(source: object, **_: Any) -> None:
        raise ZeroDivisionError(f"at {source!r}, {given}: Gehe/1mWort, T0kenT0ken")

    monkeypatch.setattr("roadaware.online.sources.NetworkStream", fails)
    code, told = _said(capfd, "watch", given, "-vv")
    assert code == 70
    assert b"ZeroDivisionError" in told
    assert _leaks(tmp_path, told, ("opera:", "Gehe/1mWort", "Gehe%2F1mWort", "T0kenT0ken")) == []


def test_outputs_cannot_be_named_after_a_secret(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    given = "http://opera:Gehe1mWort@127.0.0.1:9/1"
    for words in (["--out", "runs/Gehe1mWort"], ["--name", "yard Gehe1mWort"]):
        code, told = _said(capfd, "watch", given, *words)
        assert code == 2
        assert _leaks(tmp_path, told, ("opera", "Gehe1mWort")) == []


def test_addresses_are_read_as_their_parts() -> None:
    found = read_address("RTSP://me:p%40ss:w@Camera.local:8554/a/b?x=1#z")
    assert found == Address(
        "rtsp",
        "me",
        "p@ss:w",
        "camera.local",
        8554,
        "/a/b",
        "x=1",
        "RTSP://me:p%40ss:w@Camera.local:8554/a/b?x=1",
    )
    assert (found.shown, repr(found)) == (
        "rtsp://camera.local:8554/a/b",
        "Address('rtsp://camera.local:8554/a/b')",
    )
    assert read_address("http://[::1]:80/x").origin == "http://[::1]"
    assert read_address("https://bücher.example").host == "xn--bcher-kva.example"
    assert read_address("udp://@:1234").port == 1234
    assert read_address("http://h/Streaming/Channels/101").shown == "http://h/Streaming/Channels/101"
    for wrong in (
        "udp://239.0.0.1",
        "http://",
        "http://h:0/",
        "http://h:65536",
        "http://h:8 0",
        "http://-",
        "x",
    ):
        with pytest.raises(UsageError):
            read_address(wrong)


def test_words_of_the_program_are_not_taken_for_secrets() -> None:
    keep_secret("rtsp://admin:1234@camera/live?timeout=5000&transport=tcp")
    assert (
        mask_secrets("frame 12,345 at 1234.5 s, admin, tcp, http://")
        == "frame 12,345 at 1234.5 s, admin, tcp, http://"
    )
    assert mask_secrets("admin:1234@camera") == "***camera"


@pytest.mark.parametrize("text", ["http://", "rtsp:///", "https://#", "udp://"])
def test_a_scheme_alone_is_shown_as_what_it_is(text: str) -> None:
    keep_secret(text)
    assert mask_secrets(f"{text} is no address") == f"{text} is no address"
    with pytest.raises(UsageError, match="names no"):
        read_address(text)
