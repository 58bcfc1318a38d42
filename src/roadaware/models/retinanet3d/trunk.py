"""A trunk of the transformers library under our pyramid, one picture at a time; imports torch."""

from __future__ import annotations

from typing import Any

import transformers
from torch import Tensor

from roadaware.errors import InputError, UsageError
from roadaware.models.folder_configs import config_of
from roadaware.models.offline import offline
from roadaware.models.retinanet3d.config import STRIDES_PX, RetinaNetConfig
from roadaware.models.retinanet3d.pyramid import Pyramid

_STRIDES = 3


class LibraryTrunk(Pyramid):
    """The last three stages of a backbone of transformers, drawn at random; it mixes no frames.

    Args:
        config: `trunk` names its configuration class, such as "ResNetConfig"; `trunk_fields` its fields.

    Raises:
        UsageError: if there is no such configuration, it takes no such field, or no backbone goes with it.
    """

    def __init__(self, config: RetinaNetConfig) -> None:
        found = getattr(transformers, config.trunk, None) if config.trunk.isidentifier() else None
        if not (isinstance(found, type) and issubclass(found, transformers.PretrainedConfig)):
            raise UsageError(
                f"transformers {transformers.__version__} has no configuration called '{config.trunk}'"
            )
        fields: dict[str, Any] = dict(config.trunk_fields)
        make: Any = transformers.AutoBackbone.from_config
        try:
            with offline(config.trunk):
                settings = config_of({**fields, "model_type": found.model_type}, "trunk_fields")
            names = getattr(settings, "stage_names", [])
            if len(names) <= _STRIDES:
                raise UsageError(f"{config.trunk} has no stages; give the configuration of a backbone")
            settings.out_features = list(names[-_STRIDES:])
            with offline(config.trunk):
                trunk = make(settings, trust_remote_code=False)
            channels = tuple(trunk.channels)
        except UsageError:
            raise
        except InputError as error:
            raise UsageError(str(error)) from error
        except Exception as error:  # the library raises whatever its parts do
            first = " ".join(str(error).split())[:200] or type(error).__name__
            raise UsageError(f"transformers makes no backbone of {config.trunk}: {first}") from error
        super().__init__(config, channels, pooled=False)
        self.trunk = trunk

    def stages(self, input: Tensor) -> list[Tensor]:
        """(B, 3, T, H, W) to three maps (B, C, T, H', W') with strides 8, 16 and 32.

        Raises:
            UsageError: if the maps have other strides: anchors would stand elsewhere than their cells.
        """
        batch, frames = input.shape[0], input.shape[2]
        maps = self.trunk(input.transpose(1, 2).flatten(0, 1)).feature_maps
        height, width = input.shape[3:]
        for map, stride in zip(maps, STRIDES_PX, strict=False):
            if abs(map.shape[2] - height / stride) >= 1 or abs(map.shape[3] - width / stride) >= 1:
                raise UsageError(
                    f"of {width}x{height} pixels this trunk makes a map of {map.shape[3]}x{map.shape[2]} "
                    f"where one with a stride of {stride} pixels is needed: its last three stages should "
                    "have strides 8, 16 and 32"
                )
        return [map.reshape(batch, frames, *map.shape[1:]).transpose(1, 2) for map in maps]
