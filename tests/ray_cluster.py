"""A real Ray cluster on this machine, for tests; they are skipped where Ray is not installed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def start_cluster() -> Iterator[str]:
    """The address of a cluster of two nodes with one processor each."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)  # workers import what we do
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        nodes.add_node(num_cpus=1)
        yield nodes.address
    finally:
        nodes.shutdown()
        os.environ["PYTHONPATH"] = path or ""
