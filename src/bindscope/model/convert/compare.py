"""A model that was read from a Hugging Face directory, beside the library's own reading of it.

>>> differ_from_transformers(read_model("pythia-14m"), "pythia-14m")
4.8e-07
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import torch

from bindscope.model.transformer import Transformer

N_ROWS, MOST_POSITIONS = 4, 64


@torch.no_grad()
def differ_from_transformers(model: Transformer, directory: str | Path) -> float | None:
    """The largest difference of logits on random tokens, in single precision; None where ``transformers`` is not installed."""
    if find_spec("transformers") is None:
        return None
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        directory, dtype=torch.float32, local_files_only=True, trust_remote_code=False
    ).eval()
    shape = (N_ROWS, min(model.config.n_positions, MOST_POSITIONS))
    tokens = torch.randint(model.config.d_vocab, shape, generator=torch.Generator().manual_seed(0))
    return float((theirs(tokens).logits - model.float()(tokens)).abs().max())
