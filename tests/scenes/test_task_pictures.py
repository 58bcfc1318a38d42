"""Images for people: stills stay or are copied, sizes are real, and paths start where they are served."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from PIL import Image

from roadaware.errors import InputError, UsageError
from roadaware.formats.task_images import prepare_task_images
from roadaware.io.video import VideoWriter
from roadaware.scenes.tables import Scenes


@pytest.fixture
def root(tmp_path):
    """Two stills of different sizes and a video of four frames."""
    base = tmp_path / "set"
    (base / "stills").mkdir(parents=True)
    for name, size in (("a.png", (64, 48)), ("b.jpg", (80, 40))):
        Image.new("RGB", size, (9, 90, 9)).save(base / "stills" / name)
    with VideoWriter(base / "film.mp4", 64, 48, 4.0) as writer:
        for shade in (0, 80, 160, 240):
            writer.write(np.full((48, 64, 3), shade, dtype=np.uint8))
    return base


def _scenes(sized: int | None = None) -> Scenes:
    return Scenes(
        videos=pl.DataFrame(
            {
                "video": ["a", "b", "film"],
                "path": [None, None, "film.mp4"],
                "width_px": [sized, None, None],
                "height_px": [48, None, None],
            },
            schema_overrides={"width_px": pl.Int64, "height_px": pl.Int64},
        ),
        frames=pl.DataFrame(
            [("a", 0, "stills/a.png"), ("b", 0, "stills/b.jpg"), *(("film", n, None) for n in range(4))],
            schema=["video", "frame", "path"],
            orient="row",
        ),
    )


def test_stills_stay_where_they_are(root, tmp_path):
    found = prepare_task_images(_scenes(64), root, [("b", 0), ("a", 0)], tmp_path / "out")
    assert found.rows() == [("b", 0, "stills/b.jpg", 80, 40), ("a", 0, "stills/a.png", 64, 48)]
    assert not (tmp_path / "out").exists()
    above = prepare_task_images(_scenes(), root, [("a", 0)], tmp_path / "out", served=tmp_path)
    assert above["picture"].to_list() == ["set/stills/a.png"]


def test_frames_of_films_become_pictures_once(root, tmp_path):
    told: list[tuple[int, int]] = []
    places, out = [("film", 3), ("film", 1)], tmp_path / "out"
    found = prepare_task_images(
        _scenes(), root, places, out, progress=lambda done, of: told.append((done, of))
    )
    assert found["picture"].to_list() == ["pictures/film/000003.jpg", "pictures/film/000001.jpg"]
    assert abs(float(np.asarray(Image.open(out / found["picture"][0])).mean()) - 240) < 6
    assert told == [(1, 2), (2, 2)]
    stamps = [(out / name).stat().st_mtime_ns for name in found["picture"]]
    assert prepare_task_images(_scenes(), root, places, out).equals(found)
    assert [(out / name).stat().st_mtime_ns for name in found["picture"]] == stamps


def test_copies_lie_beside_the_tasks(root, tmp_path):
    found = prepare_task_images(_scenes(), root, [("a", 0), ("film", 0)], tmp_path / "out", copy=True)
    assert found["picture"].to_list() == ["pictures/a/000000.png", "pictures/film/000000.jpg"]
    assert (tmp_path / "out" / "pictures/a/000000.png").read_bytes() == (root / "stills/a.png").read_bytes()


def test_a_still_that_browsers_turn_is_refused_and_its_copy_is_not_turned(root, tmp_path):
    turned = Image.Exif()
    turned[0x0112] = 6
    for name in ("a.png", "b.jpg"):
        with Image.open(root / "stills" / name) as image:
            image.save(root / "stills" / name, exif=turned)
    for place in (("a", 0), ("b", 0)):
        with pytest.raises(InputError, match="its EXIF turns it"):
            prepare_task_images(_scenes(), root, [place], tmp_path / "out")
    found = prepare_task_images(_scenes(), root, [("a", 0), ("b", 0)], tmp_path / "out", copy=True)
    for name, width, height in found.select("picture", "width_px", "height_px").rows():
        with Image.open(tmp_path / "out" / name) as image:
            assert image.size == (width, height)
            assert image.getexif().get(0x0112, 1) == 1


def test_what_cannot_be_served_or_is_not_what_the_table_says(root, tmp_path):
    with pytest.raises(UsageError, match="does not lie below"):
        prepare_task_images(_scenes(), root, [("a", 0)], tmp_path / "out", served=tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is 64x48, the table says 65x48"):
        prepare_task_images(_scenes(65), root, [("a", 0)], tmp_path / "out")
    with pytest.raises(UsageError, match="frames 0 to 3, not 9"):
        prepare_task_images(_scenes(), root, [("film", 9)], tmp_path / "out")
    (root / "stills" / "a.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="no PNG or JPEG"):
        prepare_task_images(_scenes(), root, [("a", 0)], tmp_path / "out")
    (root / "film.mp4").write_bytes(b"no film")
    told: list[tuple[str, int]] = []
    places = [("film", 2), ("a", 0), ("b", 0)]
    found = prepare_task_images(
        _scenes(), root, places, tmp_path / "out", refused=lambda place, _: told.append(place)
    )
    assert (found["video"].to_list(), told) == (["b"], [("a", 0), ("film", 2)])


def test_a_video_whose_name_leads_out_is_refused(root, tmp_path):
    scenes = Scenes(
        videos=pl.DataFrame({"video": ["../film"], "path": ["film.mp4"]}),
        frames=pl.DataFrame({"video": ["../film"], "frame": [0]}),
    )
    with pytest.raises(InputError, match="no name for a folder"):
        prepare_task_images(scenes, root, [("../film", 0)], tmp_path / "out")
    assert not (tmp_path / "film").exists()
