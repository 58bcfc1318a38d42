"""Crops and maps: which pixels they hold, that videos are read once and in order, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from short_walks import FRAMES, OBSERVED, SIZES, TRACKS, T, box_of, walks

from roadaware.errors import DamagedError, DiskError, InputError, UsageError
from roadaware.io.images import MaskWriter, encode_png
from roadaware.io.video import VideoReader, VideoWriter
from roadaware.tasks.crossing_inputs import CropConfig, Media, build_inputs
from roadaware.tasks.crossing_inputs import crops as cuttings_module
from roadaware.tasks.crossing_inputs.crops import CATEGORIES, add_box_context, clip_to_image

CROPS = ("crop:box@16", "crop:context@24", "crop:surround@24")
PERSON = (200, 40, 60)
N = len(OBSERVED)
ALL = np.arange(N)


def street_of(frame: int) -> tuple[int, int, int]:
    return 40 + 15 * frame, 150, 90


def painted(video: str, frame: int) -> np.ndarray:
    width, height = SIZES[video]
    picture = np.full((height, width, 3), street_of(frame), dtype=np.uint8)
    for tube, (owner, _, on) in TRACKS.items():
        if owner == video and frame in on:
            x1, y1, x2, y2 = (int(v) for v in box_of(tube, frame))
            picture[y1:y2, x1:x2] = PERSON
    return picture


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Videos of the walks, and masks beside them: pedestrians are people, the left half is road."""
    root = tmp_path_factory.mktemp("walks")
    for video, (width, height) in SIZES.items():
        folder = root / "films" / video
        folder.mkdir(parents=True)
        with (
            VideoWriter(folder / "video.mp4", width, height, 10) as film,
            MaskWriter(folder / "semantics.zip", 8) as masks,
        ):
            for frame in range(FRAMES):
                picture = painted(video, frame)
                film.write(picture)
                mask = np.where((picture == PERSON).all(axis=2), 12, 11)
                mask[:, : width // 2][mask[:, : width // 2] == 11] = 1
                masks.write(mask.astype(np.uint8))
    return root


def near(pixels: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    return (np.abs(pixels.astype(int) - colour) <= 25).all(axis=-1)


def around(box: tuple[float, ...], size: tuple[int, int], enlarge: float = 1.5) -> tuple[int, int, int, int]:
    """The context by the published steps, one box at a time."""
    x1, y1, x2, y2 = box
    change = enlarge * min(x2 - x1, y2 - y1) // 2
    x1, y1, x2, y2 = max(x1 - change, 0), max(y1 - change, 0), x2 + change, y2 + change
    x2, y2 = (size[0] - 1 if x2 >= size[0] else x2), (size[1] - 1 if y2 >= size[1] else y2)
    wider = (y2 - y1) - (x2 - x1)
    x1, x2 = max(x1 - wider / 2, 0), x2 + wider / 2
    if x2 > size[0]:
        x1, x2 = x1 - x2 + size[0], size[0]
    return int(x1), int(y1), int(x2), int(y2)


def test_the_context_of_a_box_follows_the_published_steps() -> None:
    rng = np.random.default_rng(3)
    low = rng.uniform(0, (1700, 900), (200, 2))
    boxes = np.concatenate([low, low + rng.uniform(4, 180, (200, 2))], axis=1).round()
    found = add_box_context(boxes, np.array([[1920.0, 1080.0]] * 200), 1.5)
    expected = [around(tuple(box), (1920, 1080)) for box in boxes.tolist()]
    np.testing.assert_array_equal(found, expected)


def test_a_box_off_the_picture_leaves_one_pixel_of_it() -> None:
    size = np.array([[64.0, 48.0]] * 3)
    found = clip_to_image(np.array([[-20.0, 5, -3, 9], [63.2, 46, 90, 47.9], [10.2, 7.9, 10.8, 8.1]]), size)
    assert found.tolist() == [[0, 5, 1, 9], [63, 46, 64, 47], [10, 7, 11, 8]]
    assert (add_box_context(np.array([[-50.0, -50, -20, -20]]), size[:1], 1.5) >= 0).all()


def test_crops_hold_the_pedestrian_the_context_and_the_context_without(root: Path) -> None:
    taken = build_inputs(walks(), "train", CROPS, media=Media(root=root)).take(ALL)
    for row, (tube, frames) in enumerate(OBSERVED.values()):
        for k, frame in enumerate(frames):
            box, size = box_of(tube, frame), SIZES[TRACKS[tube][0]]
            crop = taken["crop:box@16"][row, k]
            assert crop.shape == (16, 16, 3)
            assert crop.dtype == np.uint8
            width = max(1, int((box[2] - box[0]) * 16 / (box[3] - box[1])))
            left = (16 - width) // 2
            assert near(crop[2:14, left + 1 : left + width - 1], PERSON).mean() > 0.9
            assert not crop[:, :left].any()
            assert not crop[:, left + width :].any()
            x1, y1, x2, y2 = around(box, size)
            ratio = 24 / max(x2 - x1, y2 - y1)
            at = int(((box[0] + box[2]) / 2 - x1) * ratio), int(((box[1] + box[3]) / 2 - y1) * ratio)
            offset = (24 - int((x2 - x1) * ratio)) // 2, (24 - int((y2 - y1) * ratio)) // 2
            middle = at[1] + offset[1], at[0] + offset[0]
            seen, hidden = (taken[name][row, k] for name in CROPS[1:])
            assert near(seen[middle], PERSON)
            assert (hidden[middle] == 128).all()
            if TRACKS[tube][0] == "a":  # nobody else walks there
                assert near(seen, street_of(frame)).mean() > 0.3
                assert not near(hidden, PERSON).any()
                assert (near(hidden, street_of(frame)) >= near(seen, street_of(frame))).mean() > 0.9


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Every frame that is decoded, in order."""
    seen: list[tuple[str, int]] = []
    plain = VideoReader.frame

    def frame(self: VideoReader, number: int) -> np.ndarray:
        seen.append((self.path.parent.name, number))
        return plain(self, number)

    monkeypatch.setattr(VideoReader, "frame", frame)
    return seen


def test_each_frame_is_decoded_once_and_in_order_for_all_crops(
    root: Path, decoded: list[tuple[str, int]]
) -> None:
    made = build_inputs(walks(), "train", CROPS, media=Media(root=root))
    assert not decoded
    assert made.shapes["crop:box@16"] == (T, 16, 16, 3)
    first = made.take(np.array([2, 3, 0, 1, 2]))
    wanted = sorted({(TRACKS[tube][0], frame) for tube, frames in OBSERVED.values() for frame in frames})
    assert sorted(decoded) == wanted
    for video in SIZES:
        assert [each for each in decoded if each[0] == video] == [each for each in wanted if each[0] == video]
    again = made.take(np.array([2]))
    assert len(decoded) == len(wanted)
    for name in CROPS:
        np.testing.assert_array_equal(first[name][0], again[name][0])


@pytest.mark.slow
def test_little_memory_costs_time_and_changes_nothing(
    root: Path,
    decoded: list[tuple[str, int]],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = build_inputs(walks(), "train", CROPS, media=Media(root=root)).take(ALL)
    once = len(decoded)
    monkeypatch.setattr(cuttings_module, "PIECE_BYTES", 3 * (16 * 16 + 2 * 24 * 24) * 3)
    tight = build_inputs(walks(), "train", CROPS, media=Media(root=root, memory_bytes=1))
    assert "a cache folder (samples.cache in a recipe, Media.cache in Python) keeps all" in caplog.text
    for name in CROPS:
        np.testing.assert_array_equal(tight.take(ALL)[name], whole[name])
    assert len(decoded) > 3 * once
    in_a_pass = decoded[once:][: once + 1]
    assert max(Counter(in_a_pass).values()) <= 2


def test_a_cache_folder_keeps_crops_for_the_next_run(
    root: Path, decoded: list[tuple[str, int]], tmp_path: Path
) -> None:
    plain = build_inputs(walks(), "train", CROPS, media=Media(root=root)).take(ALL)
    once, media = len(decoded), Media(root=root, cache=tmp_path / "new" / "cache")
    first = build_inputs(walks(), "train", CROPS, media=media)
    for rows in (np.array([3]), ALL):
        for name in CROPS:
            np.testing.assert_array_equal(first.take(rows)[name], plain[name][rows])
    assert len(decoded) == 2 * once
    files = sorted((tmp_path / "new" / "cache").iterdir())
    assert len(files) == len(CROPS) * len(SIZES)
    second = build_inputs(walks(), "train", CROPS[:2], media=media)
    np.testing.assert_array_equal(second.take(ALL)[CROPS[1]], plain[CROPS[1]])
    assert len(decoded) == 2 * once
    other = replace(media, crops=CropConfig(enlarge=1.0))
    assert (
        build_inputs(walks(), "train", CROPS[1:2], media=other).take(ALL)[CROPS[1]] != plain[CROPS[1]]
    ).any()
    for path in files:
        path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(DamagedError, match="remove it, and it is made again"):
        build_inputs(walks(), "train", CROPS[:1], media=media).take(ALL)


def test_a_run_that_fails_leaves_no_part_of_a_file(root: Path, tmp_path: Path, decoded: list) -> None:
    short = Media(root=tmp_path, films="{video}.mp4", cache=tmp_path / "cache")
    with VideoWriter(tmp_path / "a.mp4", *SIZES["a"], 10) as film:
        for frame in range(4):
            film.write(painted("a", frame))
    with pytest.raises(InputError, match=r"a: a box stands in frame 5: .* has frames 0 to 3"):
        build_inputs(walks(), "train", CROPS[:1], media=short).take(np.array([0]))
    assert not list((tmp_path / "cache").iterdir())
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskError):
        build_inputs(walks(), "train", CROPS[:1], media=Media(root=root, cache=tmp_path / "file" / "cache"))


@pytest.mark.slow
@pytest.mark.parametrize("cached", [False, True])
def test_the_next_film_is_cut_beside_the_only_one_that_is_asked_for(
    root: Path, tmp_path: Path, decoded: list[tuple[str, int]], cached: bool
) -> None:
    owners = [TRACKS[tube][0] for tube, _ in OBSERVED.values()]
    rows = {video: np.array([owners.index(video)]) for video in SIZES}
    for video in SIZES:
        (tmp_path / f"{video}.mp4").write_bytes((root / "films" / video / "video.mp4").read_bytes())
    media = Media(root=tmp_path, films="{video}.mp4", cache=tmp_path / "cache" if cached else None)
    whole = build_inputs(walks(), "train", CROPS[:1], media=Media(root=root)).take(ALL)[CROPS[0]]
    made = build_inputs(walks(), "train", CROPS[:1], media=media)
    decoded.clear()
    np.testing.assert_array_equal(made.take(rows["a"])[CROPS[0]], whole[rows["a"]])
    once = len(decoded)
    np.testing.assert_array_equal(made.take(rows["b"])[CROPS[0]], whole[rows["b"]])
    assert len(decoded) == once
    # Its faults are told when it is asked for, and not before.
    (tmp_path / "b.mp4").unlink()
    for path in tmp_path.glob("cache/*"):
        path.unlink()
    made = build_inputs(walks(), "train", CROPS[:1], media=media)
    np.testing.assert_array_equal(made.take(rows["a"])[CROPS[0]], whole[rows["a"]])
    with pytest.raises(InputError, match=r"b\.mp4"):
        made.take(rows["b"])
    if cached:
        assert len(list((tmp_path / "cache").iterdir())) == 1


def test_films_that_are_missing_or_of_another_size_are_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no folder was given\n.*Media\(root"):
        build_inputs(walks(), "train", CROPS)
    with pytest.raises(InputError, match=r"films/a/video\.mp4"):
        build_inputs(walks(), "train", CROPS, media=Media(root=tmp_path)).take(ALL)
    nowhere = walks().with_tables(videos=walks().videos.drop("path"))
    with pytest.raises(InputError, match=r"does not say where they lie\n.*JAAD_clips"):
        build_inputs(nowhere, "train", CROPS, media=Media(root=root))
    told = build_inputs(nowhere, "train", CROPS, media=Media(root=root, films="films/{video}/video.mp4"))
    assert told.take(np.array([0]))["crop:box@16"].any()
    larger = walks().with_tables(videos=walks().videos.with_columns(width_px=128))
    with pytest.raises(InputError, match="a: boxes are in pixels of 128x48, images are 64x48"):
        build_inputs(larger, "train", CROPS, media=Media(root=root)).take(ALL)
    with pytest.raises(InputError):
        build_inputs(walks(), "train", CROPS, media=Media(root=root / "films", films="../{video}.mp4")).take(
            ALL
        )


def test_maps_are_shares_of_categories_around_a_box(root: Path) -> None:
    made = build_inputs(walks(), "train", ["maps@12"], media=Media(root=root))
    assert made.shapes["maps@12"] == (T, len(CATEGORIES), 12, 12)
    found = made.take(ALL)["maps@12"]
    assert found.dtype == np.float32
    filled = found.sum(axis=2)
    assert ((filled < 1e-6) | (np.abs(filled - 1) < 0.02)).all()
    people = found[..., CATEGORIES.index("pedestrians"), :, :]
    assert (people.max(axis=(2, 3)) > 0.9).all()
    box = box_of(0, 0)
    x1, y1, x2, y2 = around(box, SIZES["a"])
    share = (box[2] - box[0]) * (box[3] - box[1]) / ((x2 - x1) * (y2 - y1))
    inside = filled[0, 0] > 0.5
    assert people[0, 0][inside].mean() == pytest.approx(share, rel=0.1)
    road = found[0, 0, CATEGORIES.index("road")][inside].mean()
    assert road == pytest.approx((min(32, x2) - x1) / (x2 - x1) - share, rel=0.1)


def test_other_masks_are_single_files_with_the_classes_of_cityscapes(root: Path, tmp_path: Path) -> None:
    trainable = np.full(256, 10, dtype=np.uint8)
    trainable[[1, 12]] = 0, 11
    for video in SIZES:
        for frame in range(FRAMES):
            path = tmp_path / video / f"{frame:04d}.png"
            path.parent.mkdir(exist_ok=True)
            person = (painted(video, frame) == PERSON).all(axis=2)
            mask = np.where(person, 12, 11)
            half = SIZES[video][0] // 2
            mask[:, :half][mask[:, :half] == 11] = 1
            path.write_bytes(encode_png(trainable[mask], 8))
    theirs = Media(root=tmp_path, maps="{video}/{frame:04d}.png", classes="cityscapes")
    mine = build_inputs(walks(), "train", ["maps@12"], media=Media(root=root)).take(ALL)["maps@12"]
    for media in (theirs, replace(theirs, cache=tmp_path / "cache")):
        np.testing.assert_array_equal(
            build_inputs(walks(), "train", ["maps@12"], media=media).take(ALL)["maps@12"], mine
        )
    (tmp_path / "a" / "0005.png").unlink()
    with pytest.raises(InputError, match=r"0005\.png"):
        build_inputs(walks(), "train", ["maps@12"], media=theirs).take(ALL)
    with pytest.raises(InputError, match="class masks"):
        build_inputs(walks(), "train", ["maps@12"], media=Media(root=tmp_path)).take(ALL)
    with pytest.raises(InputError, match="no folder was given"):
        build_inputs(walks(), "train", ["maps@12"])


@pytest.mark.parametrize(
    "wrong",
    [
        {"films": "films.mp4"},
        {"films": "{film}/{video}.mp4"},
        {"maps": "{video}.png"},
        {"classes": "coco"},
        {"memory_bytes": 0},
    ],
)
def test_media_that_cannot_be_meant_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Media(**wrong)
    with pytest.raises(UsageError):
        CropConfig(paint=300)
