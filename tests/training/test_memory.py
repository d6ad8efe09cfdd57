"""Memory of one step is there for the next."""

import os
import subprocess
import sys

import pytest

from bindscope.training.memory import keep_freed_memory

PROGRAM = """
import resource, torch
from bindscope.training.memory import keep_freed_memory
def count_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        [torch.ones(2**20) for _ in range(8)]  # eight tensors of 4 MiB, alive together
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
count_faults()
print(count_faults())
keep_freed_memory()
count_faults()
print(count_faults())
"""
FIXED_DEFAULTS = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}  # else glibc adapts by luck


@pytest.mark.skipif(not keep_freed_memory(), reason="this C library has no such setting")
@pytest.mark.slow
def test_freed_tensors_are_used_again_without_new_pages():
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | FIXED_DEFAULTS, capture_output=True, text=True, check=True
    )
    before, after = map(int, ran.stdout.split())
    assert after < before / 10
