"""Object detectors of transformers of some ten thousand weights, as fields of a recipe or as models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_COMMON = {
    "encoder_hidden_dim": 16,
    "encoder_in_channels": [16, 24, 32],
    "d_model": 16,
    "decoder_in_channels": [16, 16, 16],
    "num_queries": 12,
    "decoder_layers": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "num_denoising": 4,
}
_RESNET = {
    "model_type": "rt_detr_resnet",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 24, 32],
    "depths": [1, 1, 1, 1],
    "layer_type": "basic",
    "out_features": ["stage2", "stage3", "stage4"],
}
_HGNET = {
    "model_type": "hgnet_v2",
    "embedding_size": 8,
    "hidden_sizes": [8, 16, 24, 32],
    "depths": [1, 1, 1, 1],
    "stem_channels": [3, 8, 8],
    "stage_in_channels": [8, 8, 16, 24],
    "stage_mid_channels": [8, 8, 8, 8],
    "stage_out_channels": [8, 16, 24, 32],
    "stage_num_blocks": [1, 1, 1, 1],
    "stage_numb_of_layers": [1, 1, 1, 1],
    "stage_light_block": [False] * 4,
    "stage_kernel_size": [3, 3, 3, 3],
    "out_indices": [2, 3, 4],
}
FIELDS: dict[str, dict[str, Any]] = {
    "rt_detr": {**_COMMON, "backbone_config": _RESNET},
    "rt_detr_v2": {**_COMMON, "backbone_config": _RESNET},
    "d_fine": {**_COMMON, "backbone_config": _HGNET, "lqe_hidden_dim": 8},
}


def tiny_model(kind: str, labels: Sequence[str], **fields: Any) -> Any:
    """A model with random weights, always the same."""
    import torch

    from roadaware.models.object_detectors import create_model

    torch.manual_seed(0)
    return create_model(kind, {**FIELDS[kind], **fields}, labels)
