"""Road video (and LiDAR, and sound) to road events, and how far to trust them."""

from importlib.metadata import version as _version

__version__ = _version("roadaware")
