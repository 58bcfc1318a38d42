"""Sentences of every kind are read, positions equal their formulas, and frames see what they should."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from plain_crowd import plain_space_sines

from roadaware.errors import InputError, UsageError
from roadaware.models.crowd import grounding
from roadaware.models.crowd.config import CrowdConfig
from roadaware.models.crowd.grounding import (
    GroundingHead,
    Matched,
    PeopleGroundingHead,
    Said,
    WordReader,
    build_words,
    list_partners,
    score_spans,
)

torch.set_num_threads(1)
SENTENCES = ["A man in a red coat throws stones.", "a woman runs away", "a man runs"]
WORDS = build_words(SENTENCES)


def test_words_begin_with_marks_and_are_in_one_order() -> None:
    assert WORDS[:4] == ("[CLS]", "[PAD]", "[SEP]", "[UNK]")
    assert WORDS.index("man") < WORDS.index("woman")
    assert "##m" in WORDS
    assert build_words(reversed(SENTENCES)) == WORDS
    assert len(build_words(SENTENCES, most=10)) == 10
    assert len(set(WORDS)) == len(WORDS)


def test_known_words_are_whole_and_others_are_spelt_or_unknown() -> None:
    reader = WordReader(WORDS, 64)
    found = reader.encode(["A man runs", "a moan", "a 日本 🔥 мир", "a " * 500])
    assert [WORDS[i] for i in found.ids[0][found.mask[0]]] == ["[CLS]", "a", "man", "runs", "[SEP]"]
    assert [WORDS[i] for i in found.ids[1][found.mask[1]]] == [
        "[CLS]",
        "a",
        "m",
        "##o",
        "##a",
        "##n",
        "[SEP]",
    ]
    assert found.unknown[0] == 0
    assert found.unknown[1] == 3 / 5
    assert found.unknown[2] == 4 / 5
    assert found.cut.tolist() == [0, 0, 0, 500 - 62]
    assert found.ids.shape == (4, 64)
    assert bool((found.ids[0][~found.mask[0]] == 1).all())


@pytest.mark.parametrize("sentences", [[], [""], ["a man", "  \n"], ["\x00\x01"]])
def test_sentences_without_words_are_refused(sentences: list[str]) -> None:
    with pytest.raises(UsageError):
        WordReader(WORDS, 64).encode(sentences)
    with pytest.raises(UsageError, match="begin with"):
        WordReader(("man",), 64)


@pytest.mark.parametrize(("height", "width", "numbers"), [(1, 1, 4), (3, 5, 8), (7, 2, 16)])
def test_positions_of_cells_are_those_of_the_formula(height: int, width: int, numbers: int) -> None:
    found = grounding.space_sines(height, width, numbers).numpy()
    assert np.abs(found - plain_space_sines(height, width, numbers)).max() < 1e-5


def test_positions_of_frames_are_those_of_the_formula() -> None:
    found = grounding.time_sines(9, 8)
    for t in range(9):
        for k in range(8):
            angle = t / 10_000 ** ((k // 2 * 2) / 8)
            assert float(found[t, k]) == pytest.approx(
                math.cos(angle) if k % 2 else math.sin(angle), abs=1e-6
            )


def _head(**fields: object) -> GroundingHead:
    torch.manual_seed(0)
    head = GroundingHead(CrowdConfig.tiny(**fields), WORDS, 16).eval()
    # As after training, when the fast way has a say.
    torch.nn.init.normal_(head.fast_added.weight)
    return head


def _ask(head: GroundingHead, map: torch.Tensor, sentences: list[str], frames: torch.Tensor | None = None):
    found = WordReader(WORDS, 64).encode(sentences)
    with torch.no_grad():
        return head(map, found.ids, found.mask, frames)


def test_every_layer_answers_for_every_frame() -> None:
    found = _ask(_head(decoder_layers=3), torch.randn(2, 16, 9, 2, 3), SENTENCES[:2])
    assert found.boxes.shape == (3, 2, 9, 4)
    assert found.spans.shape == (3, 2, 9, 2)
    assert found.attention.shape == (3, 2, 9, 9)
    assert bool(((found.boxes > 0) & (found.boxes < 1)).all())
    assert torch.allclose(found.attention.sum(dim=3), torch.ones(3, 2, 9), atol=1e-5)


def test_padding_of_words_and_frames_changes_nothing() -> None:
    head, map = _head(), torch.randn(2, 16, 9, 2, 3)
    alone = _ask(head, map[:1, :, :6], SENTENCES[1:2])
    frames = torch.ones(2, 9, dtype=torch.bool)
    frames[0, 6:] = False
    both = _ask(head, map, [SENTENCES[1], SENTENCES[0] + " " + SENTENCES[0]], frames)
    assert torch.allclose(both.boxes[:, :1, :6], alone.boxes, atol=1e-5)
    assert torch.allclose(both.spans[:, :1, :6], alone.spans, atol=1e-4)
    assert torch.allclose(both.attention[:, :1, :6, :6], alone.attention, atol=1e-5)
    assert not bool(both.attention[:, 0, :, 6:].any())


def test_the_sentence_and_every_frame_have_a_say() -> None:
    head, map = _head(), torch.randn(1, 16, 9, 2, 3)
    first = _ask(head, map, SENTENCES[:1])
    other = _ask(head, map, SENTENCES[1:2])
    assert not torch.allclose(first.boxes, other.boxes, atol=1e-4)
    # Frame 5 is read by the fast way alone: the slow one takes frames 0, 4 and 8.
    changed = map.clone()
    changed[:, :, 5] += 1
    assert not torch.allclose(_ask(head, changed, SENTENCES[:1]).boxes, first.boxes, atol=1e-5)


def test_each_query_looks_at_the_tokens_of_its_own_frame() -> None:
    """Without attention over time, another frame cannot be seen."""
    head, map = _head(decoder_layers=1), torch.randn(1, 16, 4, 2, 3)
    for layer in head.decoder:
        torch.nn.init.zeros_(layer.over_time.out_proj.weight)
    first = _ask(head, map, SENTENCES[:1])
    changed = map.clone()
    changed[:, :, 3] += 1
    after = _ask(head, changed, SENTENCES[:1])
    assert torch.allclose(after.boxes[:, :, :3], first.boxes[:, :, :3], atol=1e-6)
    assert not torch.allclose(after.boxes[:, :, 3], first.boxes[:, :, 3], atol=1e-5)


def test_the_fast_way_begins_as_nothing_and_gives_the_trunk_no_gradient() -> None:
    torch.manual_seed(0)
    head = GroundingHead(CrowdConfig.tiny(), WORDS, 16).eval()
    map = torch.randn(1, 16, 6, 2, 3, requires_grad=True)
    found = WordReader(WORDS, 64).encode(SENTENCES[:1])
    head(map, found.ids, found.mask).boxes.sum().backward()
    assert map.grad is not None
    slow = torch.zeros(6, dtype=torch.bool)
    slow[::4] = True
    assert bool(map.grad[:, :, slow].any())
    assert not bool(map.grad[:, :, ~slow].any())


def test_bad_clips_are_refused() -> None:
    head, found = _head(max_frames=4), WordReader(WORDS, 64).encode(SENTENCES[:1])
    with pytest.raises(UsageError, match="1 to 4 frames, not 5"):
        head(torch.zeros(1, 16, 5, 2, 2), found.ids, found.mask)
    with pytest.raises(UsageError, match="2 clips and 1 sentences"):
        head(torch.zeros(2, 16, 4, 2, 2), found.ids, found.mask)
    with pytest.raises(UsageError, match="no frame"):
        head(torch.zeros(1, 16, 4, 2, 2), found.ids, found.mask, torch.zeros(1, 4, dtype=torch.bool))


def test_a_published_text_encoder_comes_as_a_folder(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tokenizers = pytest.importorskip("tokenizers")
    torch.manual_seed(0)
    config = transformers.RobertaConfig(
        vocab_size=300, hidden_size=12, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=80, type_vocab_size=1,
    )  # fmt: skip
    transformers.RobertaModel(config).save_pretrained(tmp_path)
    marks = ["<s>", "<pad>", "</s>", "<unk>"]
    maker = tokenizers.ByteLevelBPETokenizer()
    maker.train_from_iterator(SENTENCES, vocab_size=290, special_tokens=marks)
    maker.post_processor = tokenizers.processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    maker.save(str(tmp_path / "tokenizer.json"))
    settings = CrowdConfig.tiny(max_tokens=10)
    text, reader = grounding.open_text(tmp_path, settings)
    assert text.width == 12
    found = reader.encode(["a man 🔥", "a man runs " * 20])
    assert found.ids[:, 0].tolist() == [0, 0]
    assert found.ids.shape == (2, 10)
    assert int(found.ids[1, -1]) == 2
    assert int(found.cut[1]) > 0
    assert int(found.ids[0, -1]) in (1, 2)
    head = GroundingHead(settings, (), 16, text).eval()
    with torch.no_grad():
        answer = head(torch.randn(2, 16, 5, 2, 2), found.ids, found.mask)
    assert answer.boxes.shape == (2, 2, 5, 4)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="bert"):
        grounding.open_text(tmp_path, settings)


# The head that compares sentences with people.


def _people(count: tuple[int, ...] = (2, 3), frames: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 20, (sum(count), 1, 2)) + np.arange(frames)[None, :, None]
    boxes = torch.from_numpy(
        np.concatenate([corner, corner + rng.uniform(4, 20, corner.shape)], axis=2)
    ).float()
    return boxes, torch.repeat_interleave(torch.arange(len(count)), torch.tensor(count))


def _matching_head(*scored: int, **fields: object) -> PeopleGroundingHead:
    """A head that has learnt to tell people apart by chance."""
    torch.manual_seed(0)
    head = PeopleGroundingHead(CrowdConfig.tiny(**fields), len(WORDS), *scored).eval()
    torch.nn.init.normal_(head.reader.happens.weight, 0, 0.3)
    return head


def _match(
    head: PeopleGroundingHead,
    colours: torch.Tensor,
    sentences: list[str],
    *given: torch.Tensor | None,
    **more: torch.Tensor,
) -> Matched:
    found = WordReader(WORDS, 64).encode(sentences)
    with torch.no_grad():
        return head(colours, found.ids, found.mask, *given, **more)


def _colours(clips: int = 2, frames: int = 5) -> torch.Tensor:
    return torch.rand(clips, 12, frames, 2, 3, generator=torch.Generator().manual_seed(1)) * 2 - 1


def test_every_person_is_scored_for_every_sentence() -> None:
    head, colours = _matching_head(3, 2), _colours()
    boxes, owner = _people()
    clip = torch.tensor([0, 1, 1])
    partners = list_partners(boxes, owner)
    known = {"doing": torch.rand(5, 5, 3), "bonds": torch.rand(5, 2, 5, 4)}
    found = _match(head, colours, SENTENCES, boxes, owner, clip, partners=partners, **known)
    assert (found.who.shape, found.inside.shape, found.lasting.shape) == ((3, 3), (3, 3, 5), (3, 18))
    assert torch.isinf(found.who).tolist() == [[False, False, True], [False] * 3, [False] * 3]
    assert torch.isfinite(found.inside).all()
    # Each clip and each sentence alone say the same.
    own = {name: value[2:] for name, value in known.items()}
    alone = _match(
        head, colours[1:], SENTENCES[2:], boxes[2:], owner[2:] - 1, partners=partners[2:] - 2, **own
    )
    assert torch.allclose(found.who[2:], alone.who, atol=1e-5)
    assert torch.allclose(found.inside[2:], alone.inside, atol=1e-4)
    assert torch.allclose(found.somebody[2:], alone.somebody, atol=1e-4)


def test_spans_are_scored_by_their_frames_and_their_length() -> None:
    rng = np.random.default_rng(4)
    for frames in (1, 3, 48):
        inside, lasting = (
            torch.from_numpy(rng.normal(size=(2, frames))),
            torch.from_numpy(rng.normal(size=(2, 18))),
        )
        found = score_spans(inside, lasting)
        for n in range(2):
            wanted = np.full((frames, frames), -np.inf)
            for a in range(frames):
                for b in range(a, frames):
                    share = (b - a + 1) / frames
                    near = [
                        math.exp(-((7 * (1 + math.log(share) / math.log(25)) - k) ** 2)) for k in range(8)
                    ]
                    cut = float(a == 0 or b == frames - 1)
                    features = [
                        float(inside[n, a : b + 1].sum()) * min(1, 24 / frames),
                        share,
                        *near,
                        *(cut * each for each in near),
                    ]
                    wanted[a, b] = np.dot(lasting[n].numpy(), features)
            wanted -= np.log(np.exp(wanted).sum())
            assert np.allclose(found[n].numpy(), wanted, atol=1e-5)


def test_people_are_scored_in_half_precision_too() -> None:
    head, colours = _matching_head(), _colours()
    boxes, owner = _people()
    asked = (colours, SENTENCES, boxes, owner, torch.tensor([0, 1, 1]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = _match(head, *asked)
    assert torch.allclose(found.who[1:], _match(head, *asked).who[1:], atol=0.1)
    assert torch.isfinite(found.inside).all()


def test_people_in_another_order_and_frames_behind_change_nothing() -> None:
    head, colours = _matching_head(3, 2), _colours(1)
    boxes, owner = _people((4,))
    doing, seen = torch.rand(4, 5, 3), torch.rand(4, 4, 5, 4)

    def ask(order: torch.Tensor, more: int = 0) -> Matched:
        held = boxes[order]
        partners = list_partners(held, owner)
        bonds = seen[order[:, None], order[partners]]
        filled = [
            torch.cat([each, each[..., -1:, :].expand(*each.shape[:-2], more, -1)], dim=-2)
            for each in (held, doing[order], bonds)
        ]
        frames = torch.arange(5 + more)[None] < 5
        longer = torch.cat([colours, torch.rand(1, 12, more, 2, 3)], dim=2)
        return _match(
            head, longer, SENTENCES[:1], filled[0], owner, None, frames, None, filled[1], partners, filled[2]
        )

    found, order = ask(torch.arange(4)), torch.tensor([2, 0, 3, 1])
    turned, padded = ask(order), ask(torch.arange(4), 3)
    assert torch.allclose(found.who[:, order], turned.who, atol=1e-5)
    assert torch.allclose(found.inside[:, order], turned.inside, atol=1e-4)
    assert torch.allclose(found.who, padded.who, atol=1e-5)
    assert torch.allclose(found.inside, padded.inside[:, :, :5], atol=1e-4)
    assert not bool(padded.inside[:, :, 5:].any())


def test_a_clip_without_people_has_no_answer_and_no_fault() -> None:
    head, colours = _matching_head(), _colours()
    boxes, owner = _people((0, 2))
    found = _match(head, colours, SENTENCES[:2], boxes, owner, partners=list_partners(boxes, owner))
    assert torch.isinf(found.who[0]).all()
    assert torch.isfinite(found.who[1]).all()
    nobody = _match(
        head, colours, SENTENCES[:2], boxes[:0], owner[:0], partners=list_partners(boxes[:0], owner[:0])
    )
    assert torch.isinf(nobody.who).all()
    assert nobody.somebody.tolist() == [-30, -30]
    # One person alone is scored without partners.
    alone = _match(
        head,
        colours[:1],
        SENTENCES[:1],
        boxes[:1],
        owner[:1] - 1,
        partners=list_partners(boxes[:1], owner[:1] - 1),
    )
    assert (alone.who.shape, alone.inside.shape) == ((1, 1), (1, 1, 5))
    assert torch.isfinite(alone.inside).all()


def test_bad_people_are_refused() -> None:
    head, colours = _matching_head(max_frames=5), _colours()
    boxes, owner = _people()
    for given in (
        (boxes[:, :3], owner),
        (boxes * float("nan"), owner),
        (boxes, owner + 1),
        (boxes, owner.flip(0)),
        (boxes, owner, torch.tensor([0])),
        (boxes, owner, torch.tensor([0, 7])),
        (boxes, owner, None, torch.zeros(2, 5, dtype=torch.bool)),
    ):
        with pytest.raises(UsageError):
            _match(head, colours, SENTENCES[:2], *given)
    with pytest.raises(UsageError, match="take fewer"):
        _match(head, _colours(2, 6), SENTENCES[:2], *_people(frames=6))
    with pytest.raises(UsageError, match="colours"):
        _match(head, colours[:, :3], SENTENCES[:2], boxes, owner)


def test_sentences_of_every_kind_are_answered() -> None:
    head, colours = _matching_head(3, 2), _colours(1)
    boxes, owner = _people((3,))
    strange = ["🔥🔥", "мир 日本", "a man " * 250, "zebra quark"]
    clip = torch.zeros(4, dtype=torch.int64)
    found = _match(head, colours, strange, boxes, owner, clip, partners=list_partners(boxes, owner))
    assert torch.isfinite(found.who).all()
    assert torch.isfinite(found.inside).all()
    read = WordReader(WORDS, 64).encode(strange)
    assert (read.unknown > 0.5).tolist() == [True, True, False, True]
    assert read.cut.tolist() == [0, 0, 500 - 62, 0]


def test_colours_of_clothes_have_a_say() -> None:
    head = _matching_head()
    boxes, owner = _people((3,))
    grey = torch.zeros(1, 12, 5, 2, 3)
    red = grey.clone()
    red[:, :4, ..., 0] = 1  # the left cells alone, so that people differ
    one, other = (_match(head, each, SENTENCES[:1], boxes, owner).who for each in (grey, red))
    assert not torch.allclose(one - one.mean(), other - other.mean(), atol=1e-4)


def test_words_weigh_what_people_do() -> None:
    """Of two people the one who does what the sentence says, in the frames in which it is done."""
    head, colours, (boxes, owner) = _matching_head(3), _colours(1), _people((2,))
    torch.nn.init.zeros_(head.reader.happens.weight)
    doing = torch.zeros(2, 5, 3)
    doing[1, 2:4, 2] = 0.81
    without = _match(head, colours, SENTENCES[:1], boxes, owner)
    # A network that has not learnt takes no notice of deeds.
    assert torch.allclose(
        _match(head, colours, SENTENCES[:1], boxes, owner, doing=doing).inside, without.inside
    )
    with torch.no_grad():
        torch.nn.init.zeros_(head.reader.context.weight)
        torch.nn.init.zeros_(head.reader.context.bias)
        head.reader.pieces.weight.zero_()
        head.reader.pieces.weight[WORDS.index("throws"), 0] = 1
        head.reader.happens.weight[5 + 2, 0] = 10  # behind five places the third action
        head.smooth.copy_(torch.tensor([0.0, 0, 0, 1, 0, 0, 0]))
    plain = _match(head, colours, SENTENCES[:1], boxes, owner)
    found = _match(head, colours, SENTENCES[:1], boxes, owner, doing=doing)
    wanted = 10 * (torch.tensor([0, 0, 0.9, 0.9, 0]) - torch.tensor([0, 0, 1e-3, 1e-3, 0]))
    assert torch.allclose((found.inside - plain.inside)[0, 1], wanted, atol=1e-4)
    assert torch.allclose(found.inside[0, 0], plain.inside[0, 0], atol=1e-4)
    gained = (found.who - plain.who)[0]
    # A soft maximum over five frames, two of which have 9.
    assert float(gained[1]) == pytest.approx(
        math.log((2 * math.exp(9) + 3 * math.exp(0.01)) / 5) - 0.01, abs=1e-3
    )
    assert float(gained[0]) == pytest.approx(0, abs=1e-4)
    other = _match(head, colours, SENTENCES[1:2], boxes, owner, doing=doing)
    assert torch.allclose(other.inside, _match(head, colours, SENTENCES[1:2], boxes, owner).inside, atol=1e-5)


def test_words_before_the_verb_describe_who_does_it_and_those_behind_it_the_other() -> None:
    reader = _matching_head(3, 2).reader
    with torch.no_grad():
        torch.nn.init.zeros_(reader.context.weight)
        torch.nn.init.zeros_(reader.context.bias)
        torch.nn.init.zeros_(reader.verb.weight)
        # "throws" is a verb, and nothing else is.
        reader.verb.bias.fill_(-50)
        throws = reader.pieces.weight[WORDS.index("throws")]
        reader.verb.weight[0] = 100 * throws / (throws @ throws)

    def read(sentence: str) -> Said:
        found = WordReader(WORDS, 64).encode([sentence])
        with torch.no_grad():
            return reader(found.ids, found.mask)

    first, other_subject, other_object = (
        read(text) for text in ("a man throws a coat", "a woman throws a coat", "a man throws a red")
    )
    assert torch.allclose(first.other, other_subject.other, atol=1e-5)
    assert not torch.allclose(first.subject, other_subject.subject, atol=1e-3)
    assert torch.allclose(first.subject, other_object.subject, atol=1e-5)
    assert not torch.allclose(first.other, other_object.other, atol=1e-3)
    # What is said of deeds is said by all words, in any order of both people.
    turned = read("a coat throws a man")
    assert torch.allclose(turned.actions, first.actions, atol=1e-5)
    assert not torch.allclose(turned.subject, first.subject, atol=1e-3)
    # Padding says nothing.
    found = WordReader(WORDS, 64).encode(["a man throws a coat", "a man throws a coat " * 3])
    with torch.no_grad():
        both = reader(found.ids, found.mask)
    assert all(torch.allclose(part[0], own[0], atol=1e-5) for part, own in zip(both, first, strict=True))


def test_pairs_say_who_does_it_to_whom() -> None:
    """The first pushes the second: the sentence is of the first where it says so, of the second where it says the reverse."""
    head, colours, (boxes, owner) = _matching_head(3, 2), _colours(1), _people((3,))
    partners = list_partners(boxes, owner)
    bonds = torch.zeros(3, 2, 5, 4)
    bonds[0, (partners[0] == 1).nonzero(), 1:3, 1] = 1
    bonds[1, (partners[1] == 0).nonzero(), 1:3, 3] = 1
    with torch.no_grad():
        head.likeness.zero_()
        head.trust.fill_(1)
        torch.nn.init.zeros_(head.reader.happens.weight)
        for place, who in ((1, 0), (3, 1)):
            head.reader.happens.bias.zero_()
            head.reader.happens.bias[5 + 3 + place] = 3
            found = _match(head, colours, SENTENCES[:1], boxes, owner, partners=partners, bonds=bonds)
            assert int(found.who.argmax()) == who
            assert found.inside[0, who, 1:3].min() > found.inside[0, who, [0, 4]].max()
            assert found.inside[0, who].max() > found.inside[0, 2].max() + 1


def test_without_a_head_of_actions_tracks_are_read_here() -> None:
    head, colours, (boxes, owner) = _matching_head(), _colours(1), _people((2,))
    still = boxes[:, :, None].expand(-1, -1, 41, -1)
    moving = still + torch.arange(41.0)[:, None]
    one, other = (
        _match(head, colours, SENTENCES[:1], boxes, owner, tracks=tracks) for tracks in (still, moving)
    )
    assert not torch.allclose(one.inside, other.inside, atol=1e-4)
    assert head.motion is not None
    assert _matching_head(3).motion is None


def test_partners_are_the_nearest_of_the_clip_and_bounded() -> None:
    def stand(x: list[float]) -> torch.Tensor:
        left = torch.tensor(x)[:, None, None].expand(-1, 2, 1)
        return torch.cat([left, left * 0, left + 10, left * 0 + 20], dim=2)

    boxes, owner = stand([0.0, 50, 20, 0, 5]), torch.tensor([0, 0, 0, 1, 1])
    assert list_partners(boxes, owner).tolist() == [[2, 1], [2, 0], [0, 1], [4, -1], [3, -1]]
    # Who comes near in some frame is near.
    boxes[0, 1] += torch.tensor([45.0, 0, 45, 0])
    assert list_partners(boxes, owner)[1].tolist() == [0, 2]
    for count, most in ((1, 0), (2, 1), (40, 31), (300, 27), (1000, 8)):
        many = stand([12.0 * n for n in range(count)])
        found = list_partners(many, torch.zeros(count, dtype=torch.int64))
        assert found.shape == (count, min(31, count - 1))
        assert ((found >= 0).sum(dim=1) == most).all()
    head = _matching_head(3, 2)
    many = stand([0.15 * n for n in range(300)])
    owner = torch.zeros(300, dtype=torch.int64)
    found = _match(head, _colours(1, 2), SENTENCES[:1], many, owner, partners=list_partners(many, owner))
    assert torch.isfinite(found.inside).all()


def test_colours_are_means_of_quarters_of_cells() -> None:
    pictures = torch.randint(0, 256, (2, 20, 33, 3), dtype=torch.uint8)
    found = grounding.measure_colours(pictures, (32, 48))
    assert found.shape == (12, 2, 2, 3)
    padded = torch.zeros(2, 32, 48, 3)
    padded[:, :20, :33] = pictures.float()
    for channel in range(3):
        for quarter in range(4):
            row, column = 16 + 8 * (quarter // 2), 16 + 8 * (quarter % 2)
            wanted = padded[1, row : row + 8, column : column + 8, channel].mean()
            assert float(found[4 * channel + quarter, 1, 1, 1]) == pytest.approx(float(wanted), abs=0.51)


def test_people_are_described_in_parts_of_the_image() -> None:
    size = torch.tensor([100.0, 200.0])
    boxes = torch.tensor([[[10.0, 10, 20, 60], [70, 100, 90, 200]]])
    shapes, places = grounding.describe_shapes(boxes, size)[0], grounding.describe_places(boxes, size)[0]
    tall = [math.log(0.25) + 1.3, math.log(0.5) + 1.3]
    wanted = [
        [tall[0], math.log(0.2), -0.4, tall[0] - math.log(0.3)],
        [tall[1], math.log(0.2), 1.0, tall[1]],
    ]
    assert torch.allclose(shapes, torch.tensor(wanted), atol=1e-6)
    assert torch.allclose(places, torch.tensor([[-0.7, 0.49, 0, 1, 0], [0.6, 0.36, 1, 0, 0]]), atol=1e-6)


def test_who_stands_lower_in_the_image_covers_others() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 20], [5, 10, 15, 30], [100, 0, 110, 20]])[:, None]
    assert torch.allclose(grounding.measure_openness(boxes)[:, 0], torch.tensor([0.75, 1, 1]))
    assert grounding.measure_openness(boxes[:1]).tolist() == [[1.0]]
