"""Files of runs changed by hand, with the hashes that whoever wrote them would have recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bindscope.runs.files import hash_json


def rewrite_manifest(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what a run's manifest says.

    >>> rewrite_manifest(run.path, lambda manifest: manifest.update(status="training"))
    """
    path = run / "manifest.json"
    content = json.loads(path.read_text())
    del content["sha256"]
    change(content)
    path.write_text(json.dumps({**content, "sha256": hash_json(content)}))


def replace_in_manifest(run: Path, old: str, new: str) -> None:
    """Change what a run's manifest says, as text."""
    rewrite_manifest(run, lambda content: content.update(json.loads(json.dumps(content).replace(old, new))))


def rewrite_metrics(run: Path, text: str) -> None:
    """Give a run other evaluations."""
    (run / "metrics.jsonl").write_text(text)
    recorded = {"n_lines": text.count("\n"), "sha256": hashlib.sha256(text.encode()).hexdigest()}
    rewrite_manifest(run, lambda content: content.update(evaluations=recorded))
