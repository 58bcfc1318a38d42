"""3D-RetinaNet: boxes, class scores and the own vehicle's actions, from clips or frame by frame."""

from roadaware.models.retinanet3d.config import RetinaNetConfig, default, reference

__all__ = ["RetinaNetConfig", "default", "reference"]
