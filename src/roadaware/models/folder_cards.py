"""The cards of models that are opened from folders of transformers; torch-free."""

from __future__ import annotations

from roadaware.models import ModelCard

_FILES = "a folder with config.json, model.safetensors and preprocessor_config.json"
_WORDS = f"{_FILES}, and tokenizer.json (or vocab.txt, or vocab.json and merges.txt)"
_UNPROVEN = "unproven: no weights"
_READ = (
    "differs from checkpoint to checkpoint and was not checked; read the card that lies beside the weights"
)


def _card(
    name: str,
    paper: str,
    tasks: tuple[str, ...],
    diagram: str,
    inputs: str,
    weights: str,
    licence: str = _READ,
) -> ModelCard:
    return ModelCard(
        name=name,
        paper=paper,
        family="network",
        tasks=tasks,
        diagram=diagram,
        parameters="those of the folder",
        inputs=f"{inputs}; prepared as the folder says",
        weights=f"{weights}; none are shipped. {_UNPROVEN}",
        licence=licence,
    )


_SEGMENTS = ("segmentation",)
_DETECTS = ("objects",)
_ASKED = ("zero-shot objects",)
_PIXELS = "one image, red first"
_OBJECTS = "a folder with config.json and model.safetensors, perhaps preprocessor_config.json"

SEGFORMER = _card(
    "segformer",
    "Xie et al., SegFormer, NeurIPS 2021, arxiv.org/abs/2105.15203",
    _SEGMENTS,
    "hierarchical transformer -> perceptron over its four levels -> scores of classes, every 4 pixels",
    _PIXELS,
    f"{_FILES}, such as huggingface.co/nvidia/segformer-b5-finetuned-cityscapes-1024-1024",
)
UPERNET = _card(
    "upernet",
    "Xiao et al., UperNet, ECCV 2018, arxiv.org/abs/1807.10221",
    _SEGMENTS,
    "any backbone -> pyramid pooling and feature pyramid -> scores of classes",
    _PIXELS,
    f"{_FILES}, such as huggingface.co/openmmlab/upernet-convnext-small (ADE20K)",
    "those of openmmlab: MIT",
)
MASK2FORMER = _card(
    "mask2former",
    "Cheng et al., Mask2Former, CVPR 2022, arxiv.org/abs/2112.01527",
    _SEGMENTS,
    "backbone -> deformable pixel decoder -> queries with masked attention -> a class and a mask each",
    f"{_PIXELS}, and which pixels are padding",
    f"{_FILES}, such as huggingface.co/facebook/mask2former-swin-large-cityscapes-semantic",
    "the authors' repository carried CC BY-NC 4.0; read the card that lies beside the weights",
)
MASKFORMER = _card(
    "maskformer",
    "Cheng et al., MaskFormer, NeurIPS 2021, arxiv.org/abs/2107.06278",
    _SEGMENTS,
    "backbone -> feature pyramid -> queries -> a class and a mask for each query",
    f"{_PIXELS}, and which pixels are padding",
    f"{_FILES}, such as huggingface.co/facebook/maskformer-swin-base-ade",
)
RT_DETR = _card(
    "rt_detr",
    "Zhao et al., RT-DETR, CVPR 2024, arxiv.org/abs/2304.08069",
    _DETECTS,
    "ResNet -> hybrid encoder -> queries -> a box and a sigmoid for each class",
    _PIXELS,
    f"{_OBJECTS}, such as huggingface.co/PekingU/rtdetr_r50vd",
)
RT_DETR_V2 = _card(
    "rt_detr_v2",
    "Lv et al., RT-DETRv2, 2024, arxiv.org/abs/2407.17140",
    _DETECTS,
    "as RT-DETR, with other sampling points on each level",
    _PIXELS,
    f"{_OBJECTS}, such as huggingface.co/PekingU/rtdetr_v2_r50vd",
)
D_FINE = _card(
    "d_fine",
    "Peng et al., D-FINE, ICLR 2025, arxiv.org/abs/2410.13842",
    _DETECTS,
    "HGNetv2 -> hybrid encoder -> queries -> distributions of edges, refined layer by layer",
    _PIXELS,
    f"{_OBJECTS}, such as huggingface.co/ustc-community/dfine-xlarge-coco",
)
GROUNDING_DINO = _card(
    "grounding-dino",
    "Liu et al., Grounding DINO, ECCV 2024, arxiv.org/abs/2303.05499",
    _ASKED,
    "Swin and BERT -> encoder that looks across both -> queries -> a box and a score for each token",
    f"{_PIXELS}, and texts in a prompt, parted by dots",
    f"{_WORDS}, such as huggingface.co/IDEA-Research/grounding-dino-tiny",
    "the authors': Apache-2.0",
)
MM_GROUNDING_DINO = _card(
    "mm-grounding-dino",
    "Zhao et al., MM-Grounding-DINO, 2024, arxiv.org/abs/2401.02361",
    _ASKED,
    "as Grounding DINO, learnt on more and open data",
    f"{_PIXELS}, and texts in a prompt, parted by dots",
    f"{_WORDS}, such as huggingface.co/openmmlab-community/mm_grounding_dino_tiny_o365v1_goldg_v3det",
)
OWLV2 = _card(
    "owlv2",
    "Minderer et al., OWLv2, NeurIPS 2023, arxiv.org/abs/2306.09683",
    _ASKED,
    "vision transformer, each patch a box and an embedding; text transformer -> likeness of patch and text",
    f"{_PIXELS}, padded to a square, and texts",
    f"{_WORDS}, such as huggingface.co/google/owlv2-base-patch16-ensemble",
    "the authors' repository (google-research/scenic): Apache-2.0",
)
OWL_VIT = _card(
    "owlvit",
    "Minderer et al., OWL-ViT, ECCV 2022, arxiv.org/abs/2205.06230",
    _ASKED,
    "as OWLv2, learnt on less",
    f"{_PIXELS}, and texts",
    f"{_WORDS}, such as huggingface.co/google/owlvit-base-patch32",
    "the authors' repository (google-research/scenic): Apache-2.0",
)
CLIP = _card(
    "clip",
    "Radford et al., CLIP, ICML 2021, arxiv.org/abs/2103.00020",
    ("pre-labels",),
    "vision transformer and text transformer -> embeddings -> likeness of a crop and each text",
    "crops around boxes, and texts in templates",
    f"{_WORDS}, such as huggingface.co/openai/clip-vit-base-patch32",
    "the authors' repository (openai/CLIP): MIT",
)
