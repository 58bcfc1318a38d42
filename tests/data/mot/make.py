"""Write a tiny set in MOT's format: two sequences with a text of tracks and what is known of each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

FORMAT = "text"
MAIN = "street/gt/gt.txt"
VIDEO = "street"
OTHERS = ()
WARNS = False
"""What is odd in a row of MOT is refused with the row, but for boxes without a track that stand twice."""
BAD_ROW = "upside down"
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    # A text file that breaks off is seen where a character does.
    "cut": lambda data: data[: len(data) // 2] + b"\xff\xfe\xff",
    "bad_row": lambda data: data.replace(b"20.5,40", b"-20.5,40", 1),
    "changed": lambda data: data.replace(b"20.5,40", b"21.5,40.5", 1),
    "same_size": lambda data: data.replace(b"20.5,40", b"21.5,40", 1),
}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write two sequences with a walker, a car and a box to ignore.

    Args:
        root: where to; made with its parents.
        frames: of each sequence.
    """
    for name in ("street", "yard"):
        folder = root / name / "gt"
        folder.mkdir(parents=True, exist_ok=True)
        lines = []
        for frame in range(1, frames + 1):
            lines += [
                f"{frame},1,{10 + frame},20.25,20.5,40,1,1,1",
                f"{frame},2,100,50.5,60,30,1,2,0.5",
                f"{frame},-1,300,50,60,30,0,2,0.5",
            ]
        (folder / "gt.txt").write_text("\n".join(lines) + "\n")
        (folder / "labels.txt").write_text("person\ncar\n")
        info = f"[Sequence]\nname={name}\nframeRate=10\nseqLength={frames}\nimWidth=640\nimHeight=480\n"
        (root / name / "seqinfo.ini").write_text(info)
    return root


def with_video(root: Path, name: str) -> None:
    """A sequence by another name, as far as a folder can have it."""
    folder = root / name.replace("/", "").encode()[:255].decode(errors="ignore") / "gt"
    folder.mkdir(parents=True)
    for part in ("gt.txt", "labels.txt"):
        (folder / part).write_bytes((root / "street" / "gt" / part).read_bytes())


def others_in(root: Path) -> tuple[str, ...]:
    """What lies beside the main file."""
    return ("street/seqinfo.ini", "street/gt/labels.txt")
