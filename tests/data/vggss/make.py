"""Write a tiny set in VGG-SS's native format: lists of items with boxes in shares of the image."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

FORMAT = "json"
MAIN = "vggss.json"
VIDEO = "zpWuikVorYg_000032"
OTHERS = ()
BAD_ROW = "upside down"
MEMBER = "bbox"
_BOX = re.compile(rb"\[\[([0-9.-]+), ([0-9.-]+), ([0-9.-]+), ([0-9.-]+)\]")
DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "bad_row": lambda data: _BOX.sub(rb"[[\3, \2, \1, \4]", data, count=1),
    "changed": lambda data: _BOX.sub(rb"[[0.0, \2, \3, \4]", data, count=1),
    "same_size": lambda data: data.replace(b"elk bugling", b"elk jumping", 1),
}


def make(root: Path, *, frames: int = 5) -> Path:
    """Write two files: one with one item, one with several."""
    root.mkdir(parents=True, exist_ok=True)
    first, *others = items(max(frames, 4))
    (root / MAIN).write_text(json.dumps([first]), encoding="utf-8")
    (root / "more.json").write_text(json.dumps(others), encoding="utf-8")
    return root


def items(count: int) -> list[dict[str, Any]]:
    """The first has two boxes, every second of the others too."""
    boxes = [[0.403125, 0.253125, 0.6, 0.75], [0.0, 0.5, 0.25, 1]]
    found: list[dict[str, Any]] = [{"file": VIDEO, "class": "elk bugling", "bbox": boxes}]
    for n in range(1, count):
        boxes = [[0.1 * n, 0, 0.5 + 0.1 * (n % 4), 1], [0.0, 0.478125, 0.25, 0.959375]]
        label = ("airplane", "playing cello", "airplane")[n % 3]
        found.append({"file": f"clip{n:07d}_{n:06d}", "class": label, "bbox": boxes[: 1 + n % 2]})
    return found


def with_video(root: Path, name: str) -> None:
    """Add an item of that name to the main file."""
    held = json.loads((root / MAIN).read_bytes())
    held.append({**held[0], "file": name})
    (root / MAIN).write_text(json.dumps(held), encoding="utf-8")


def with_name(data: bytes, name: str) -> bytes:
    """The file with its item called otherwise."""
    content = json.loads(data)
    content[0]["file"] = name
    return json.dumps(content).encode()


def hostile(content: Any, text: str) -> None:
    """Put a text where an item, a class, boxes and a number are due."""
    content += [text, {"file": text, "class": [text]}, {"file": text, "class": text, "bbox": text}]
    content[0]["bbox"][0][1] = text


def numbers() -> dict[str, Callable[[Any], None]]:
    """Numbers that a careless reader would make room for."""
    huge = (10_000_000, 10**9, 10**18, 10**300)
    return {
        f"corner_{value}"[:24]: lambda content, v=value: content[0]["bbox"][0].__setitem__(2, v)
        for value in huge
    }
