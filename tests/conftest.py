"""What holds for every test: kernels are compiled once on a machine, not for each test's own cache."""

import roadaware.geometry.compiled  # noqa: F401, it takes its cache folder when it is imported
