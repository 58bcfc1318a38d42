"""The array types that signatures name, by what their elements are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Floats32 = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[Any]
Pixels = npt.NDArray[np.uint8]
"""(height, width, 3) RGB, or (height, width) of one channel."""
