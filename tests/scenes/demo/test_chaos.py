"""The synthetic crowd: the same seed, the same files, and every file says what the facts say."""

import csv
import json

import numpy as np
import pytest

from roadaware.datasets.chaotic_vocabulary import ACTIONS_OFFICIAL
from roadaware.demo_data.chaos import FRAMES, HEIGHT, WIDTH, generate_crowds, write_chaos


def _files(root):
    return {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def chaos(tmp_path_factory):
    root = tmp_path_factory.mktemp("chaos")
    return root, write_chaos(root, seed=3, videos=4)


def test_the_same_seed_writes_the_same_bytes(chaos, tmp_path):
    root, facts = chaos
    assert write_chaos(tmp_path / "again", seed=3, videos=4) == facts
    assert _files(tmp_path / "again") == _files(root)
    write_chaos(tmp_path / "other", seed=4, videos=4)
    assert _files(tmp_path / "other") != _files(root)


def test_the_files_hold_what_the_facts_say(chaos):
    root, facts = chaos
    rows = list(csv.reader((root / "actions/gt.csv").read_text().splitlines()))
    assert len(rows) == facts.actions
    assert {len(row) for row in rows} == {8}
    assert all(1 <= int(row[6]) <= len(ACTIONS_OFFICIAL) for row in rows)
    truths = [json.loads(path.read_text()) for path in sorted((root / "relations/truth").iterdir())]
    assert len(truths) == facts.videos
    assert sum(len(truth["relation_instances"]) for truth in truths) == facts.relations
    assert sum(len(truth["subject/objects"]) for truth in truths) == facts.persons
    assert len(json.loads((root / "grounding/test_proc.json").read_text())) == facts.sentences
    sounds = json.loads((root / "sound/vggss.json").read_text())
    with np.load(root / "sound/maps.npz", allow_pickle=False) as maps:
        assert sorted(maps.files) == sorted(item["file"] for item in sounds)
        assert {maps[name].shape for name in maps.files} == {(14, 14)}
    assert len(sounds) == facts.sounds > 0


def test_people_stay_in_the_picture_and_relations_inside_their_tracks():
    for crowd in generate_crowds(20, np.random.default_rng(0)):
        for person in crowd.persons:
            assert (person.boxes >= 0).all()
            assert (person.boxes[:, 2] <= WIDTH).all()
            assert (person.boxes[:, 3] <= HEIGHT).all()
            assert (person.boxes[:, 2:] > person.boxes[:, :2]).all()
            assert person.end <= FRAMES
        for bond in crowd.bonds:
            assert bond.subject != bond.object
            for who in (bond.subject, bond.object):
                assert crowd.persons[who].start <= bond.start < bond.end <= crowd.persons[who].end
