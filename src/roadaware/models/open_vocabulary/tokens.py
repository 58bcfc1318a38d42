"""Tokens of several texts as one array, for text towers that read each text up to its end mark."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer
from torch import Tensor

from roadaware.errors import UsageError
from roadaware.models.folder_words import encodings


def padded_tokens(
    tokenizer: Tokenizer, texts: Sequence[str], most: int, *, length: int | None = None
) -> tuple[Tensor, Tensor]:
    """(t, n) tokens, zeros behind the end of a text, and (t, n) which of them count.

    Text towers of CLIP look back only and take what stands at the end mark, so that what fills up behind it
    means nothing.

    Args:
        tokenizer: adds the marks of begin and end.
        texts: t of them.
        most: tokens that the model reads.
        length: n; that of the longest text unless told.

    Raises:
        UsageError: if a text has more tokens.
    """
    encoded = encodings(tokenizer, texts)
    for text, each in zip(texts, encoded, strict=True):
        if len(each.ids) > most:
            raise UsageError(f"{text!r} has {len(each.ids)} tokens; up to {most} are read")
    width = length or max(len(each.ids) for each in encoded)
    ids, mask = (
        torch.zeros(len(texts), width, dtype=torch.int64),
        torch.zeros(len(texts), width, dtype=torch.int64),
    )
    for row, each in enumerate(encoded):
        ids[row, : len(each.ids)] = torch.tensor(each.ids)
        mask[row, : len(each.ids)] = 1
    return ids, mask
