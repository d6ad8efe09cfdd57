"""What makes binding easy to learn: the training recipe, taken apart.

The small binding presets leave the early-line plateau within minutes because of a handful of parts, each an ordinary
setting. An *ablation* is the variant of the preset with one part put back to what is usual. Train them all with several seeds and
compare when, if ever, each leaves the plateau.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.runs.config import RunConfig, override
from bindscope.studies.framework.experiments import Variant, cell_config, split_name
from bindscope.tasks.binding import BindingTask

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.runs.directory import Run


ABLATIONS: tuple[Variant, ...] = (
    Variant("recipe", "the preset as it is", {}),
    Variant("one-query", "one query a program, and more programs for the same number of tokens", {"task.queries": 1}),
    Variant("fixed-length", "every program at full length", {"task.min_lines": None}),
    Variant(
        "no-offsets",
        "no offset-biased heads in layer 0, and so no relay",
        {"model.init.offset_bias": 0.0, "model.init.relay_offset": None},
    ),
    Variant("no-relay", "keys look for names where they stand", {"model.init.relay_offset": None}),
    Variant("no-mimetic-qk", "W_Q and W_K drawn apart", {"model.init.mimetic_qk": 0.0}),
    Variant("no-mimetic-vo", "W_V and W_O drawn apart", {"model.init.mimetic_vo": 0.0}),
    Variant("no-tied-start", "the unembedding drawn apart from the embedding", {"model.init.tied_start": 0.0}),
    Variant("full-rotary", "all dimensions rotate, base 10,000", {"model.rope_fraction": 1.0, "model.rope_base": 1e4}),
    Variant("no-identity-qk", "no identity-scaling term in the scores", {"model.identity_qk": False}),
    Variant("no-identity-vo", "no identity-scaling term in the outputs", {"model.identity_vo": False}),
    Variant("no-identity", "no identity-scaling term at all", {"model.identity_qk": False, "model.identity_vo": False}),
    Variant("high-rate", "four times the learning rate", {"training.optimizer.lr": 4.0}),
)


def ablation_configs(
    config: RunConfig, seeds: Sequence[int], names: Iterable[str] | None = None, steps: int | None = None
) -> list[RunConfig]:
    """One configuration for each ablation and seed, named ``no-offsets-seed-1``.

    All ablations that change this preset, unless some are named.

    >>> [c.name for c in ablation_configs(find_preset("binding-tiny").config, [0], ["recipe"])]
    ['recipe-seed-0']
    """
    if not isinstance(config.task, BindingTask):
        raise BindscopeError(f"{config.name}: the recipe and its ablations are for binding presets.")
    base = config if steps is None else override(config, {"training.steps": steps})
    if names is None:
        chosen = [a for a in ABLATIONS if not a.changes or override(base, _fitted_changes(base, a)) != base]
    else:
        chosen = [find_ablation(name) for name in names]
    return [
        cell_config(base, _fitted_changes(base, ablation), ablation.name, seed) for ablation in chosen for seed in seeds
    ]


def find_ablation(name: str) -> Variant:
    known = {ablation.name: ablation for ablation in ABLATIONS}
    if name not in known:
        raise BindscopeError(f"there is no ablation '{name}'.{suggest_nearest(name, known)}")
    return known[name]


def ablation_dataset(runs: Iterable[Run]) -> xr.Dataset:
    """How each run went, over (ablation, seed): when it left the plateau, when every depth was learned, where it ended.

    ``left_plateau`` and ``learned`` are steps, as ``cells.summarise_run`` finds them; NaN where it never happened.
    """
    from bindscope.studies.framework.cells import gather_cells

    cells = gather_cells({split_name(run.name): run for run in runs}, [ablation.name for ablation in ABLATIONS])
    summary = cells[["left_plateau", "learned", "last_step", "last_accuracy", "worst_depth"]]
    return summary.rename(variant="ablation", last_accuracy="accuracy")


def _fitted_changes(config: RunConfig, ablation: Variant) -> dict[str, Any]:
    """The changes of an ablation, with those that depend on the preset worked out."""
    changes = dict(ablation.changes)
    if "training.optimizer.lr" in changes:
        changes["training.optimizer.lr"] *= config.training.optimizer.lr
    if "task.queries" in changes and isinstance(config.task, BindingTask):
        prefix, query = 4 * config.task.lines, 3
        tokens = config.training.batch_size * (prefix + query * config.task.queries)
        changes["training.batch_size"] = max(1, round(tokens / (prefix + query)))
    return changes
