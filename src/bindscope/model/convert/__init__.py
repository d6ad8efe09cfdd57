"""Models from and to files of others: Hugging Face directories, nanoGPT, TransformerLens state dicts, safetensors.

>>> model = read_model("pythia-14m")
>>> export_hugging_face(model, "exported", vocabulary=task.vocabulary)
"""

from bindscope.model.convert.checkpoint import load_checkpoint, load_into, read_state
from bindscope.model.convert.hugging_face import HuggingFaceExport, export_hugging_face, why_not_hugging_face
from bindscope.model.convert.read import read_model
from bindscope.model.convert.transformer_lens import (
    state_to_transformer_lens,
    transformer_lens_to_config,
    transformer_lens_to_state,
)

__all__ = [
    "HuggingFaceExport",
    "export_hugging_face",
    "load_checkpoint",
    "load_into",
    "read_model",
    "read_state",
    "state_to_transformer_lens",
    "transformer_lens_to_config",
    "transformer_lens_to_state",
    "why_not_hugging_face",
]
