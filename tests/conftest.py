"""Models in tests are tiny: more than one thread only makes them wait for each other."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
