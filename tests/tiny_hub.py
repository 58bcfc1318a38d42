"""Folders as transformers keeps them, of tiny models with random weights and small vocabularies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

CITYSCAPES = ("road", "sidewalk", "building", "vegetation", "sky", "car")
WORDS = ("tyre", "dog", "traffic", "cone", "red", "green", "blue", "grey", "stone", "car")
_MARKS = {"[PAD]": 0, "[UNK]": 100, "[CLS]": 101, "[SEP]": 102, ".": 1012, "?": 1029}
_UNKNOWN = ("[UNK]", "<unk>")
_BETWEEN = ("a", "an", "photo", "of", "on", "cropped", "road", "the")


def write_segformer(folder: Path, labels: Sequence[str] = CITYSCAPES, **fields: Any) -> Any:
    """A SegFormer that sees 64x96; the model."""
    import transformers as hub

    model = _seeded(
        hub.SegformerForSemanticSegmentation,
        hub.SegformerConfig(
            **{
                "hidden_sizes": [8, 16, 16, 32],
                "num_attention_heads": [1, 2, 2, 2],
                "depths": [1, 1, 1, 1],
                "mlp_ratios": [2, 2, 2, 2],
                "decoder_hidden_size": 32,
                "drop_path_rate": 0.0,
                "classifier_dropout_prob": 0.0,
                **_named(labels),
                **fields,
            }
        ),
    )
    model.save_pretrained(folder)
    hub.SegformerImageProcessorPil(size={"height": 64, "width": 96}).save_pretrained(folder)
    return model


def write_mask2former(folder: Path, labels: Sequence[str] = CITYSCAPES) -> Any:
    """A Mask2Former that brings the shorter side to 60 and fills up to multiples of 32; the model."""
    import transformers as hub

    config = hub.Mask2FormerConfig(
        backbone_config=_swin(["stage1", "stage2", "stage3", "stage4"]),
        feature_size=32,
        mask_feature_size=32,
        hidden_dim=32,
        encoder_feedforward_dim=16,
        dim_feedforward=16,
        encoder_layers=2,
        decoder_layers=3,
        num_attention_heads=2,
        num_queries=7,
        **_named(labels),
    )
    model = _seeded(hub.Mask2FormerForUniversalSegmentation, config)
    model.save_pretrained(folder)
    size = {"shortest_edge": 60, "longest_edge": 400}
    hub.Mask2FormerImageProcessorPil(size=size, size_divisor=32).save_pretrained(folder)
    return model


def write_grounding(folder: Path, words: Sequence[str] = WORDS, *, max_text_len: int = 32) -> Any:
    """A Grounding DINO that brings the shorter side to 48; the model."""
    import transformers as hub

    config = hub.GroundingDinoConfig(
        backbone_config=_swin(["stage2", "stage3", "stage4"]),
        text_config={
            "model_type": "bert",
            "vocab_size": 1100,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 16,
            "max_position_embeddings": 64,
        },
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=16,
        decoder_ffn_dim=16,
        num_queries=15,
        num_feature_levels=3,
        max_text_len=max_text_len,
    )
    model = _seeded(hub.GroundingDinoForObjectDetection, config)
    model.save_pretrained(folder)
    size = {"shortest_edge": 48, "longest_edge": 100}
    hub.GroundingDinoImageProcessorPil(size=size).save_pretrained(folder)
    write_bert_words(folder, words)
    return model


def write_owl(folder: Path, words: Sequence[str] = WORDS) -> Any:
    """An OWLv2 that sees squares of 32; the model."""
    import transformers as hub

    model = _seeded(
        hub.Owlv2ForObjectDetection, hub.Owlv2Config(**_towers(32, len(words)), projection_dim=16)
    )
    # So that boxes stay near the patches they belong to, and scores are no more than likeness.
    model.box_head.dense2.weight.data.mul_(1e-3)
    for layer, value in ((model.class_head.logit_scale, 9.0), (model.class_head.logit_shift, -0.5)):
        layer.weight.data.zero_()
        layer.bias.data.fill_(value)
    model.save_pretrained(folder)
    hub.Owlv2ImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained(folder)
    write_clip_words(folder, words)
    return model


def write_clip(folder: Path, words: Sequence[str] = WORDS) -> Any:
    """A CLIP that sees squares of 32; the model."""
    import transformers as hub

    model = _seeded(hub.CLIPModel, hub.CLIPConfig(**_towers(32, len(words)), projection_dim=16))
    model.save_pretrained(folder)
    hub.CLIPImageProcessorPil(
        size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32}
    ).save_pretrained(folder)
    write_clip_words(folder, words)
    return model


def write_bert_words(folder: Path, words: Sequence[str] = WORDS) -> None:
    """A tokenizer.json as of BERT: marks where BERT has them, words behind."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {**_MARKS, **{word: 1030 + n for n, word in enumerate(words)}}
    made = Tokenizer(models.WordPiece(vocabulary, unk_token=_UNKNOWN[0]))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 101), ("[SEP]", 102)]
    )
    made.save(str(folder / "tokenizer.json"))


def write_clip_words(folder: Path, words: Sequence[str] = WORDS) -> None:
    """A tokenizer.json as of CLIP: marks of begin and end, the end having the largest number."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    known = ["!", "<unk>", ".", *_BETWEEN, *(word for word in words if word not in _BETWEEN)]
    vocabulary = {word: n for n, word in enumerate(known)}
    vocabulary |= {"<|startoftext|>": len(known), "<|endoftext|>": len(known) + 1}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token=_UNKNOWN[1]))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = [(mark, vocabulary[mark]) for mark in ("<|startoftext|>", "<|endoftext|>")]
    made.post_processor = processors.TemplateProcessing(
        single="<|startoftext|> $A <|endoftext|>", special_tokens=marks
    )
    made.save(str(folder / "tokenizer.json"))


def _towers(side: int, words: int) -> dict[str, Any]:
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    last = 3 + len(_BETWEEN) + words
    return {
        "text_config": {
            **small,
            "vocab_size": last + 2,
            "max_position_embeddings": 16,
            "bos_token_id": last,
            "eos_token_id": last + 1,
            "pad_token_id": 0,
        },
        "vision_config": {**small, "image_size": side, "patch_size": 8},
    }


def _swin(stages: Sequence[str]) -> dict[str, Any]:
    return {
        "model_type": "swin",
        "embed_dim": 8,
        "depths": [1, 1, 1, 1],
        "num_heads": [1, 2, 2, 2],
        "window_size": 4,
        "image_size": 64,
        "out_features": list(stages),
    }


def _named(labels: Sequence[str]) -> dict[str, Any]:
    return {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}


def _seeded(made: Any, config: Any) -> Any:
    import torch

    torch.manual_seed(0)
    return made(config).eval()
