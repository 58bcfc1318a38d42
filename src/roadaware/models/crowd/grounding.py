"""The heads that are asked by a sentence: when it happens, and where or to whom; imports torch."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from torch import Tensor, nn
from torch.nn import functional

from roadaware.errors import UsageError
from roadaware.io.sources import to_printable
from roadaware.models.crowd.config import STRIDE_PX, CrowdConfig, has_word
from roadaware.models.crowd.people import MOTION_FEATURES, build_motion_layers, check_people, describe_motion
from roadaware.models.pretrained import encode_texts, load_tokenizer
from roadaware.models.roi import roi_align

# Words: a sentence to numbers of its pieces.

_BEGIN, _PAD, _END, _UNKNOWN = "[CLS]", "[PAD]", "[SEP]", "[UNK]"
_MARKS = (_BEGIN, _PAD, _END, _UNKNOWN)
_PAD_PLACE = _MARKS.index(_PAD)
_LONGEST_WORD = 100


class Encoded(NamedTuple):
    """Sentences as numbers.

    Args:
        ids: (n, L) int64, with marks of begin and end, filled up behind.
        mask: (n, L) bool, which of them are pieces or marks.
        unknown: (n,) the share of pieces that no sentence of the vocabulary had.
        cut: (n,) int64, pieces at the end that did not fit.
    """

    ids: Tensor
    mask: Tensor
    unknown: Tensor
    cut: Tensor


def build_words(sentences: Iterable[str], most: int = 4000) -> tuple[str, ...]:
    """The pieces of words of a vocabulary: marks, single letters, and whole words, the most frequent first.

    Args:
        sentences: to learn from.
        most: pieces, marks among them.

    Returns:
        In an order that the sentences alone decide, for `Vocabulary.words`.
    """
    normalizer, splitter = BertNormalizer(lowercase=True), BertPreTokenizer()
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(sentence)))
    letters = sorted({letter for word in counts for letter in word})
    # A word that was never seen is spelt, as far as its letters were.
    pieces = [*letters, *(f"##{letter}" for letter in letters)]
    words = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple(dict.fromkeys([*_MARKS, *pieces, *words]))[:most]


class WordReader:
    """Sentences to numbers, by the pieces of a vocabulary or by a tokenizer of others.

    Args:
        words: as `build_words` makes them.
        most: pieces of a sentence, marks among them.
        tokenizer: in their place; it adds marks itself.

    Raises:
        UsageError: if `words` does not begin with the marks.
    """

    def __init__(self, words: Sequence[str], most: int, tokenizer: Tokenizer | None = None) -> None:
        self.most, self.marked = most, tokenizer is not None
        if tokenizer is None:
            if tuple(words[: len(_MARKS)]) != _MARKS:
                raise UsageError(
                    f"words begin with {', '.join(_MARKS)}: `build_words` makes them of sentences"
                )
            places = {word: place for place, word in enumerate(words)}
            model: Any = WordPiece(places, unk_token=_UNKNOWN, max_input_chars_per_word=_LONGEST_WORD)
            tokenizer = Tokenizer(model)
            made: Any = tokenizer
            made.normalizer, made.pre_tokenizer = BertNormalizer(lowercase=True), BertPreTokenizer()
        self.tokenizer = tokenizer
        self.pad = tokenizer.token_to_id("<pad>") if self.marked else _PAD_PLACE

    def encode(self, sentences: Sequence[str]) -> Encoded:
        """Numbers of the pieces of sentences; what does not fit is cut off at the end, and counted.

        Words in letters that were never seen, emoji among them, become the mark for unknown pieces.

        Raises:
            UsageError: if there is none, or one has no word.
        """
        if not sentences:
            raise UsageError("give at least one sentence")
        for sentence in sentences:
            if not sentence.strip():
                raise UsageError("a sentence needs at least one word; got an empty one")
        rows, unknown, cut = [], [], []
        for sentence, found in zip(sentences, encode_texts(self.tokenizer, sentences), strict=True):
            pieces, ids = list(found.tokens), list(found.ids)
            room = self.most if self.marked else self.most - 2
            if not ids or not has_word(sentence):
                raise UsageError(
                    f"there is no word in the sentence '{to_printable(sentence, 60)}'; say who does what"
                )
            strange = sum(self._is_strange(piece) for piece in pieces)
            unknown.append(0.0 if self.marked else strange / len(pieces))
            cut.append(max(0, len(ids) - room))
            if self.marked:
                # The mark of the end stays.
                rows.append([*ids[: room - 1], ids[-1]] if len(ids) > room else ids)
            else:
                rows.append([_MARKS.index(_BEGIN), *ids[:room], _MARKS.index(_END)])
        length = max(map(len, rows))
        filled = torch.tensor([row + [self.pad or 0] * (length - len(row)) for row in rows])
        mask = torch.tensor([[place < len(row) for place in range(length)] for row in rows])
        return Encoded(filled, mask, torch.tensor(unknown), torch.tensor(cut))

    def _is_strange(self, piece: str) -> bool:
        """Whether a piece says that its word is not known: it is spelt, or stands for anything."""
        return piece == _UNKNOWN or piece.startswith("##")


class TextEncoder(nn.Module):
    """A small RoBERTa, drawn at random, or one that is given.

    Args:
        config: of the network.
        words: how many pieces there are.
        model: a RobertaModel in its place.
    """

    def __init__(self, config: CrowdConfig, words: int, model: nn.Module | None = None) -> None:
        super().__init__()
        if model is None:
            from transformers import RobertaConfig, RobertaModel  # takes a second

            settings: Any = RobertaConfig(
                vocab_size=max(words, len(_MARKS)),
                hidden_size=config.text_width,
                num_hidden_layers=config.text_layers,
                num_attention_heads=config.text_heads,
                intermediate_size=4 * config.text_width,
                # Places count from behind that of the padding, as in RoBERTa.
                max_position_embeddings=config.max_tokens + _PAD_PLACE + 1,
                type_vocab_size=1,
                pad_token_id=_PAD_PLACE,
                bos_token_id=_MARKS.index(_BEGIN),
                eos_token_id=_MARKS.index(_END),
            )
            made: Any = RobertaModel
            model = made(settings, add_pooling_layer=False)
        self.model = model
        self.width = int(self.model.config.hidden_size)  # type: ignore[union-attr, arg-type]

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """(B, L, width) of (B, L) pieces and which of them count."""
        states: Tensor = self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        return states


def open_text(folder: Path, config: CrowdConfig) -> tuple[TextEncoder, WordReader]:
    """A published RoBERTa with its tokenizer, from a folder of transformers; nothing is downloaded.

    Args:
        folder: with config.json, safetensors and the files of its tokenizer.
        config: of the network.

    Raises:
        InputError, DamagedError: as `pretrained.load_pretrained_model` and `folder_configs.load_tokenizer`.
    """
    from transformers import RobertaModel

    from roadaware.models.pretrained import load_pretrained_model

    class Bare(RobertaModel):  # type: ignore[no-untyped-call]
        """Without the layer that pools, which published weights do not have."""

        def __init__(self, config: Any) -> None:
            super().__init__(config, add_pooling_layer=False)

    model = load_pretrained_model(folder, ("roberta",), Bare)
    return TextEncoder(config, 0, model), WordReader((), config.max_tokens, load_tokenizer(folder))


# Positions, of cells and of frames.


def space_sines(height: int, width: int, numbers: int, device: torch.device | None = None) -> Tensor:
    """(height * width, numbers) positions of cells: sines and cosines of the row, then of the column.

    Rows count from 1 to `height` and are scaled to a circle, as are columns.

    Source: Carion et al., ECCV 2020 (DETR), the normalised form with a temperature of 10,000.
    """
    half = numbers // 2
    rates = 10_000 ** (2 * (torch.arange(half, device=device) // 2) / half)

    def waves(count: int) -> Tensor:
        place = torch.arange(1, count + 1, device=device) / (count + 1e-6) * 2 * math.pi
        angles = place[:, None] / rates
        return torch.stack([angles[:, 0::2].sin(), angles[:, 1::2].cos()], dim=2).flatten(1)

    rows = waves(height)[:, None].expand(-1, width, -1)
    columns = waves(width)[None].expand(height, -1, -1)
    return torch.cat([rows, columns], dim=2).flatten(0, 1)


def time_sines(frames: int, numbers: int, device: torch.device | None = None) -> Tensor:
    """(frames, numbers) positions of frames: sines at even places, cosines at odd ones.

    Source: Vaswani et al., NeurIPS 2017.
    """
    rates = torch.exp(torch.arange(0, numbers, 2, device=device) * (-math.log(10_000) / numbers))
    angles = torch.arange(frames, device=device)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


# The transformer: a sentence with some frames, then queries of all frames.


class EncoderLayer(nn.Module):
    """Self-attention whose positions are added to queries and keys alone, then two layers; norms come after."""

    def __init__(self, config: CrowdConfig) -> None:
        super().__init__()
        width, rate = config.grounding_width, config.dropout
        self.attention = nn.MultiheadAttention(width, config.attention_heads, rate, batch_first=True)
        self.feed = feed_forward(config)
        self.norm1, self.norm2, self.dropout = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(rate)

    def forward(self, tokens: Tensor, places: Tensor, padding: Tensor) -> Tensor:
        """(N, S, width) of tokens (N, S, width).

        Args:
            tokens: (N, S, width).
            places: (N, S, width) or one that broadcasts.
            padding: (N, S) bool, which tokens are none.
        """
        placed = tokens + places
        seen, _ = self.attention(placed, placed, tokens, key_padding_mask=padding, need_weights=False)
        tokens = self.norm1(tokens + self.dropout(seen))
        out: Tensor = self.norm2(tokens + self.dropout(self.feed(tokens)))
        return out


class DecoderLayer(nn.Module):
    """Self-attention of the frames of a video, then each frame looks at its own tokens alone."""

    def __init__(self, config: CrowdConfig) -> None:
        super().__init__()
        width, rate = config.grounding_width, config.dropout
        self.over_time = nn.MultiheadAttention(width, config.attention_heads, rate, batch_first=True)
        self.over_tokens = nn.MultiheadAttention(width, config.attention_heads, rate, batch_first=True)
        self.feed = feed_forward(config)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(rate)

    def forward(
        self, state: Tensor, query: Tensor, memory: Tensor, places: Tensor, lost: Tensor, padding: Tensor
    ) -> tuple[Tensor, Tensor]:
        """(B, T, width) states of frames, and (B, T, T) how much each frame looked at each other.

        Args:
            state, query: (B, T, width).
            memory: (B * T, S, width) tokens of each frame.
            places: as memory, or one that broadcasts.
            lost: (B, T) bool, frames that are none.
            padding: (B * T, S) bool, tokens that are none.
        """
        placed = state + query
        seen, weights = self.over_time(placed, placed, state, key_padding_mask=lost)
        state = self.norm1(state + self.dropout(seen))
        # Frames are folded into the batch, so that a query meets the tokens of its own frame.
        asked = (state + query).flatten(0, 1).unsqueeze(1)
        looked, _ = self.over_tokens(
            asked, memory + places, memory, key_padding_mask=padding, need_weights=False
        )
        state = self.norm2(state + self.dropout(looked.view_as(state)))
        return self.norm3(state + self.dropout(self.feed(state))), weights


def feed_forward(config: CrowdConfig) -> nn.Sequential:
    """Two layers with a rectifier and dropout between them."""
    return nn.Sequential(
        nn.Linear(config.grounding_width, config.feed_forward),
        nn.ReLU(),
        nn.Dropout(config.dropout),
        nn.Linear(config.feed_forward, config.grounding_width),
    )


class Grounded(NamedTuple):
    """Answers of the head, of each layer of its decoder, the last one last.

    Args:
        boxes: (layers, B, T, 4) centre, width and height in parts of the network's image.
        spans: (layers, B, T, 2) logits that a frame is the first one and the last one of the span; `decode_span`
            of the metrics of grounding reads the span.
        attention: (layers, B, T, T) how much each frame looked at each other.
    """

    boxes: Tensor
    spans: Tensor
    attention: Tensor


class GroundingHead(nn.Module):
    """When and where a sentence happens (TubeDETR).

    The slow way reads every k-th frame together with the sentence; what it makes of them stands for the frames
    until the next one. The fast way adds every frame to it, without a gradient to the trunk, by a layer that
    begins with zeros. A query for each frame looks at all frames and at the cells and words of its own, and
    becomes a box, and two logits. The compact form reads the means of 2x2 cells.

    Args:
        config: of the network.
        words: pieces of words, as `Vocabulary.words`.
        channels: of the trunk's map.
        text: reads sentences in place of a small RoBERTa (`open_text`).

    Source: Yang et al., CVPR 2022 (TubeDETR), section 3, and its released code.
    """

    def __init__(
        self, config: CrowdConfig, words: Sequence[str], channels: int, text: TextEncoder | None = None
    ) -> None:
        super().__init__()
        width = config.grounding_width
        self.config = config
        self.text = text or TextEncoder(config, len(words))
        self.from_text = nn.Linear(self.text.width, width)
        self.text_norm, self.text_dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(config.dropout)
        self.from_map = nn.Conv2d(channels, width, 1)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        self.fast, self.fast_added = nn.Linear(width, width), nn.Linear(width, width)
        self.query = nn.Parameter(torch.zeros(width))
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = nn.LayerNorm(width)
        self.box = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4)
        )
        # Dropout behind the last layer, too, as released.
        self.span = nn.Sequential(
            nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.5), nn.Linear(width, 2), nn.Dropout(0.5)
        )
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1 and name.startswith(("encoder.", "decoder.")):
                nn.init.xavier_uniform_(parameter)
        nn.init.normal_(self.query)
        nn.init.zeros_(self.fast_added.weight)
        nn.init.zeros_(self.fast_added.bias)

    def forward(self, map: Tensor, ids: Tensor, mask: Tensor, frames: Tensor | None = None) -> Grounded:
        """Boxes and spans of one sentence for each clip.

        Args:
            map: (B, C, T, H, W) of the trunk; padding of shorter clips stands behind.
            ids, mask: (B, L) of the sentences, as `WordReader.encode` makes them.
            frames: (B, T) bool, which frames are of the clip (default: all).

        Raises:
            UsageError: if a clip has no frame or more than `max_frames`, or there is not one sentence each.
        """
        batch, _, time = map.shape[:3]
        if len(ids) != batch or ids.shape != mask.shape:
            raise UsageError(
                f"{batch} clips and {len(ids)} sentences: give each clip a sentence with its mask"
            )
        if not 0 < time <= self.config.max_frames:
            raise UsageError(f"a clip has 1 to {self.config.max_frames} frames, not {time}: take fewer")
        frames = torch.ones(batch, time, dtype=torch.bool, device=map.device) if frames is None else frames
        if not bool(frames.any(dim=1).all()):
            raise UsageError("a clip has no frame: its mask is empty")
        if self.config.form == "compact":
            # Cells of 32 pixels, as the published system has them: attention compares a sixteenth of the pairs.
            map = functional.avg_pool3d(map, (1, 2, 2), ceil_mode=True)
        memory, places, padding = self._read(map, ids, mask)
        query = (self.query + time_sines(time, len(self.query), map.device)).expand(batch, -1, -1)
        state, shown, weights = torch.zeros_like(query), [], []
        for layer in self.decoder:
            state, weight = layer(state, query, memory, places, ~frames, padding)
            shown.append(self.norm(state))
            weights.append(weight)
        states = torch.stack(shown)
        return Grounded(self.box(states).sigmoid(), self.span(states), torch.stack(weights))

    def _read(self, map: Tensor, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (B * T, S, width) of each frame, their positions (1, S, width), and which are none (B * T, S)."""
        batch, _, time, height, width = map.shape
        stride = self.config.slow_stride
        words = self.text_dropout(self.text_norm(self.from_text(self.text(ids, mask))))
        slow = self._project(map[:, :, ::stride])
        clips = slow.shape[1]
        # (B, clips, S, width): cells of a frame, then the words.
        tokens = torch.cat([slow, words.unsqueeze(1).expand(-1, clips, -1, -1)], dim=2).flatten(0, 1)
        cells = space_sines(height, width, words.shape[2], map.device).to(words.dtype)
        places = torch.cat([cells, cells.new_zeros(words.shape[1:])]).unsqueeze(0)
        none = functional.pad(~mask, (height * width, 0), value=False)
        padding = none.repeat_interleave(clips, dim=0)
        for layer in self.encoder:
            tokens = layer(tokens, places, padding)
        held = tokens.reshape(batch, clips, *tokens.shape[1:])[
            :, torch.arange(time, device=map.device) // stride
        ]
        seen, read = held[:, :, : height * width], held[:, :, height * width :]
        fast = self.fast(self._project(map.detach()))
        seen = seen + self.fast_added(seen + fast)
        return torch.cat([seen, read], dim=2).flatten(0, 1), places, none.repeat_interleave(time, dim=0)

    def _project(self, map: Tensor) -> Tensor:
        """(B, T, H * W, width) of (B, C, T, H, W)."""
        frames = self.from_map(map.transpose(1, 2).flatten(0, 1))
        shown: Tensor = frames.flatten(2).transpose(1, 2).unflatten(0, (map.shape[0], map.shape[2]))
        return shown


# The same question with people known: which of them, and when.


_CONTEXT, _BODY_CELLS, _PLACES, _SHAPES = 5, (8, 4), 5, 4
_LENGTHS, _SHORTEST, _EVEN_FRAMES = 8, 0.04, 24.0
"""Lengths of spans that are told apart, evenly spread in their logarithm between the shortest, in shares of the clip, and all
of it; and how many frames of a clip the recipes look at: of more, each counts for less."""
_SPAN_FEATURES = 2 + 2 * _LENGTHS
_NOBODY = -30.0
"""The logit that a sentence speaks of anybody where there is nobody."""
_PARTNERS, _MOST_PAIRS = 31, 8192
"""Others beside whom a person is looked at, and pairs of people of a clip, about: of a crowd the nearest."""
_OWN_DEEDS = 48
"""Numbers of what tracks say where no head of actions scores them."""


class Matched(NamedTuple):
    """How well each person of a clip goes with a sentence, of Q sentences and at most P people in a clip.

    Args:
        who: (Q, P) logits that the sentence speaks of a person; -inf behind the people of the clip.
        inside: (Q, P, T) logits that a person does in a frame what the sentence says; 0 where there is no such frame.
        lasting: (Q, 18) weights of `describe_spans`: how long what the sentence says lasts, see `score_spans`.
        somebody: (Q,) logits that the sentence speaks of anybody in its clip.
    """

    who: Tensor
    inside: Tensor
    lasting: Tensor
    somebody: Tensor


class Said(NamedTuple):
    """What Q sentences say.

    Args:
        subject: (Q, width) how the person looks of whom a sentence speaks, by the words before its verb.
        other: (Q, width) how the other person looks, by the words behind it.
        place: (Q, 5) weights of `describe_places`: where in the image it happens.
        actions: (Q, actions) weights of what the person does.
        relations: (Q, 2 * predicates) weights of what the person does to the other one, then of what the other one does.
        lasting: (Q, 18) weights of `describe_spans`: how long it lasts.
        nobody: (Q, 1) how well anybody has to go with the sentence.
    """

    subject: Tensor
    other: Tensor
    place: Tensor
    actions: Tensor
    relations: Tensor
    lasting: Tensor
    nobody: Tensor


class SentenceReader(nn.Module):
    """Reads pieces of words in their order: each beside its two neighbours on either side, before or behind a verb.

    How much of a verb each piece is, is learnt: what comes before the first verb describes the person of whom the sentence
    speaks, what comes behind it another one ("a man in red pushes the woman in blue").

    Args:
        words: how many pieces there are.
        width: numbers of a piece.
        actions, predicates: how many are scored.
        dropout: of numbers of pieces.
    """

    def __init__(self, words: int, width: int, actions: int, predicates: int, dropout: float) -> None:
        super().__init__()
        self.pieces = nn.Embedding(max(words, 1), width)
        nn.init.normal_(self.pieces.weight, 0, 0.3)
        self.context = nn.Conv1d(width, width, _CONTEXT, padding=_CONTEXT // 2)
        self.verb, self.counts, self.looks = nn.Linear(width, 1), nn.Linear(width, 1), nn.Linear(width, width)
        self.sizes = (_PLACES, actions, 2 * predicates, _SPAN_FEATURES, 1)
        self.happens = nn.Linear(width, sum(self.sizes))
        # At first words say nothing of actions: drawn at random they would speak of fifty at once.
        nn.init.zeros_(self.happens.weight)
        nn.init.zeros_(self.happens.bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, ids: Tensor, mask: Tensor) -> Said:
        """What sentences say, of pieces (Q, L) and which of them count."""
        held = mask.to(self.pieces.weight)[..., None]
        words = self.dropout(self.pieces(ids)) * held
        words = words + functional.relu(self.context(words.transpose(1, 2))).transpose(1, 2)
        # Rarely a verb at first, so that all pieces describe the person until verbs are known.
        verbs = functional.softplus(self.verb(words) - 2) * held
        before = torch.exp(verbs - verbs.cumsum(dim=1))
        looks = self.looks(words) * self.counts(words).sigmoid() * held
        happens = (self.happens(words) * held).sum(dim=1).split(self.sizes, dim=1)
        return Said((before * looks).sum(dim=1), ((1 - before) * looks).sum(dim=1), *happens)


class AppearanceEncoder(nn.Module):
    """How people look: the colours of 8x4 cells of their bodies and their shapes, over the frames that show them well.

    Args:
        width: numbers of a person.
        dropout: of numbers between the layers.
    """

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        inner = 3 * math.prod(_BODY_CELLS)
        self.frame = nn.Sequential(nn.Linear(inner + _SHAPES, inner), nn.ReLU(), nn.Dropout(dropout))
        self.clear, self.last, self.norm = nn.Linear(inner, 1), nn.Linear(inner, width), nn.LayerNorm(width)

    def forward(self, image: Tensor, boxes: Tensor, size: Tensor) -> Tensor:
        """(P, width) of people.

        Args:
            image: (T, 3, H / 8, W / 8) colours in -1 to 1.
            boxes: (P, T, 4) in pixels.
            size: (2,) W and H.
        """
        if self.training:
            # Light of another colour, and brighter or darker.
            gain = (1 + 0.15 * torch.randn(3, 1, 1, device=image.device)) * (
                1 + 0.15 * float(torch.randn(()))
            )
            image = (image + 1) * gain - 1 + 0.05 * torch.randn(3, 1, 1, device=image.device)
        people, frames = boxes.shape[:2]
        moments = torch.arange(frames, device=boxes.device).repeat(people)
        cells = roi_align(
            image, boxes.flatten(0, 1), moments, size=_BODY_CELLS, scale=2 / STRIDE_PX, samples=2
        )
        seen = self.frame(
            torch.cat([cells.flatten(1).view(people, frames, -1), describe_shapes(boxes, size)], dim=2)
        )
        weight = self.clear(seen).squeeze(2) + 2 * measure_openness(boxes).clamp(min=0.05).log()
        looks: Tensor = self.norm(torch.einsum("pt,ptd->pd", weight.softmax(dim=1), self.last(seen)))
        return looks


class PeopleGroundingHead(nn.Module):
    """Of whom a sentence speaks, and when it happens, where the tracks of people are known. Ours.

    The answer is a track and a span: two cores learn that from some thousand sentences, and not a box in each frame. A
    sentence says how a person looks, what they do, to whom, and where (`SentenceReader`); people are told by the colours of
    their bodies (`AppearanceEncoder`), by what the heads of actions and relations score of their tracks, and by their places.
    Each person is scored together with each other one near (`list_partners`), and what both say is summed over the others: "a
    man in red pushes the woman in blue" speaks of a man who looks so, who pushes somebody who looks so. The map of the trunk
    has no say: what people wear and do is hardly in it.

    Args:
        config: of the network.
        words: how many pieces of words there are.
        actions: how many the head of actions scores; 0 where there is none, so that what tracks say is learnt here.
        predicates: how many the head of relations scores; 0 where there is none.
    """

    def __init__(self, config: CrowdConfig, words: int, actions: int = 0, predicates: int = 0) -> None:
        super().__init__()
        width, rate = config.sentence_width, 2 * config.dropout
        self.config, self.actions, self.predicates = config, actions or _OWN_DEEDS, predicates
        self.motion = None if actions else build_motion_layers(MOTION_FEATURES, width, _OWN_DEEDS)
        self.reader = SentenceReader(words, width, self.actions, predicates, rate)
        self.appearance = AppearanceEncoder(width, rate)
        self.likeness = nn.Parameter(torch.tensor(0.5))
        # How much a good moment counts for more than a long time, as the factor of a soft maximum.
        self.sharpness = nn.Parameter(torch.tensor(1.0))
        self.trust, self.base = nn.Parameter(torch.tensor(0.0)), nn.Parameter(torch.tensor(-1.0))
        self.smooth = nn.Parameter(torch.tensor([0.0, 0.0, 0.2, 0.6, 0.2, 0.0, 0.0]))
        # What all sentences have in common; their words are added. Frames beside each other err alike: their sum would be too
        # sure.
        self.lasting = nn.Parameter(torch.tensor([0.3] + [0.0] * (_SPAN_FEATURES - 1)))

    def forward(
        self,
        colours: Tensor,
        ids: Tensor,
        mask: Tensor,
        boxes: Tensor,
        owner: Tensor,
        clip: Tensor | None = None,
        frames: Tensor | None = None,
        tracks: Tensor | None = None,
        doing: Tensor | None = None,
        partners: Tensor | None = None,
        bonds: Tensor | None = None,
    ) -> Matched:
        """How well each person goes with each sentence.

        Args:
            colours: (B, 12, T, H / 16, W / 16) as `measure_colours` gives them, in -1 to 1; padding of shorter clips stands
                behind.
            ids, mask: (Q, L) of the sentences, as `WordReader.encode` makes them.
            boxes: (n, T, 4) x1, y1, x2, y2 in pixels of every person in every frame of its clip; where one is not
                seen, the box of the nearest frame.
            owner: (n,) int64, which of the B clips each person is in, rising.
            clip: (Q,) int64, which clip each sentence is asked of (default: one each, in their order).
            frames: (B, T) bool, which frames are of the clip (default: all).
            tracks: (n, T, K, 4) the boxes of each person around each frame, see `people.describe_motion` (default: their
                motion is not known); read where there is no head of actions.
            doing: (n, T, actions) scores in [0, 1] of what each does in each frame (default: not known).
            partners: (n, O) as `list_partners` gives them (default: everybody is looked at alone).
            bonds: (n, O, T, 2 * predicates) scores in [0, 1] of what each does to each partner, then of what that one does to
                them (default: not known).

        Raises:
            UsageError: if a clip has no frame or more than `max_frames`, boxes, colours or clips are none, or a sentence
                has no clip.
        """
        clip = torch.arange(len(ids), device=ids.device) if clip is None else clip
        frames = _check_clips(self.config, colours, ids, mask, boxes, owner, clip, frames)
        batch, time = frames.shape
        size = colours.new_tensor([colours.shape[4], colours.shape[3]]) * STRIDE_PX
        if doing is None and self.motion is not None and tracks is not None:
            moments = owner[:, None] * time + torch.arange(time, device=owner.device)
            motion = describe_motion(tracks.flatten(0, 1), moments.flatten(), size)
            doing = self.motion(motion).sigmoid().view(*boxes.shape[:2], -1)
        doing = boxes.new_zeros(*boxes.shape[:2], self.actions) if doing is None else doing
        partners = owner.new_zeros(len(owner), 0) if partners is None else partners
        if bonds is None:
            bonds = boxes.new_zeros(*partners.shape, time, 2 * self.predicates)
        said = self.reader(ids, mask)
        people = max(1, int(torch.bincount(owner, minlength=batch).max()))
        who = boxes.new_full((len(ids), people), -math.inf)
        inside = boxes.new_zeros(len(ids), people, time)
        somebody = boxes.new_full((len(ids),), _NOBODY)
        for number in torch.unique(clip).tolist():
            asked, own = (clip == number).nonzero().flatten(), (owner == number).nonzero().flatten()
            held = int(frames[number].sum())
            if not len(own):
                continue
            kept = partners[own][:, : int((partners[own] >= 0).sum(dim=1).max())]
            image = functional.pixel_shuffle(colours[number, :, :held].transpose(0, 1), 2)
            found_who, found_inside = self._compare(
                Said(*(part[asked] for part in said)),
                self.appearance(image, boxes[own, :held], size),
                describe_places(boxes[own, :held], size),
                doing[own, :held],
                kept - own[0],
                bonds[own, : kept.shape[1], :held],
            )
            columns = torch.arange(len(own), device=own.device)
            who = who.index_put(
                (asked[:, None], columns), found_who.to(who)
            )  # of half precision under autocast
            inside = inside.index_put(
                (asked[:, None, None], columns[:, None], torch.arange(held, device=own.device)),
                found_inside.to(inside),
            )
            somebody = somebody.index_put(
                (asked,), (found_who.logsumexp(dim=1) - said.nobody[asked, 0]).to(somebody)
            )
        return Matched(who, inside, said.lasting + self.lasting, somebody)

    def _compare(
        self, said: Said, looks: Tensor, places: Tensor, doing: Tensor, partners: Tensor, bonds: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`who` and `inside` of one clip: Q sentences beside P people with looks (P, width), places (P, T, 5), deeds
        (P, T, actions), and each beside O partners (P, O) with bonds (P, O, T, 2 * predicates).
        """
        scale = self.likeness / math.sqrt(looks.shape[1])
        subject, other = (scale * part @ looks.T for part in (said.subject, said.other))
        # Of rare actions a score of a tenth says much: roots bring it nearer to that of a sure one.
        alone = torch.einsum("qa,pta->qpt", said.actions, doing.clamp(1e-6, 1).sqrt())
        alone = alone + torch.einsum("qc,ptc->qpt", said.place, places)
        if partners.shape[1]:
            # (Q, P, O, T): what is done if it is this person and that partner.
            bound = torch.einsum("qr,potr->qpot", said.relations, bonds.clamp(1e-6, 1).sqrt())
            done = alone[:, :, None] + bound
            some_time = self._soft_maximum(done)
            fitting = other[:, partners]
            who = subject + (fitting + some_time).logsumexp(dim=2)
            inside = torch.einsum("qpo,qpot->qpt", (fitting + self.trust * some_time).softmax(dim=2), done)
        else:
            who, inside = subject + self._soft_maximum(alone), alone
        reach = len(self.smooth) // 2
        inside = functional.conv1d(inside.flatten(0, 1)[:, None], self.smooth[None, None], padding=reach)
        return who, inside.view_as(alone) + self.base

    def _soft_maximum(self, values: Tensor) -> Tensor:
        """Between mean and maximum over the last axis: whoever is spoken of does it at some time, not in all of the clip."""
        factor = self.sharpness.clamp(min=0.2)
        return ((values * factor).logsumexp(dim=-1) - math.log(values.shape[-1])) / factor


def _check_clips(
    config: CrowdConfig,
    colours: Tensor,
    ids: Tensor,
    mask: Tensor,
    boxes: Tensor,
    owner: Tensor,
    clip: Tensor,
    frames: Tensor | None,
) -> Tensor:
    """(B, T) bool which frames are of each clip; refuses what no question about people is."""
    if colours.ndim != 5 or colours.shape[1] != COLOURS:
        raise UsageError(f"{tuple(colours.shape)} colours: give (B, {COLOURS}, T, H, W)")
    batch, time = len(colours), colours.shape[2]
    if len(clip) != len(ids) or ids.shape != mask.shape:
        raise UsageError(f"{len(clip)} clips and {len(ids)} sentences: give each sentence a clip and a mask")
    if len(clip) and not 0 <= int(clip.min()) <= int(clip.max()) < batch:
        raise UsageError(f"sentences are asked of clips 0 to {batch - 1}, one each")
    if not 0 < time <= config.max_frames:
        raise UsageError(f"a clip has 1 to {config.max_frames} frames, not {time}: take fewer")
    check_people(boxes, owner, batch)
    if boxes.ndim != 3 or boxes.shape[1] != time or bool((owner.diff() < 0).any()):
        raise UsageError(
            f"{tuple(boxes.shape)} boxes: give each person, clip by clip, one in each of {time} frames"
        )
    frames = torch.ones(batch, time, dtype=torch.bool, device=colours.device) if frames is None else frames
    if not bool(frames.any(dim=1).all()):
        raise UsageError("a clip has no frame: its mask is empty")
    return frames


def describe_spans(frames: int) -> Tensor:
    """(frames, frames, 17) what is known of the span from a first to a last frame, whatever happens: its length.

    Its share of the clip; how near it is to each of eight lengths; and the same again where it begins with the clip or ends
    with it, since what goes on before or behind is not seen.

    Args:
        frames: of the clip.
    """
    at = torch.arange(frames)
    share = (at[None] - at[:, None] + 1).clamp(min=1) / frames
    place = (share.log() / math.log(1 / _SHORTEST) + 1) * (_LENGTHS - 1)
    near = torch.exp(-((place[..., None] - torch.arange(_LENGTHS)) ** 2))
    cut = (at[:, None] == 0) | (at[None] == frames - 1)
    return torch.cat([share[..., None], near, near * cut[..., None]], dim=2)


def score_spans(inside: Tensor, lasting: Tensor) -> Tensor:
    """(n, T, T) logarithms of how likely each span is, from its first to its last frame; -inf where it ends before it begins.

    The logit of a span is the sum of those of its frames and of how well its length goes with the sentence, weighted by
    `lasting`; all spans together have a chance of 1.

    Args:
        inside: (n, T) of `Matched`, of one person each.
        lasting: (n, 18) of `Matched`, of the sentence.
    """
    frames = inside.shape[1]
    sums = functional.pad(inside.cumsum(dim=1), (1, 0)) * min(1.0, _EVEN_FRAMES / frames)
    held = sums[:, None, 1:] - sums[:, :-1, None]
    length = torch.einsum("nk,abk->nab", lasting[:, 1:], describe_spans(frames).to(lasting))
    late = torch.ones(frames, frames, dtype=torch.bool, device=inside.device).tril(-1)
    scores = (lasting[:, :1, None] * held + length).masked_fill(late, -math.inf)
    return scores.flatten(1).log_softmax(dim=1).view_as(scores)


def list_partners(boxes: Tensor, owner: Tensor) -> Tensor:
    """(n, O) int64 the rows of the others of the clip of each person, the nearest first; -1 where there are fewer.

    Near means that their centres come near each other in some frame, in heights. Of a crowd the nearest 31 are taken, or
    fewer where there would be more than some 8,000 pairs.

    Args:
        boxes: (n, T, 4) in pixels.
        owner: (n,) int64, the clip of each, rising.
    """
    counts = torch.bincount(owner) if len(owner) else owner.new_zeros(1)
    found = owner.new_full((len(owner), min(_PARTNERS, max(0, int(counts.max()) - 1))), -1)
    for number in torch.unique(owner).tolist():
        rows = (owner == number).nonzero().flatten()
        most = min(len(rows) - 1, _PARTNERS, max(1, _MOST_PAIRS // len(rows)))
        own = boxes[rows]
        centres, heights = (own[..., :2] + own[..., 2:]) / 2, (own[..., 3] - own[..., 1]).clamp(min=1)
        nearest = boxes.new_full((len(rows), len(rows)), math.inf)
        for frame in range(boxes.shape[1]):
            apart = torch.cdist(centres[:, frame], centres[:, frame])
            tall = (heights[:, frame, None] + heights[None, :, frame]) / 2
            nearest = torch.minimum(nearest, apart / tall)
        nearest.fill_diagonal_(math.inf)
        found[rows, :most] = rows[nearest.argsort(dim=1, stable=True)[:, :most]]
    return found


def measure_openness(boxes: Tensor) -> Tensor:
    """(P, T) the share of the box of each person that no other one covers most of; who stands lower in the image is in front.

    Args:
        boxes: (P, T, 4) in pixels.
    """
    found = []
    for frame in boxes.unbind(dim=1):
        size = (frame[:, 2:] - frame[:, :2]).clamp(min=1)
        inner = torch.minimum(frame[:, None, 2:], frame[None, :, 2:]) - torch.maximum(
            frame[:, None, :2], frame[None, :, :2]
        )
        shared = inner.clamp(min=0).prod(dim=2) * (frame[None, :, 3] > frame[:, None, 3])
        found.append(1 - shared.amax(dim=1) / size.prod(dim=1))
    return torch.stack(found, dim=1).clamp(0, 1)


def describe_shapes(boxes: Tensor, size: Tensor) -> Tensor:
    """(P, T, 4) height, width over height, lower edge, and height for where people stand, of boxes (P, T, 4); each about 1.

    Args:
        boxes: in pixels.
        size: (2,) of the image.
    """
    wide, high = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1).unbind(dim=2)
    # People of these scenes are about a quarter of the image tall.
    tall, lower = (high / size[1]).log() + 1.3, boxes[..., 3] / size[1]
    return torch.stack([tall, (wide / high).log(), 2 * lower - 1, tall - lower.clamp(min=0.2).log()], dim=2)


def describe_places(boxes: Tensor, size: Tensor) -> Tensor:
    """(P, T, 5) where people are between left (-1) and right (1), its square, and whether right, left or in the middle.

    Args:
        boxes: (P, T, 4) in pixels.
        size: (2,) of the image.
    """
    x = (boxes[..., 0] + boxes[..., 2]) / size[0] - 1
    return torch.stack([x, x**2, (x > 0.2).to(x), (x < -0.2).to(x), (x.abs() < 0.25).to(x)], dim=2)


COLOURS = 12
"""Numbers of a cell of 16 pixels: red, green and blue of its four quarters."""


def measure_colours(images: Tensor, size: tuple[int, int]) -> Tensor:
    """(12, T, H / 16, W / 16) uint8 the mean colours of the quarters of each cell; black to the right and below.

    Args:
        images: (T, h, w, 3) uint8.
        size: H and W, multiples of 16, of the padded image.
    """
    held = images.permute(0, 3, 1, 2).float()
    held = functional.pad(held, (0, size[1] - held.shape[3], 0, size[0] - held.shape[2]))
    quarters = functional.pixel_unshuffle(functional.avg_pool2d(held, STRIDE_PX // 2), 2)
    return quarters.round().to(torch.uint8).transpose(0, 1).contiguous()
