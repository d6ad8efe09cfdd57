"""A small byte-level BPE of code-like text, as the file that language models come with."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bindscope.tasks.code import FORMS, CodeTask
from bindscope.tasks.text.tokenizer import train_tokenizer

N_TOKENS = 480


def write_tokenizer(directory: Path, n_tokens: int = N_TOKENS) -> Path:
    """``tokenizer.json`` in a directory, trained on programs in every surface form."""
    rng = np.random.default_rng(0)
    tasks = [CodeTask(form=form, lines=4, max_depth=3) for form in FORMS]
    texts = [bytes(row.tolist()).decode() + "7\n" for task in tasks for row in task.sample_batch(rng, 400).tokens]
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "tokenizer.json"
    train_tokenizer(texts, n_tokens).inner.save(str(path))
    return path
