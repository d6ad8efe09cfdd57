"""Study 3: when can transformers reason with abstract symbols? (arXiv 2310.09753)."""

from bindscope.studies.symbols.presets import PRESETS

__all__ = ["PRESETS"]
