"""The numbers that pictures become before a network sees them, by name."""

from __future__ import annotations

from typing import Literal

Pixels = Literal["imagenet", "keras", "signed", "bytes"]
"""imagenet: less the mean of ImageNet, over its deviation (torchvision's weights); keras: 0..255, blue first,
less the mean (Keras' VGG16 and ResNet50, after Caffe); signed: -1..1 (I3D); bytes: 0..255 (C3D)."""
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_SPREAD = (0.229, 0.224, 0.225)
KERAS_MEAN_BGR = (103.939, 116.779, 123.68)
SWAPPED = (
    "pictures are red first, in [0, 1]; the field `swapped` repeats the benchmark's slip of reading them "
    "blue first and taking them to be red first"
)
"""Said on every card."""
BENCHMARK = "Kotseruba et al., Benchmark for evaluating pedestrian action prediction, WACV 2021"
"""Where the networks on crops come from."""
