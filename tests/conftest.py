"""What all tests share: one thread, as models in tests are tiny, and examples that do not depend on the machine."""

import os

from hypothesis import HealthCheck, settings

os.environ.setdefault("OMP_NUM_THREADS", "1")

# A busy machine must not fail a property, and a red run must be red again: no deadlines, the same examples each time.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
