# What type checkers and editors see of the names that __init__.py imports when they are first asked for.
from bindscope.errors import BindscopeError as BindscopeError
from bindscope.families import register_family as register_family
from bindscope.interventions.ablation import ablate_heads as ablate_heads
from bindscope.interventions.contrast import contrast_pairs as contrast_pairs
from bindscope.interventions.grids import head_grid as head_grid
from bindscope.interventions.grids import mlp_grid as mlp_grid
from bindscope.interventions.grids import residual_grid as residual_grid
from bindscope.interventions.patching import patch_sites as patch
from bindscope.interventions.paths import patch_path as patch_path
from bindscope.model.config import ModelConfig as ModelConfig
from bindscope.model.convert.read import read_model as read_model
from bindscope.model.run import run as run
from bindscope.model.sites import Site as Site
from bindscope.model.transformer import Transformer as Transformer
from bindscope.notebook import open_run as open_run
from bindscope.notebook import open_study as open_study
from bindscope.runs.config import RunConfig as RunConfig
from bindscope.runs.config import override as override
from bindscope.runs.directory import Run as Run
from bindscope.runs.execute import resume_run as resume
from bindscope.runs.execute import train_run as train
from bindscope.studies.framework.presets import find_preset as preset

__version__: str
PUBLIC: dict[str, str]
__all__ = [
    "BindscopeError",
    "ModelConfig",
    "Run",
    "RunConfig",
    "Site",
    "Transformer",
    "ablate_heads",
    "contrast_pairs",
    "head_grid",
    "mlp_grid",
    "open_run",
    "open_study",
    "override",
    "patch",
    "patch_path",
    "preset",
    "read_model",
    "register_family",
    "residual_grid",
    "resume",
    "run",
    "train",
]
