"""Heads over people in boxes: sums equal plain ones, and order, neighbours in the batch and emptiness change nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.models.crowd import people, tree
from roadaware.models.crowd.config import CrowdConfig

torch.set_num_threads(1)


def _people(n: int, seed: int, frames: int | None = None) -> Tensor:
    """(n, 4) or (n, T, 4) boxes of people in an image of 128x96 pixels who move a little."""
    rng = np.random.default_rng(seed)
    corner, size = rng.uniform(0, 70, (n, 2)), rng.uniform(8, 30, (n, 2))
    boxes = np.concatenate([corner, corner + size], axis=1)
    if frames is not None:
        drift = rng.normal(0, 2, (n, 1, 2)) * np.arange(frames)[None, :, None]
        boxes = boxes[:, None] + np.concatenate([drift, drift], axis=2)
    return torch.from_numpy(boxes).float()


def _map(clips: int = 1, frames: int = 5, channels: int = 16) -> Tensor:
    return torch.randn(clips, channels, frames, 6, 8, generator=torch.Generator().manual_seed(clips))


def test_the_published_head_of_actions_is_the_plain_one() -> None:
    """Actor and scene side by side through one 1x1 convolution, as published."""
    torch.manual_seed(0)
    head = people.ActionHead(CrowdConfig.tiny(form="published", window=0), 7, 16).eval()
    for norm in (head.norm1, head.norm2):
        nn.init.normal_(norm.running_mean)
        nn.init.uniform_(norm.running_var, 0.5, 2)
    map, boxes, clip = _map(2), _people(5, 0), torch.tensor([1, 0, 1, 1, 0])
    joined = torch.cat([head.relate_actor.weight[:, :, None, None], head.relate_scene.weight], dim=1)
    rows = []
    with torch.no_grad():
        for box, number in zip(boxes, clip, strict=True):
            scene = map[number].mean(dim=1, keepdim=True).transpose(0, 1)
            actor = people.pool_boxes(scene, box[None], torch.zeros(1, dtype=torch.int64), 8)
            actor = functional.adaptive_max_pool2d(actor, 1).expand(-1, -1, *scene.shape[2:])
            related = functional.conv2d(torch.cat([actor, scene], dim=1), joined)
            related = functional.relu(head.norm1(related))
            related = functional.relu(head.norm2(head.relate2(related)))
            rows.append(head.last(functional.adaptive_max_pool2d(related, 1).flatten(1)))
        assert torch.allclose(head(map, boxes, clip), torch.cat(rows), atol=1e-5)


def test_means_over_frames_are_plain_means() -> None:
    map = _map(2, frames=7)
    clip, frame = torch.tensor([0, 1, 1, 0]), torch.tensor([0, 3, 6, 2])
    found = people.mean_around(map, clip, frame, 3)
    for row, (c, t) in enumerate(zip(clip.tolist(), frame.tolist(), strict=True)):
        assert torch.allclose(found[row], map[c, :, max(0, t - 1) : t + 2].mean(dim=1), atol=1e-6)
    whole = people.mean_around(map, clip, frame, 0)
    assert torch.allclose(whole[1], map[1].mean(dim=1), atol=1e-6)


def test_actions_of_a_person_do_not_hang_on_the_others() -> None:
    torch.manual_seed(0)
    head = people.ActionHead(CrowdConfig.tiny(), 7, 16).eval()
    map, boxes = _map(2), _people(6, 1)
    clip, frame = torch.tensor([0, 1, 0, 1, 1, 0]), torch.tensor([0, 4, 2, 2, 4, 2])
    with torch.no_grad():
        together = head(map, boxes, clip, frame)
        assert together.shape == (6, 7)
        for row in range(6):
            alone = head(map, boxes[row : row + 1], clip[row : row + 1], frame[row : row + 1])
            assert torch.allclose(alone[0], together[row], atol=1e-5)
        assert torch.equal(head(map, boxes, clip), head(map, boxes, clip, torch.full((6,), 2)))
        assert head(map, boxes[:0], clip[:0]).shape == (0, 7)
    for bad in (
        (boxes, clip + 1),
        (boxes[:3], clip),
        (boxes * torch.nan, clip),
        (boxes[:, :3], clip),
        (boxes, clip, frame + 1),
    ):
        with pytest.raises(UsageError):
            head(map, *bad)


@pytest.mark.parametrize("most", [4, 10_000])
def test_pairs_are_the_near_ones(most: int) -> None:
    boxes, clip = _people(20, 3), torch.tensor([0] * 12 + [2] * 7 + [5])
    found = people.choose_pairs(boxes, clip, heights=1.2, most=most)
    near: dict[int, list[tuple[float, int, int]]] = {0: [], 2: [], 5: []}
    for a in range(20):
        for b in range(a + 1, 20):
            if clip[a] == clip[b]:
                (ax, ay, aw, ah), (bx, by, bw, bh) = boxes[a].tolist(), boxes[b].tolist()
                apart = np.hypot((ax + aw - bx - bw) / 2, (ay + ah - by - bh) / 2)
                share = apart / ((ah - ay + bh - by) / 2)
                if share <= 1.2:
                    near[int(clip[a])].append((share, a, b))
    wanted, left_out = set(), 0
    for held in near.values():
        taken = sorted(held)[: most // 2]
        left_out += 2 * (len(held) - len(taken))
        wanted |= {pair for _, a, b in taken for pair in ((a, b), (b, a))}
    rows = [tuple(row) for row in found.index.tolist()]
    assert rows == sorted(wanted)
    assert found.left_out == left_out
    assert (left_out > 0) == (most == 4)


def test_a_crowd_of_hundreds_is_bounded() -> None:
    boxes, clip = _people(600, 0), torch.zeros(600, dtype=torch.int64)
    found = people.choose_pairs(boxes, clip, heights=1e6, most=1024)
    assert len(found.index) == 1024
    assert found.left_out == 600 * 599 - 1024
    nobody = people.choose_pairs(boxes[:0], clip[:0], heights=3, most=8)
    assert nobody.index.shape == (0, 2)
    assert nobody.left_out == 0


def _relations(**fields: object) -> people.RelationHead:
    torch.manual_seed(0)
    return people.RelationHead(CrowdConfig.tiny(**fields), 5, 16).eval()


def test_relations_of_a_clip_do_not_hang_on_other_clips() -> None:
    head, map = _relations(), _map(3)
    boxes, clip = _people(9, 2, 5), torch.tensor([0] * 5 + [2] * 4)
    pairs = people.choose_pairs(boxes[:, 2], clip, heights=9, most=99).index
    with torch.no_grad():
        together = head(map, boxes, clip, pairs)
        assert together.shape == (5 * 4 + 4 * 3, 5)
        for number, first, end in ((0, 0, 5), (2, 5, 9)):
            rows = (clip[pairs[:, 0]] == number).nonzero().flatten()
            alone = head(
                map[number : number + 1], boxes[first:end], torch.zeros(end - first, dtype=torch.int64),
                pairs[rows] - first,
            )  # fmt: skip
            assert torch.allclose(alone, together[rows], atol=1e-5)


def test_relations_follow_people_in_any_order() -> None:
    head, map, boxes = _relations(), _map(), _people(8, 4, 5)
    clip, order = (
        torch.zeros(8, dtype=torch.int64),
        torch.randperm(8, generator=torch.Generator().manual_seed(1)),
    )
    pairs = torch.tensor([[0, 3], [3, 0], [7, 2], [5, 6]])
    place = torch.argsort(order)
    with torch.no_grad():
        wanted = head(map, boxes, clip, pairs)
        found = head(map, boxes[order], clip, place[pairs])
        assert torch.allclose(found, wanted, atol=1e-5)
        # Who does it to whom makes a difference.
        assert not torch.allclose(wanted[0], wanted[1], atol=1e-3)
        some = head(map, boxes, clip, pairs[2:])
        assert torch.allclose(some, wanted[2:], atol=1e-5)


def test_relations_hang_on_map_motion_and_people_around() -> None:
    head, map, boxes = _relations(), _map(), _people(6, 5, 5)
    clip, pairs = torch.zeros(6, dtype=torch.int64), torch.tensor([[0, 1]])
    with torch.no_grad():
        wanted = head(map, boxes, clip, pairs)
        assert not torch.allclose(head(map + 1, boxes, clip, pairs), wanted, atol=1e-4)
        still = boxes[:, 2:3].expand(-1, 5, -1)
        assert not torch.allclose(head(map, still, clip, pairs), wanted, atol=1e-4)
        assert not torch.allclose(head(map, boxes[:5], clip[:5], pairs), wanted, atol=1e-5)
        moved = head(map, boxes, clip, pairs, torch.tensor([4]))
        assert not torch.allclose(moved, wanted, atol=1e-4)
        head.set_prior(torch.full((5,), 0.1))
        assert torch.allclose(head(map, boxes, clip, pairs) - wanted, torch.tensor(0.101).log(), atol=1e-5)


def test_two_people_and_nobody_have_relations_or_none() -> None:
    head, map = _relations(tree_units="pixels"), _map()
    two, clip = _people(2, 0, 5), torch.zeros(2, dtype=torch.int64)
    with torch.no_grad():
        assert head(map, two, clip, torch.tensor([[0, 1], [1, 0]])).isfinite().all()
        none = torch.zeros(0, 2, dtype=torch.int64)
        assert head(map, two, clip, none).shape == (0, 5)
        assert head(map, two[:0], clip[:0], none).shape == (0, 5)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"pairs": torch.tensor([[0, 4]])}, "pairs are"),
        ({"pairs": torch.tensor([0, 1])}, "pairs are"),
        ({"pairs": torch.tensor([[0, 3]])}, "in one clip"),
        ({"clip": torch.tensor([1, 1, 0, 1])}, "clip by clip"),
        ({"boxes": _people(4, 0, 4)}, "a box in each of 5 frames"),
        ({"boxes": _people(4, 0)}, "a box in each of 5 frames"),
        ({"boxes": _people(4, 0, 5) * torch.inf}, "not finite"),
    ],
)
def test_bad_people_are_refused(change: dict, says: str) -> None:
    given = {
        "boxes": _people(4, 0, 5),
        "clip": torch.tensor([0, 0, 1, 1]),
        "pairs": torch.tensor([[0, 1]]),
        **change,
    }
    with pytest.raises(UsageError, match=says):
        _relations()(_map(2), **given)


def test_attention_of_a_query_is_a_plain_softmax() -> None:
    rng = np.random.default_rng(0)
    query, keys = rng.normal(size=(3, 4)), rng.normal(size=(3, 4, 2, 5))
    found = people.directed_attention(torch.from_numpy(query), torch.from_numpy(keys)).numpy()
    for m in range(3):
        raised = np.exp(np.einsum("d,dhw->hw", query[m], keys[m]))
        assert np.allclose(found[m, 0], raised / raised.sum())


def test_geometry_does_not_hang_on_place_and_size_of_the_image() -> None:
    boxes, pairs = _people(4, 7, 3), torch.tensor([[0, 1], [2, 3], [3, 2]])
    frame = torch.full((4,), 1)
    found = people.describe_pairs(boxes, frame, pairs)
    assert found.shape == (3, 14)
    assert torch.allclose(people.describe_pairs(boxes * 3 + 50, frame, pairs), found, atol=1e-4)
    far = people.describe_pairs(boxes * torch.tensor([1e5, 1, 1e5, 1]), frame, pairs)
    assert bool((far.abs() <= 10).all())


def test_the_context_is_the_lowest_common_ancestor() -> None:
    boxes, clip = _people(9, 2).numpy(), torch.tensor([0] * 5 + [1] * 4)
    trees = [tree.build(boxes[:5]), tree.build(boxes[5:])]
    forest = tree.join(trees)
    pairs = torch.tensor([[0, 4], [5, 8], [1, 2]])
    found = people.RelationHead._ancestors(trees, forest.place, clip, pairs)
    wanted = [
        forest.place[0][int(trees[0].lca([0], [4])[0])],
        forest.place[1][int(trees[1].lca([0], [3])[0])],
    ]
    assert found[:2].tolist() == [int(each) for each in wanted]


# Motion of tracks: against loops over people, written from the docstrings.


def _plain_motion(tracks: np.ndarray, moment: list[int], image: tuple[float, float]) -> np.ndarray:
    found, middle = [], tracks.shape[1] // 2
    size = np.maximum(tracks[..., 2:] - tracks[..., :2], 1)
    centre, tall = (tracks[..., :2] + tracks[..., 2:]) / 2, np.log(size[..., 1])
    shape = np.log(size[..., 1] / size[..., 0])
    for n in range(len(tracks)):
        h, now = size[n, middle, 1], centre[n, middle]
        row = [shape[n, middle], *np.log(size[n, middle] / image), *(2 * now / image - 1)]
        for reach in (1, 3, 8, 20):
            low, high = max(0, middle - reach), min(tracks.shape[1] - 1, middle + reach)
            way, span = high - low, slice(low, high + 1)
            walked = sum(np.linalg.norm(centre[n, k + 1] - centre[n, k]) for k in range(low, high)) / h
            row += [
                *(5 / way * (centre[n, high] - centre[n, low]) / h),
                5 / way * (tall[n, high] - tall[n, low]),
            ]
            row += [*((now - centre[n, low]) / h), *((centre[n, high] - now) / h), 5 / way * walked]
            s, t = shape[n, span], tall[n, span]
            changes = [s.std(), t.std(), s.mean() - shape[n, middle], s.min() - shape[n, middle]]
            changes += [s.max() - shape[n, middle], t.max() - tall[n, middle], np.abs(np.diff(s)).mean()]
            row += [4 * c for c in changes]
        others = [k for k in range(len(tracks)) if moment[k] == moment[n] and k != n]
        away = {k: (centre[k, middle] - now) / h for k in others}
        far = {k: float(np.linalg.norm(away[k])) for k in others}
        row += [math.log1p(sum(d < 1.5 for d in far.values())), math.log1p(sum(d < 3 for d in far.values()))]
        row.append(math.log1p(len(others)))
        low, high = max(0, middle - 3), min(tracks.shape[1] - 1, middle + 3)
        for k in sorted(others, key=lambda k: far[k])[:2]:
            against = ((centre[k, high] - centre[k, low]) - (centre[n, high] - centre[n, low])) / h
            row += [*away[k], far[k], math.log(size[k, middle, 1] / h), *against]
            row.append(float(against @ away[k]) / max(far[k], 0.1))
        row += [0.0] * (people.MOTION_FEATURES - len(row))
        found.append(np.clip(row, -5, 5))
    return np.array(found)


@pytest.mark.parametrize("frames", [3, 41])
def test_motion_of_tracks_is_the_plain_one(frames: int) -> None:
    tracks = _people(7, 3, frames).double()
    moment = [0, 1, 0, 0, 2, 1, 0]
    image = torch.tensor([128.0, 96.0], dtype=torch.float64)
    found = people.describe_motion(tracks, torch.tensor(moment), image)
    assert found.shape == (7, people.MOTION_FEATURES)
    assert np.allclose(found.numpy(), _plain_motion(tracks.numpy(), moment, (128.0, 96.0)), atol=1e-9)
    # Whoever is alone is described alike without the others; in another order all are.
    alone = people.describe_motion(tracks[4:5], torch.tensor([7]), image)
    assert torch.allclose(alone[0], found[4])
    turned = people.describe_motion(tracks.flip(0), torch.tensor(moment).flip(0), image)
    assert torch.allclose(turned.flip(0), found)
    assert people.describe_motion(tracks[:0], torch.zeros(0, dtype=torch.int64), image).shape[0] == 0


def test_a_person_in_one_frame_stands_still() -> None:
    found = people.describe_motion(_people(2, 0, 1), torch.tensor([0, 1]), torch.tensor([128.0, 96.0]))
    assert bool((found[:, 5:] == 0).all())
    for bad in (torch.zeros(2, 4), torch.zeros(2, 4, 4), torch.zeros(2, 3, 5)):
        with pytest.raises(UsageError, match="odd number of frames"):
            people.describe_motion(bad, torch.tensor([0, 1]), torch.tensor([128.0, 96.0]))


def test_motion_of_pairs_is_the_plain_one() -> None:
    tracks, pairs = _people(4, 5, 9).double(), torch.tensor([[0, 1], [3, 2], [1, 0]])
    found = people.describe_pair_motion(tracks, pairs).numpy()
    assert found.shape == (3, people.PAIR_MOTION_FEATURES)
    boxes = tracks.numpy()
    centre, size = (boxes[..., :2] + boxes[..., 2:]) / 2, np.maximum(boxes[..., 2:] - boxes[..., :2], 1)
    for row, (s, o) in zip(found, pairs.tolist(), strict=True):
        mean = (size[s, 4, 1] + size[o, 4, 1]) / 2
        apart = (centre[o] - centre[s]) / mean
        distance = np.linalg.norm(apart, axis=1)
        inner = np.minimum(boxes[s, 4, 2:], boxes[o, 4, 2:]) - np.maximum(boxes[s, 4, :2], boxes[o, 4, :2])
        shared = float(np.clip(inner, 0, None).prod())
        wanted = [*apart[4], distance[4], *np.log(size[o, 4] / size[s, 4])]
        wanted.append(shared / (size[s, 4].prod() + size[o, 4].prod() - shared))
        wanted.append((boxes[o, 4, 3] - boxes[s, 4, 3]) / mean)
        line = apart[4] / max(distance[4], 0.05)
        for reach in (1, 3, 8):
            low, high = max(0, 4 - reach), min(8, 4 + reach)
            ways = [5 / (high - low) * (centre[k, high] - centre[k, low]) / mean for k in (s, o)]
            ways.append(ways[1] - ways[0])
            wanted += [*np.concatenate(ways), *(np.linalg.norm(w) for w in ways), *(w @ line for w in ways)]
            near = distance[low : high + 1]
            wanted += [near.min(), near.max(), near.mean()]
        assert np.allclose(row, np.clip(wanted, -5, 5), atol=1e-9)


def test_cells_count_as_much_as_the_config_says_beside_tracks() -> None:
    map, boxes, clip = _map(2), _people(5, 0), torch.tensor([1, 0, 1, 1, 0])
    tracks = boxes[:, None].expand(-1, 5, -1)
    for share in (0.0, 0.5):
        torch.manual_seed(0)
        head = people.ActionHead(CrowdConfig.tiny(cells_share=share), 7, 16).eval()
        with torch.no_grad():
            told = head.judge_motion(tracks, clip, torch.tensor([128.0, 96.0]))
            found = head(map, boxes, clip, tracks=tracks)
            assert torch.allclose(found, told + share * head(map, boxes, clip), atol=1e-5)
    published = people.ActionHead(CrowdConfig.tiny(form="published"), 7, 16).eval()
    with torch.no_grad():
        assert torch.equal(published(map, boxes, clip, tracks=tracks), published(map, boxes, clip))
    with pytest.raises(UsageError, match="no motion"):
        published.judge_motion(tracks, clip, torch.tensor([128.0, 96.0]))


def test_crops_count_as_much_as_the_config_says_and_each_for_itself() -> None:
    torch.manual_seed(0)
    head = people.ActionHead(CrowdConfig.tiny(crop_width=2, crops_share=0.6), 7, 16).eval()
    map, boxes, clip = _map(2), _people(5, 0), torch.tensor([1, 0, 1, 1, 0])
    crops, shape = torch.randn(5, 3, *people.CROPS.size_px), torch.randn(5, 4)
    with torch.no_grad():
        seen = head.crops(crops, shape)
        assert seen.shape == (5, 7)
        assert torch.allclose(seen[2:3], head.crops(crops[2:3], shape[2:3]), atol=1e-5)
        assert head.crops(crops[:0], shape[:0]).shape == (0, 7)
        assert torch.allclose(
            head(map, boxes, clip, crop_logits=seen), head(map, boxes, clip) + 0.6 * seen, atol=1e-5
        )
    assert people.ActionHead(CrowdConfig.tiny(), 7, 16).crops is None
    assert people.ActionHead(CrowdConfig.tiny(crop_width=2, form="published"), 7, 16).crops is None
