"""Composite labels and scores follow from those they are made of, for any composition of kinds."""

import itertools

import numpy as np
import polars as pl
import pytest
from event_sets import COMPOSITES, WORDS, plain_stretches, road_set, tracks, tubes_of
from hypothesis import given
from hypothesis import strategies as st

from example_counts import tried
from roadaware.demo_data.detector import simulate_detections
from roadaware.demo_data.road import generate_road_scenes
from roadaware.errors import InputError, UsageError
from roadaware.scenes.composites import derive_composites, product_of_marginals
from roadaware.scenes.dense_scores import Layout, convert_to_matrix, get_score_layout
from roadaware.scenes.tables import Meta, Predictions

COLUMNS = Layout(
    {
        "agentness": ("agent_ness",),
        "agent": ("Ped", "Car"),
        "action": ("Mov", "Stop"),
        "location": ("Road",),
        "duplex": ("Car-Mov", "Ped-Stop"),
        "event": ("Car-Stop-Road",),
    }
)
CHILDREN = {"duplex": [[1, 0], [0, 1]], "event": [[1, 1, 0]]}


def labels_of(scenes, kind):
    """{(video, frame, tube): names} of the boxes that have labels of a kind."""
    rows = scenes.labels.filter(pl.col("kind") == kind).join(scenes.boxes, on="box")
    found = {}
    for row in rows.rows(named=True):
        key = row["video"], row["frame"], row["tube"]
        found.setdefault(key, set()).add(scenes.meta.vocabularies[kind][row["label"]])
    return found


# Scores


def test_scores_by_hand() -> None:
    row = [[0.9, 0.5, 0.8, 0.25, 0.5, 0.1, 0.7, 0.7, 0.7]]
    scores = np.array(row, dtype=np.float32)
    product = product_of_marginals(scores, COLUMNS, CHILDREN)
    assert product[0, :6].tolist() == scores[0, :6].tolist()
    car, stop, road = scores[0, [2, 4, 5]]
    assert product[0, 6:].tolist() == [car * np.float32(0.25), np.float32(0.25), car * stop * road]
    assert product.dtype == np.float32
    assert scores.tolist() == np.array(row, dtype=np.float32).tolist(), "the given scores are left alone"


def test_products_are_taken_from_left_to_right_in_single_precision() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((500, 9), dtype=np.float32)
    product = product_of_marginals(scores, COLUMNS, CHILDREN)
    for row, predicted in zip(scores, product, strict=True):
        assert predicted[8] == (row[2] * row[4]) * row[5]


@tried(60)
@given(st.data())
def test_any_composition_of_kinds_equals_a_loop(data) -> None:
    kinds = {f"k{i}": tuple("abcd"[: data.draw(st.integers(1, 4))]) for i in range(3)}
    of = tuple(data.draw(st.permutations(list(kinds)))[: data.draw(st.integers(1, 3))])
    every = list(itertools.product(*(range(len(kinds[kind])) for kind in of)))
    rows = data.draw(st.lists(st.sampled_from(every), min_size=1, max_size=5, unique=True))
    columns = Layout({**kinds, "made": tuple(str(i) for i in range(len(rows)))})
    scores = np.random.default_rng(len(rows)).random((7, columns.width))
    product = product_of_marginals(scores, columns, {"made": rows}, {"made": of})
    for before, after in zip(scores, product, strict=True):
        for c, row in enumerate(rows):
            expected = 1.0
            for kind, label in zip(of, row, strict=True):
                expected *= before[columns.columns(kind)][label]
            assert after[columns.columns("made")][c] == pytest.approx(expected, rel=1e-15)


def test_a_composite_of_composites_uses_the_product() -> None:
    columns = Layout({"a": ("x",), "b": ("y",), "ab": ("xy",), "c": ("z",), "abc": ("xyz",)})
    scores = np.array([[0.5, 0.5, 0.9, 0.5, 0.9]])
    made = {"ab": ("a", "b"), "abc": ("ab", "c")}
    product = product_of_marginals(scores, columns, {"ab": [[0, 0]], "abc": [[0, 0]]}, made)
    assert product.tolist() == [[0.5, 0.5, 0.25, 0.5, 0.125]]


def predictions(kinds=tuple(COLUMNS.kinds), n=4):
    columns = Layout({kind: COLUMNS.kinds[kind] for kind in kinds})
    rng = np.random.default_rng(1)
    scores = pl.Series(
        "scores", rng.random((n, columns.width), np.float32), dtype=pl.Array(pl.Float32, columns.width)
    )
    boxes = pl.DataFrame({"box": np.arange(n), "video": "v", "frame": np.arange(n)})
    place = dict.fromkeys(("x1_px", "y1_px", "x2_px", "y2_px"), pl.lit(1.0))
    notes = {"children": CHILDREN, "dense_scores": {"boxes": list(kinds)}}
    meta = Meta("predictions", vocabularies=dict(COLUMNS.kinds), composites=COMPOSITES, notes=notes)
    return Predictions(boxes=boxes.with_columns(**place).with_columns(scores), meta=meta)


def test_predictions_say_themselves_what_their_scores_are() -> None:
    given_predictions = predictions()
    product = product_of_marginals(given_predictions)
    before = convert_to_matrix(given_predictions.boxes["scores"], COLUMNS.width)
    after = convert_to_matrix(product.boxes["scores"], COLUMNS.width)
    assert np.array_equal(after, product_of_marginals(before, COLUMNS, CHILDREN))
    assert product.meta.notes["products_of_marginals"] == ["duplex", "event"]


def test_predictions_without_composite_columns_get_them() -> None:
    plain = predictions(("agent", "action", "location"))
    product = product_of_marginals(plain)
    columns = get_score_layout(product.meta, "boxes")
    assert list(columns.kinds) == ["agent", "action", "location", "duplex", "event"]
    scores = convert_to_matrix(product.boxes["scores"], columns.width)
    assert scores[:, 5].tolist() == (scores[:, 1] * scores[:, 2]).tolist()
    assert scores[:, 7].tolist() == (scores[:, 1] * scores[:, 3] * scores[:, 4]).tolist()


def test_products_of_a_made_up_detector_stay_below_their_children() -> None:
    world = generate_road_scenes(videos=1, frames=60, seed=2)
    found = simulate_detections(world)
    product = product_of_marginals(found)
    columns = get_score_layout(product.meta, "boxes")
    scores = convert_to_matrix(product.boxes["scores"], columns.width)
    agents = scores[:, columns.columns("agent")]
    of = np.array(world.meta.notes["children"]["event"])[:, 0]
    assert (scores[:, columns.columns("event")] <= agents[:, of]).all()
    assert not np.array_equal(scores, convert_to_matrix(found.boxes["scores"], columns.width))


def test_bad_children_are_refused() -> None:
    scores = np.zeros((2, COLUMNS.width))
    for children, message in (
        ({"duplex": [[1, 0]]}, "1 rows of children for the 2 labels of 'duplex'"),
        ({"duplex": [[1, 0], [2, 1]]}, "name agent 1..2; there are 2 labels"),
        ({"duplex": [[1, 0, 0], [0, 1, 0]]}, "rows of 2 indices"),
        ({"duplex": [[1, 0], [0]]}, "differ in length"),
        ({"duplex": [[1.0, 0.0], [0.0, 1.0]]}, "indices"),
        ({"trio": [[1, 0]]}, "not known what kinds 'trio' is made of"),
    ):
        with pytest.raises(InputError, match=message):
            product_of_marginals(scores, COLUMNS, children)
    columns = Layout({"agent": ("a",), "action": ("b",), "event": ("c",)})
    with pytest.raises(InputError, match="no scores of 'location'"):
        product_of_marginals(np.zeros((1, 3)), columns, {"event": [[0, 0, 0]]})
    with pytest.raises(InputError, match="the layout has 9 columns"):
        product_of_marginals(scores[:, :3], COLUMNS, CHILDREN)
    with pytest.raises(InputError, match="dense scores of boxes and lists of children"):
        product_of_marginals(Predictions())


# Labels

SCENE = [
    (
        "v1",
        {
            0: {"agent": [0], "action": [0], "location": [1]},
            1: {"agent": [0], "action": [0, 2], "location": [1]},
            2: {"agent": [0], "action": [2], "location": [0]},
        },
    ),
    ("v2", {5: {"agent": [1], "action": [1]}, 7: {"agent": [1], "action": [1], "location": [0]}}),
]


def test_labels_and_tubes_by_the_lists_of_the_data() -> None:
    listed = {"duplex": [[0, 2], [0, 0], [1, 1]], "event": [[0, 0, 1], [1, 1, 0]]}
    scenes = derive_composites(road_set(SCENE, children=listed))
    assert labels_of(scenes, "duplex") == {
        ("v1", 0, 0): {"Ped-Mov"},
        ("v1", 1, 0): {"Ped-Mov", "Ped-Wait"},
        ("v1", 2, 0): {"Ped-Wait"},
        ("v2", 5, 1): {"Car-Stop"},
        ("v2", 7, 1): {"Car-Stop"},
    }
    assert tubes_of(scenes, "duplex") == {
        0: [(0, [[1, 3]]), (1, [[0, 2]])],
        1: [(2, [[5, 6], [7, 8]])],
    }
    assert tubes_of(scenes, "event") == {0: [(0, [[0, 2]])], 1: [(1, [[7, 8]])]}


def test_composites_by_occurrence_take_what_each_fold_holds() -> None:
    splits = {"v1": ["train"], "v2": ["val", "test"]}
    both = {0: {"agent": [1], "action": [1]}, 1: {"agent": [1], "action": [0]}}
    scenes = road_set([*SCENE, ("v1", both)], splits)
    found = derive_composites(scenes, "occurrence", composites={"duplex": ("agent", "action")})
    assert found.meta.vocabularies["duplex"] == ("Car-Stop",)
    assert found.meta.notes["children"]["duplex"] == [[1, 1]]
    assert tubes_of(found, "duplex") == {1: [(0, [[5, 6], [7, 8]])], 2: [(0, [[0, 1]])]}
    one = derive_composites(scenes, "occurrence", folds=["train"], composites={"duplex": ("agent", "action")})
    assert one.meta.vocabularies["duplex"] == ("Ped-Mov", "Ped-Wait", "Car-Mov", "Car-Stop")
    two = derive_composites(scenes, "occurrence", min_tubes=2)
    assert two.meta.vocabularies["duplex"] == two.meta.vocabularies["event"] == ()


def test_events_without_location_are_location_invariant() -> None:
    pair = {"event": ("agent", "action")}
    found = derive_composites(road_set(SCENE), "occurrence", composites=pair)
    assert found.meta.vocabularies["event"] == ("Ped-Mov", "Ped-Wait", "Car-Stop")
    assert found.meta.composites["event"] == ("agent", "action")
    assert labels_of(found, "event")["v2", 5, 1] == {"Car-Stop"}
    listed = {"event": [[0, 0, 1], [1, 1, 0], [0, 0, 0]]}
    fewer = derive_composites(road_set(SCENE, children=listed), composites=pair)
    assert fewer.meta.vocabularies["event"] == ("Ped-Mov", "Car-Stop")
    assert fewer.meta.notes["children"]["event"] == [[0, 0], [1, 1]]


@pytest.mark.slow
@tried(50)
@given(tracks, st.sampled_from(["children", "occurrence"]), st.data())
def test_labels_and_tubes_equal_those_of_a_loop_over_frames(found, by, data) -> None:
    every = list(itertools.product(range(2), range(3), range(2)))
    rows = data.draw(st.lists(st.sampled_from(every), min_size=1, unique=True))
    pairs = list(dict.fromkeys(row[:2] for row in rows))
    scenes = road_set(found, children={"duplex": pairs, "event": rows})
    derived = derive_composites(scenes, by)
    for kind, of in COMPOSITES.items():
        children = derived.meta.notes["children"][kind]
        if by == "occurrence":
            seen = {
                combination
                for _, track in found
                for held in track.values()
                for combination in itertools.product(*(held[child] for child in of))
            }
            assert children == [list(row) for row in sorted(seen)]
        expected = {}
        for tube, (_, track) in enumerate(found):
            made = {
                frame: {
                    kind: [
                        c
                        for c, row in enumerate(children)
                        if all(label in held[child] for child, label in zip(of, row, strict=True))
                    ]
                }
                for frame, held in track.items()
            }
            if plain := plain_stretches(made, kind):
                expected[tube] = plain
        assert tubes_of(derived, kind) == expected


def test_a_made_up_road_is_labelled_as_it_was_made() -> None:
    world = generate_road_scenes(videos=2, frames=150, seed=5)
    derived = derive_composites(world)
    assert derived.meta.vocabularies == world.meta.vocabularies
    key = ["box", "kind", "label"]
    assert derived.labels.sort(key).equals(world.labels.sort(key))
    for kind in ("duplex", "event"):
        assert tubes_of(derived, kind) == tubes_of(world, kind)
    again = derive_composites(derived)
    assert again.labels.sort(key).equals(world.labels.sort(key))
    assert again.tubes.filter(pl.col("kind") == "agent").equals(
        world.tubes.filter(pl.col("kind") == "agent")
    ), "tubes of other kinds keep their numbers"


def test_what_cannot_be_derived_is_refused() -> None:
    with pytest.raises(InputError, match="no list of children for any composite"):
        derive_composites(road_set(SCENE))
    with pytest.raises(InputError, match="no vocabulary"):
        derive_composites(road_set(SCENE), "occurrence", composites={"duplex": ("agent", "mood")})
    with pytest.raises(UsageError, match="no video is in split 'moon'"):
        derive_composites(road_set(SCENE, {"v1": ["train"]}), "occurrence", folds=["moon"])
    with pytest.raises(UsageError, match="not 'luck'"):
        derive_composites(road_set(SCENE), "luck")  # type: ignore[arg-type]


def test_words_of_children_make_names() -> None:
    found = derive_composites(road_set(SCENE), "occurrence")
    for name, row in zip(
        found.meta.vocabularies["event"], found.meta.notes["children"]["event"], strict=True
    ):
        assert name == "-".join(WORDS[kind][i] for kind, i in zip(COMPOSITES["event"], row, strict=True))
