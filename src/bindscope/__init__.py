"""Bindscope: a laboratory for how a transformer learns to bind variables to values and compute with them.

>>> run = bindscope.open_run("binding-laptop")
>>> run.trajectory().plot()
>>> bindscope.open_study("symbols").curves("same-different").plot()
>>> bindscope.train(bindscope.preset("binding-tiny").config, "runs/mine")

docs/api.md shows each name. Everything else may move between versions.
"""

from __future__ import annotations

from bindscope.lazy import reexport

__version__ = "0.1.0"

PUBLIC = {  # name → where it is, read when it is first asked for: importing Bindscope alone imports nothing heavy
    "open_run": "bindscope.notebook",
    "open_study": "bindscope.notebook",
    "register_family": "bindscope.families",
    "preset": "bindscope.studies.framework.presets:find_preset",
    "override": "bindscope.runs.config",
    "train": "bindscope.runs.execute:train_run",
    "resume": "bindscope.runs.execute:resume_run",
    "Run": "bindscope.runs.directory",
    "RunConfig": "bindscope.runs.config",
    "ModelConfig": "bindscope.model.config",
    "Transformer": "bindscope.model.transformer",
    "read_model": "bindscope.model.convert.read",
    "Site": "bindscope.model.sites",
    "run": "bindscope.model.run",
    "contrast_pairs": "bindscope.interventions.contrast",
    "patch": "bindscope.interventions.patching:patch_sites",
    "patch_path": "bindscope.interventions.paths",
    "residual_grid": "bindscope.interventions.grids",
    "head_grid": "bindscope.interventions.grids",
    "mlp_grid": "bindscope.interventions.grids",
    "ablate_heads": "bindscope.interventions.ablation",
    "BindscopeError": "bindscope.errors",
}
__all__ = ["__version__", *PUBLIC]
__getattr__, __dir__ = reexport(__name__, PUBLIC)
