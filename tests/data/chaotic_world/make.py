"""Write a tiny set in Chaotic World's native format: actions of two videos, sounds of two others."""

from __future__ import annotations

from pathlib import Path

FORMAT = "csv"
VIDEO = "video_0002"
MAIN = f"AR_ava_format/annotation/{VIDEO}.csv"
OTHERS = ()
NAMES = (
    "video_uid,frame_id,x1,y1,x2,y2,action_id,person_id,fps,total_frames,frame_start,frame_end,"
    "time_current,time_start,time_end"
)
COLUMNS = ("video", "frame", "x1", "y1", "x2", "y2", "action", "person", *NAMES.split(",")[8:])
HEADER = True
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
        frames: images of each video, at least 4.
    """
    actions, sounds = root / "AR_ava_format", root / "SSL_ssl_format"
    (actions / "annotation").mkdir(parents=True, exist_ok=True)
    (sounds / "annotation" / "group").mkdir(parents=True, exist_ok=True)
    for video in (VIDEO, "ADCCAWWD"):
        text = NAMES + "\n" + "".join(f"{row}\n" for row in rows(video, max(frames, 4)))
        (actions / "annotation" / f"{video}.csv").write_text(text, encoding="utf-8")
    (actions / "chaos_test_exclude.csv").write_text("ADCCAWWD,51\n", encoding="utf-8")
    (actions / "list_action.pbtxt").write_text(_MAP, encoding="utf-8")
    for video in ("XKCHAOSA", "YKCHAOSB"):
        path = sounds / "annotation" / "group" / f"{video}.csv"
        path.write_text(sound_rows(), encoding="utf-8")
    (sounds / "train_ssl.txt").write_text("XKCHAOSA\n", encoding="utf-8")
    (sounds / "test_ssl.txt").write_text("YKCHAOSB\n", encoding="utf-8")
    return root


_MAP = 'item {\n  name: "aiming weapon"\n  id: 1\n}\nitem {\n  name: "arguing"\n  id: 2\n}\n'


def rows(video: str, pictures: int) -> list[str]:
    """An image a second, two persons in each, the first with two actions."""
    found = []
    for second in range(1, pictures + 1):
        frame = 25 * second + 1
        clip = f"25,{25 * pictures},{frame - 12},{frame + 12},{second}.0,{second - 0.5},{second + 0.5}"
        box = f"0.125,0.{second % 5}25,0.75,0.995"
        found += [f"{video},{frame},{box},{action},3,{clip}" for action in (12, 49)]
        found.append(f"{video},{frame},0.5,0.25,0.625,0.75,0,14,{clip}")
    return found


def sound_rows() -> str:
    """Three sounds, the second with two boxes."""
    return (
        "start_fid,start_time,bbox,ssl\n"
        '26,1.0,"[[0.25, 0.25, 0.5, 0.75]]",crying\n'
        '76,3.0,"[[0.125, 0.0, 0.5, 1.0], (0.5, 0.5, 1, 1)]",explosion\n'
        '101,4.0,"[0.0, 0.0, 0.25, 0.5]",siren (police)\n'
    )


def with_video(root: Path, name: str) -> None:
    """Add a file with two rows of a video of that name."""
    path = root / "AR_ava_format" / "annotation" / "more.csv"
    path.write_text(NAMES + "\n" + row_of(name) + row_of("video_0004"), encoding="utf-8")


def row_of(name: str) -> str:
    """A row of a video of that name, which is quoted where it needs to be."""
    if set(name) & set(',"'):
        name = '"' + name.replace('"', '""') + '"'
    return f"{name},26,0.25,0.25,0.75,0.75,12,3,25,100,14,38,1.0,0.5,1.5\n"
