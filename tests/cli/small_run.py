"""Settings that shrink a binding preset to a fraction of a second."""

from __future__ import annotations

SMALL = {
    "task.lines": 4,
    "task.max_depth": 2,
    "model.n_layers": 2,
    "model.d_model": 16,
    "model.d_head": 8,
    "model.d_mlp": 16,
    "training.batch_size": 8,
    "training.evaluate_every": 4,
    "training.evaluation_size": 50,
    "training.save_every": 4,
    "training.checkpoints.every": 4,
    "training.checkpoints.per_octave": 0,
    "training.stop_at": "none",
}


def small_options(**more: object) -> list[str]:
    """Options that shrink a binding preset to a fraction of a second."""
    settings = {**SMALL, **{key.replace("__", "."): value for key, value in more.items()}}
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
