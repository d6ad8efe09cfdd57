"""How behaviour is understood: model and batch in, numbers and labelled arrays out."""

from bindscope.lazy import reexport

PUBLIC = {
    "build_evaluator": "bindscope.measures.evaluation",
    "read_answers": "bindscope.measures.evaluation",
    "logit_lens": "bindscope.measures.lens",
    "map_lens": "bindscope.measures.lens_map",
    "logit_contributions": "bindscope.measures.binding.contributions",
}
__all__ = [*PUBLIC]
__getattr__, __dir__ = reexport(__name__, PUBLIC)
