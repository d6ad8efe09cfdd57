"""What answers: one readable transformer for all three studies, the names of its inner sites, and its conversions."""

from bindscope.lazy import reexport

PUBLIC = {
    "ModelConfig": "bindscope.model.config",
    "InitConfig": "bindscope.model.config",
    "Transformer": "bindscope.model.transformer",
    "Site": "bindscope.model.sites",
}
__all__ = [*PUBLIC]
__getattr__, __dir__ = reexport(__name__, PUBLIC)
