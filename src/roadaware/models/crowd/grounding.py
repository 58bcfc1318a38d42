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
from roadaware.models.crowd.config import STRIDE_PX, CrowdConfig
from roadaware.models.crowd.people import MOTION_FEATURES, check_people, describe_motion, pool_boxes
from roadaware.models.pretrained import encode_texts, load_tokenizer

# Words: a sentence to numbers of its pieces.

_BEGIN, _PAD, _END, _UNKNOWN = "[CLS]", "[PAD]", "[SEP]", "[UNK]"
_MARKS = (_BEGIN, _PAD, _END, _UNKNOWN)
_PAD_PLACE = _MARKS.index(_PAD)
_LONGEST_WORD = 100
_PLACE_FEATURES = 8


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

        Args:
            sentences: n of them.

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
            if not ids:
                raise UsageError(f"no word is left of the sentence '{to_printable(sentence, 60)}'")
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


class Matched(NamedTuple):
    """How well each person of a clip goes with a sentence, of Q sentences and at most P people in a clip.

    Args:
        who: (Q, P) logits that the sentence speaks of a person; -inf behind the people of the clip.
        spans: (Q, P, T, 2) logits that a frame is the first one and the last one of the span, if it is this person.
        inside: (Q, P, T) logits that a frame is in the span of this person.
    """

    who: Tensor
    spans: Tensor
    inside: Tensor


class PeopleGroundingHead(nn.Module):
    """Of whom a sentence speaks, and when it happens, where the tracks of people are known. Ours.

    A person is a token in every frame: the cells of the body with their colours (`measure_colours`: sentences name clothes,
    and a trunk that learnt actions hardly keeps them), its place, size and motion. Tokens look at the other frames of the
    person, at the other people of the frame, and then at the words; behind that at the frames again. A track is
    looked for, in place of a box in each frame: two cores learn that from some thousand sentences, and not the other.
    When it happens is told by what somebody does: each word has a weight for each action, and their sum over the words times
    the scores of the actions in a frame, by the head of actions, is added to the logit of that frame.

    Args:
        config: of the network.
        words: pieces of words, as `Vocabulary.words`.
        channels: of the trunk's map.
        text: reads sentences in place of a small RoBERTa (`open_text`).
        actions: how many the head of actions scores; 0 where there is no such head.
    """

    def __init__(
        self,
        config: CrowdConfig,
        words: Sequence[str],
        channels: int,
        text: TextEncoder | None = None,
        actions: int = 0,
    ) -> None:
        super().__init__()
        width, narrow = config.grounding_width, max(1, config.grounding_width // 2)
        self.config, self.cells = config, max(1, config.roi // 2)
        self.text = text or TextEncoder(config, len(words))
        self.from_text = nn.Linear(self.text.width, width)
        self.text_norm, self.text_dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(config.dropout)
        self.from_map = nn.Conv2d(channels, narrow, 1)
        self.body = nn.Linear((narrow + COLOURS) * self.cells**2, width)
        self.place = nn.Sequential(nn.Linear(_PLACE_FEATURES, width), nn.ReLU(), nn.Linear(width, width))
        self.motion = nn.Sequential(nn.Linear(MOTION_FEATURES, width), nn.ReLU(), nn.Linear(width, width))
        self.doing = nn.Linear(actions, width) if actions else None
        for layer in (self.motion[-1], self.doing):
            if isinstance(layer, nn.Linear):
                # What tracks add is learnt beside cells and colours: at first it is nothing.
                nn.init.zeros_(layer.weight)
                nn.init.zeros_(layer.bias)
        self.norm = nn.LayerNorm(width)
        self.over_frames = nn.ModuleList(EncoderLayer(config) for _ in range(max(1, config.encoder_layers)))
        self.over_people = EncoderLayer(config)
        self.over_words = WordLayer(config)
        self.behind = nn.ModuleList(EncoderLayer(config) for _ in range(config.decoder_layers))
        self.who = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, 1))
        # Beside the transformer, what is learnt first: whether the words of a sentence and a person lie in one direction.
        self.meaning = nn.EmbeddingBag(
            max(len(words), 1), width, mode="sum", padding_idx=_PAD_PLACE if words else None
        )
        self.look = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.likeness = nn.Parameter(torch.tensor(10.0))
        self.deeds: nn.EmbeddingBag | None = None
        if actions:
            self.deeds = nn.EmbeddingBag(
                max(len(words), 1), actions, mode="sum", padding_idx=_PAD_PLACE if words else None
            )
            # At first words say nothing of actions: drawn at random they would speak of fifty at once.
            nn.init.zeros_(self.deeds.weight)
        self.when = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 3))

    def forward(
        self,
        map: Tensor,
        ids: Tensor,
        mask: Tensor,
        boxes: Tensor,
        owner: Tensor,
        clip: Tensor | None = None,
        frames: Tensor | None = None,
        colours: Tensor | None = None,
        tracks: Tensor | None = None,
        doing: Tensor | None = None,
    ) -> Matched:
        """How well each person goes with each sentence.

        Args:
            map: (B, C, T, H, W) of the trunk; padding of shorter clips stands behind.
            ids, mask: (Q, L) of the sentences, as `WordReader.encode` makes them.
            boxes: (n, T, 4) x1, y1, x2, y2 in pixels of every person in every frame of its clip; where one is not
                seen, the box of the nearest frame.
            owner: (n,) int64, which of the B clips each person is in, rising.
            clip: (Q,) int64, which clip each sentence is asked of (default: one each, in their order).
            frames: (B, T) bool, which frames are of the clip (default: all).
            colours: (B, 12, T, H, W) as `measure_colours` gives them (default: grey).
            tracks: (n, T, K, 4) the boxes of each person around each frame, see `people.describe_motion` (default: their
                motion is not known).
            doing: (n, T, actions) scores in [0, 1] of what each does in each frame (default: not known).

        Raises:
            UsageError: if a clip has no frame or more than `max_frames`, boxes, colours or clips are none, or a sentence
                has no clip.
        """
        batch, time = len(map), map.shape[2]
        clip = torch.arange(len(ids), device=map.device) if clip is None else clip
        if len(clip) != len(ids) or ids.shape != mask.shape:
            raise UsageError(
                f"{len(clip)} clips and {len(ids)} sentences: give each sentence a clip and a mask"
            )
        if len(clip) and not 0 <= int(clip.min()) <= int(clip.max()) < batch:
            raise UsageError(f"sentences are asked of clips 0 to {batch - 1}, one each")
        if not 0 < time <= self.config.max_frames:
            raise UsageError(f"a clip has 1 to {self.config.max_frames} frames, not {time}: take fewer")
        check_people(boxes, owner, batch)
        if boxes.ndim != 3 or boxes.shape[1] != time or bool((owner.diff() < 0).any()):
            raise UsageError(
                f"{tuple(boxes.shape)} boxes: give each person, clip by clip, one in each of {time} frames"
            )
        frames = torch.ones(batch, time, dtype=torch.bool, device=map.device) if frames is None else frames
        if not bool(frames.any(dim=1).all()):
            raise UsageError("a clip has no frame: its mask is empty")

        if colours is None:
            colours = map.new_zeros(batch, COLOURS, *map.shape[2:])
        if colours.shape != (batch, COLOURS, *map.shape[2:]):
            raise UsageError(
                f"{tuple(colours.shape)} colours of a map {tuple(map.shape)}: give (B, {COLOURS}, T, H, W)"
            )
        tokens, there, looks, acts = self._see(map, colours, boxes, owner, frames, tracks, doing)
        words = self.text_dropout(self.text_norm(self.from_text(self.text(ids, mask))))
        people = tokens.shape[1]
        # (Q, P * T, width): every person of its clip in every frame, beside its sentence.
        asked = self.over_words(tokens[clip].flatten(1, 2), words, ~mask)
        asked = asked.unflatten(1, (people, time)).flatten(0, 1)
        lost = ~frames[clip].repeat_interleave(people, dim=0)
        for layer in self.behind:
            asked = layer(asked, time_sines(time, asked.shape[2], map.device), lost)
        when = self.when(asked).unflatten(0, (len(clip), people))
        weight = when[..., 2].masked_fill(~frames[clip][:, None], -math.inf).softmax(dim=2)
        asked = asked.unflatten(0, (len(clip), people))
        mean = torch.einsum("qpt,qptd->qpd", weight, asked)
        most = asked.masked_fill(~frames[clip][:, None, :, None], -math.inf).amax(dim=2)
        who = self.who(torch.cat([mean, most], dim=2)).squeeze(2)
        # Pieces of other vocabularies, which a given RoBERTa reads, have no meaning of their own here.
        pieces = ids.clamp(max=self.meaning.num_embeddings - 1)
        said = functional.normalize(self.meaning(pieces), dim=1)
        alike = self.likeness * torch.einsum("qd,qptd->qpt", said, functional.normalize(looks[clip], dim=3))
        kept = frames[clip][:, None].to(alike)
        who = who + (alike * kept).sum(dim=2) / kept.sum(dim=2)
        inside = when[..., 2] + alike
        if self.deeds is not None and acts is not None:
            done = torch.einsum("qa,qpta->qpt", self.deeds(pieces), acts[clip])
            inside = inside + done
            # Whoever is spoken of does it at some time of the clip, not in all of it.
            who = who + done.masked_fill(~frames[clip][:, None], -math.inf).amax(dim=2)
        return Matched(who.masked_fill(~there[clip], -math.inf), when[..., :2], inside)

    def _see(
        self,
        map: Tensor,
        colours: Tensor,
        boxes: Tensor,
        owner: Tensor,
        frames: Tensor,
        tracks: Tensor | None,
        doing: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """(B, P, T, width) tokens of people in frames, (B, P) which people there are, (B, P, T, width) how they look, and
        (B, P, T, actions) the square roots of the scores of what they do.
        """
        batch, _, time, height, width = map.shape
        if not len(boxes):
            nobody = torch.zeros(batch, 1, dtype=torch.bool, device=map.device)
            empty = map.new_zeros(batch, 1, time, self.config.grounding_width)
            return empty, nobody, empty, None
        maps = self.from_map(map.transpose(1, 2).flatten(0, 1))
        maps = torch.cat([maps, colours.transpose(1, 2).flatten(0, 1)], dim=1)
        moments = (owner[:, None] * time + torch.arange(time, device=map.device)).flatten()
        bodies = pool_boxes(maps, boxes.flatten(0, 1), moments, self.cells).flatten(1)
        image = map.new_tensor([width, height, width, height]) * STRIDE_PX
        each = functional.relu(self.body(bodies)).view(len(boxes), time, -1)
        each = self.norm(each + self.place(describe_tracks(boxes, image)))
        look = self.look(each)
        if tracks is not None:
            moving = describe_motion(tracks.flatten(0, 1), moments, image[:2])
            each = each + self.motion(moving).view_as(each)
        # Of rare actions a score of a tenth says much: roots bring it nearer to that of a sure one.
        acts = None if doing is None or self.doing is None else doing.clamp(0, 1).sqrt()
        if acts is not None and self.doing is not None:
            each = each + self.doing(acts)
        lost = ~frames[owner]
        for layer in self.over_frames:
            each = layer(each, time_sines(time, each.shape[2], map.device), lost)

        counts = torch.bincount(owner, minlength=batch)
        row = torch.arange(len(owner), device=map.device) - (counts.cumsum(0) - counts)[owner]
        # A clip without anybody has one place all the same, which is never chosen.
        people = max(1, int(counts.max()))
        room = each.new_zeros(batch, people, time, each.shape[2])
        tokens, looks = (room.index_put((owner, row), values) for values in (each, look))
        if acts is not None:
            acts = acts.new_zeros(batch, people, *acts.shape[1:]).index_put((owner, row), acts)
        there = torch.arange(people, device=map.device)[None] < counts[:, None]
        nobody = (~there).clone()
        nobody[:, 0] = False
        frame_by_frame = tokens.transpose(1, 2).flatten(0, 1)
        beside = self.over_people(
            frame_by_frame, torch.zeros_like(frame_by_frame[:1, :1]), nobody.repeat_interleave(time, dim=0)
        )
        return beside.unflatten(0, (batch, time)).transpose(1, 2), there, looks, acts


class WordLayer(nn.Module):
    """Tokens look at words, then two layers; norms come after."""

    def __init__(self, config: CrowdConfig) -> None:
        super().__init__()
        width, rate = config.grounding_width, config.dropout
        self.attention = nn.MultiheadAttention(width, config.attention_heads, rate, batch_first=True)
        self.feed = feed_forward(config)
        self.both = nn.Linear(2 * width, width)
        self.norm1, self.norm2, self.dropout = nn.LayerNorm(width), nn.LayerNorm(width), nn.Dropout(rate)

    def forward(self, tokens: Tensor, words: Tensor, padding: Tensor) -> Tensor:
        """(N, S, width) of tokens (N, S, width) and words (N, L, width), of which `padding` (N, L) are none."""
        read, _ = self.attention(tokens, words, words, key_padding_mask=padding, need_weights=False)
        # Their product says where both agree, which a sum does not.
        read = self.both(torch.cat([read, read * tokens], dim=2))
        tokens = self.norm1(tokens + self.dropout(read))
        out: Tensor = self.norm2(tokens + self.dropout(self.feed(tokens)))
        return out


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


def describe_tracks(boxes: Tensor, image: Tensor) -> Tensor:
    """(n, T, 8) where people are and how they move.

    Args:
        boxes: (n, T, 4) in pixels.
        image: (4,) width, height, width, height.

    Returns:
        Centre in parts of the image, -1 to 1 (2), logarithms of width and height in parts of it (2), motion of the
        centre to the frame before in heights (2), change of the logarithm of the height (1), and height over width as a
        logarithm (1).
    """
    size = (boxes[..., 2:] - boxes[..., :2]).clamp(min=1)
    centre = (boxes[..., :2] + boxes[..., 2:]) / 2
    parts = size / image[:2]
    moved = functional.pad(centre[:, 1:] - centre[:, :-1], (0, 0, 1, 0)) / size[..., 1:]
    grown = functional.pad(size[:, 1:, 1:].log() - size[:, :-1, 1:].log(), (0, 0, 1, 0))
    shape = (size[..., 1:] / size[..., :1]).log()
    return torch.cat([2 * centre / image[:2] - 1, parts.log(), moved, grown, shape], dim=2).clamp(-10, 10)
