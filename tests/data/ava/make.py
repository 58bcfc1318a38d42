"""Write a tiny set in AVA's native format: three videos in a csv, with a label map and excluded moments."""

from __future__ import annotations

from pathlib import Path

FORMAT = "csv"
MAIN = "ava_val_v2.2.csv"
VIDEO = "video_0002"
OTHERS = ()
SOLE = True
LABELS = "ava_action_list_v2.2.pbtxt"
EXCLUDED = "ava_val_excluded_timestamps_v2.2.csv"
ACTIONS = {1: "bend/bow (at the waist)", 11: "sit", 12: "stand", 14: "walk", 80: "watch (a person)"}
COLUMNS = ("video", "frame", "x1", "y1", "x2", "y2", "action", "person")
HEADER = False
SHARES = True
WRONG_CELLS = {
    "case_63_person_0_5": ("person", b"0.5", "person"),
    "case_63_action_of_letters": ("action", b"abc", "action should be a whole number"),
    "case_63_action_12_0": ("action", b"12.0", "action should be a whole number"),
}


def make(root: Path, *, frames: int = 6) -> Path:
    """Write the set.

    Args:
        root: where to; made with its parents.
        frames: moments of each video, at least 4.
    """
    root.mkdir(parents=True, exist_ok=True)
    (root / MAIN).write_text("".join(f"{row}\n" for row in rows(max(frames, 4))), encoding="utf-8")
    entries = "".join(f'item {{\n  name: "{name}"\n  id: {n}\n}}\n' for n, name in ACTIONS.items())
    (root / LABELS).write_text(entries, encoding="utf-8")
    (root / EXCLUDED).write_text(f"{VIDEO},0903\n-5KQ66BBWC4,0904\n", encoding="utf-8")
    return root


def rows(moments: int) -> list[str]:
    """Two persons in each moment but the last, which has a box without action and a moment without a box."""
    found = []
    for video in ("-5KQ66BBWC4", VIDEO, "video_0003"):
        for moment in range(902, 901 + moments):
            left = f"0.{moment % 7}31"
            found += [f"{video},{moment:04d},{left},0.162,0.970,0.995,{action},0" for action in (12, 80)]
            found.append(f"{video},{moment:04d},0.5,0.25,0.625,0.75,{(1, 11, 14)[moment % 3]},7")
        found.append(f"{video},{901 + moments:04d},0.1,0.2,0.3,0.4,,7")
        found.append(f"{video},{902 + moments:04d},,,,,,")
    return found


def with_video(root: Path, name: str) -> None:
    """Add two rows of a video of that name, as they are."""
    path = root / MAIN
    path.write_text(path.read_text(encoding="utf-8") + row_of(name), encoding="utf-8")


def row_of(name: str) -> str:
    """A row of a video of that name, which is quoted where it needs to be."""
    if set(name) & set(',"'):
        name = '"' + name.replace('"', '""') + '"'
    return f"{name},0902,0.25,0.25,0.75,0.75,12,3\n"
