"""The made street of the tests of tasks is also where these studies learn."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tasks"))
