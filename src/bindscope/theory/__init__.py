"""Known answers: transformers whose weights we write ourselves, and closed forms."""

from bindscope.lazy import reexport

PUBLIC = {
    "construct_dereferencer": "bindscope.theory.constructed",
}
__all__ = [*PUBLIC]
__getattr__, __dir__ = reexport(__name__, PUBLIC)
