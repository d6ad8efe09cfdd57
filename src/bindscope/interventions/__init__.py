"""How a mechanism is found by changing it: model and contrast in, labelled arrays out."""

from bindscope.lazy import reexport

PUBLIC = {
    "contrast_pairs": "bindscope.interventions.contrast",
    "patch_sites": "bindscope.interventions.patching",
    "patch_path": "bindscope.interventions.paths",
    "residual_grid": "bindscope.interventions.grids",
    "position_grid": "bindscope.interventions.grids",
    "head_grid": "bindscope.interventions.grids",
    "mlp_grid": "bindscope.interventions.grids",
    "summarise_outcomes": "bindscope.interventions.outcome",
    "ablate_heads": "bindscope.interventions.ablation",
    "ablate_mlps": "bindscope.interventions.ablation",
    "ablate_sets": "bindscope.interventions.ablation",
    "ablate_together": "bindscope.interventions.ablation",
    "knock_out_edges": "bindscope.interventions.knockout",
    "knock_out_each": "bindscope.interventions.knockout",
    "knock_out_grid": "bindscope.interventions.knockout",
    "attribute_residual": "bindscope.interventions.attribution",
    "attribute_heads": "bindscope.interventions.attribution",
    "find_circuit": "bindscope.interventions.circuit",
}
__all__ = [*PUBLIC]
__getattr__, __dir__ = reexport(__name__, PUBLIC)
