"""Known answers: transformers whose weights we write ourselves, and closed forms."""

from bindscope.lazy import reexport

PUBLIC = {
    "construct_dereferencer": "bindscope.theory.constructed",
    "constructed_circuit": "bindscope.theory.constructed",
    "template_kernel": "bindscope.theory.kernel",
    "sequence_kernel": "bindscope.theory.kernel",
    "attention_kernel": "bindscope.theory.kernel",
}
__all__ = [*PUBLIC]
__getattr__, __dir__ = reexport(__name__, PUBLIC)
