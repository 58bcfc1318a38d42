"""What CVAT exports of jobs, of tasks that take some frames of a video, and of projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from roadaware.datasets import read
from roadaware.scenes.tables import Scenes

HEAD = (
    "<name>{name}</name><size>{size}</size><start_frame>{start}</start_frame><stop_frame>{stop}</stop_frame>"
)
EDGES = 'xtl="1" ytl="2" xbr="30" ybr="40"'


def _track(number: int, frames: list[int], more: str = "") -> str:
    boxes = "".join(f'<box frame="{frame}" outside="0" occluded="0" {EDGES}/>' for frame in frames)
    return f'<track id="{number}" label="car"{more}>{boxes}</track>'


def _image(number: int, *, drawn: bool, more: str = "") -> str:
    box = f'<box label="car" {EDGES}/>' if drawn else ""
    return f'<image id="{number}" name="frame_{number:06d}" width="640" height="480"{more}>{box}</image>'


def _read(folder: Path, head: str, body: str) -> Scenes:
    text = f"<annotations><version>1.1</version><meta>{head}</meta>{body}</annotations>"
    (folder / "annotations.xml").write_text(text)
    return read("cvat", folder, cache=False)


def _seen(scenes: Scenes) -> list[tuple[str, int]]:
    return scenes.boxes.select("video", "frame").rows()


@pytest.mark.parametrize(
    ("start", "stop", "size", "step", "frames"),
    [(100, 199, 100, "", [100, 150, 199]), (0, 95, 20, "step=5", [0, 5, 10, 95])],
)
def test_frames_of_a_job_and_of_every_fifth_frame(
    tmp_path: Path, start: int, stop: int, size: int, step: str, frames: list[int]
) -> None:
    head = HEAD.format(name="drive", size=size, start=start, stop=stop)
    found = _read(tmp_path, f"<job>{head}<frame_filter>{step}</frame_filter></job>", _track(0, frames))
    assert _seen(found) == [("drive", frame) for frame in frames]
    assert found.rejected.is_empty()
    assert found.videos["n_frames"].to_list() == [stop + 1]
    assert found.frames["frame"].to_list() == list(range(start, stop + 1, 5 if step else 1))


def test_a_box_between_the_frames_of_its_task_is_refused(tmp_path: Path) -> None:
    head = HEAD.format(name="drive", size=20, start=0, stop=95)
    found = _read(
        tmp_path, f"<task>{head}<frame_filter>step=5</frame_filter></task>", _track(0, [0, 3, 5, 96])
    )
    assert _seen(found) == [("drive", 0), ("drive", 5)]
    assert sorted(found.rejected["reason"]) == [
        "frame 3 is none of those of its task, 0 to 95",
        "frame 96 is behind the end of its video of 96 frames",
    ]


def test_a_head_that_contradicts_itself_is_not_believed(tmp_path: Path) -> None:
    head = HEAD.format(name="drive", size=4, start=0, stop=0)
    found = _read(tmp_path, f"<task>{head}</task>", _track(0, [0, 3]))
    assert (_seen(found), found.videos["n_frames"].to_list()) == ([("drive", 0), ("drive", 3)], [4])


def test_images_of_a_video_keep_its_frames_where_one_was_deleted(tmp_path: Path) -> None:
    head = HEAD.format(name="drive", size=5, start=7, stop=11)
    images = "".join(_image(number, drawn=number != 8) for number in (7, 8, 10, 11))
    found = _read(tmp_path, f"<task>{head}</task>", images)
    assert _seen(found) == [("drive", 7), ("drive", 10), ("drive", 11)]
    assert found.frames["frame"].to_list() == [7, 8, 10, 11]
    assert found.videos["n_frames"].to_list() == [12]


@pytest.mark.parametrize("images", [True, False])
def test_a_project_is_read_task_by_task(tmp_path: Path, images: bool) -> None:
    size = "<original_size><width>640</width><height>480</height></original_size>"
    tasks = "".join(
        f"<task><id>{number}</id>{HEAD.format(name=name, size=2, start=0, stop=1)}{size}</task>"
        for number, name in ((5, "a"), (6, "b"), (7, "a"))
    )
    own = [f' task_id="{number}"' for number in (5, 6, 7)]
    body = (
        "".join(_image(frame, drawn=frame == n, more=more) for n, more in enumerate(own) for frame in (0, 1))
        if images
        else "".join(_track(n, [n], more) for n, more in enumerate(own))
    )
    found = _read(tmp_path, f"<project><name>P</name><tasks>{tasks}</tasks></project>", body)
    assert _seen(found) == [("a", 0), ("b", 1)]
    assert found.videos["n_frames"].to_list() == [2, 2]
    assert found.rejected["reason"].to_list() == ["a second task called a"]


def test_attributes_are_counted_as_not_read(tmp_path: Path) -> None:
    box = f'<box frame="0" outside="0" occluded="0" {EDGES}><attribute name="pose">sits</attribute></box>'
    found = _read(
        tmp_path, "<task><name>v</name><size>2</size></task>", f'<track id="0" label="car">{box}</track>'
    )
    assert found.meta.notes["left_out"] == {"attributes of boxes, which are not read": 1}
    assert _seen(found) == [("v", 0)]
