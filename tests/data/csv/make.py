"""Write a tiny csv of boxes: two videos with a walker, a car, a box without a track and a frame in which there is nothing."""

from __future__ import annotations

from pathlib import Path

FORMAT = "csv"
MAIN = "tracks.csv"
VIDEO = "street"
OTHERS = ()
SOLE = True
COLUMNS = ("video", "frame", "id", "class", "x1", "y1", "x2", "y2")
HEADER = True
OPTIONS = {"fps": 10, "size": "640x480"}
EXCUSED = {"case_62_extra_columns": "columns are known by their names, wherever they stand"}


def make(root: Path, *, frames: int = 3) -> Path:
    """Write the set.

    Args:
        root: where to; made with its parents.
        frames: of each video, but for one more in which there is nothing.
    """
    root.mkdir(parents=True, exist_ok=True)
    lines = ["video,frame,track_id,class,x1,y1,x2,y2"]
    for video in ("street", "yard"):
        for frame in range(frames):
            lines += [
                f"{video},{frame},1,person,{10.5 + frame},20.25,30.5,60",
                f"{video},{frame},2,car,100,50.5,160,80",
                f"{video},{frame},,,300,50,360.5,80",
            ]
        lines.append(f"{video},{frames},,,,,,")
    (root / MAIN).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


def with_video(root: Path, name: str) -> None:
    """Add a row of a video of that name."""
    path = root / MAIN
    if set(name) & set(',"'):
        name = '"' + name.replace('"', '""') + '"'
    path.write_text(path.read_text(encoding="utf-8") + f"{name},0,1,person,10,20,30,60\n", encoding="utf-8")
