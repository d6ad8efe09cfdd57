"""The experiment on why there is a plateau, as data; ``plateau.py`` says what is predicted."""

from __future__ import annotations

from typing import Any

from bindscope.studies.framework.experiments import Experiment, Variant, defer

BASE: dict[str, float] = {"letters": 4, "lines": 2, "batch": 192, "rate": 7e-4, "width": 64}
VARIED: dict[str, tuple[float, ...]] = {
    "letters": (2, 8, 12),
    "lines": (3, 4),
    "batch": (48, 96, 384),
    "rate": (3.5e-4, 1.4e-3),
    "width": (32, 128),
}
CHANGES: dict[str, Any] = {
    "task.curriculum": None, "task.max_depth": 2, "model.n_layers": 3, "model.n_heads": 2, "training.steps": 3_000,
    "training.stop_at": 0.95, "training.evaluate_every": 20, "training.evaluation_size": 400, "training.evaluate_early": False,
    "training.schedule.kind": "constant", "training.schedule.warmup_steps": 50, "training.schedule.hold_stages": False,
    "training.schedule.fall_steps": None,    "training.checkpoints.every": 3_000, "training.checkpoints.per_octave": 0,
}  # fmt: skip


def tokens_in_view(lines: float) -> float:
    """The length of a program of so many lines with its query: what the colon attends over."""
    return 4 * lines + 3


def _variant(name: str, values: dict[str, float]) -> Variant:
    lines, width = int(values["lines"]), int(values["width"])
    changes = {
        "task.n_variables": int(values["letters"]), "task.lines": lines, "task.queries": lines,
        "training.batch_size": int(values["batch"]), "training.optimizer.lr": values["rate"],
        "model.d_model": width, "model.d_mlp": 4 * width,
    }  # fmt: skip
    labels = {**values, "tokens": tokens_in_view(lines)}
    words = ", ".join(f"{factor} {value:g}" for factor, value in values.items())
    return Variant(name, words, changes, labels=labels)


VARIANTS = (
    _variant("base", BASE),
    *(
        _variant(f"{factor}-{value:g}", {**BASE, factor: value})
        for factor, values in VARIED.items()
        for value in values
    ),
)

EXPERIMENT = Experiment(
    name="plateau",
    question="What sets how long a model from random weights stays on the plateau?",
    preset="binding-neutral",
    variants=VARIANTS,
    seeds=3,
    limits=(
        "Two to four lines, three layers, one factor at a time around one setting; the length is the step from which every "
        "depth is at 90 %, so it holds the climb as well as the plateau. The prediction leaves constants and offsets out."
    ),
    conclude=defer(f"{__package__}.plateau", "conclude_plateau"),
    draw=defer(f"{__package__}.plateau", "draw_plateau"),
    changes=CHANGES,
    minutes=1.5,
)
