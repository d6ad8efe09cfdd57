"""A vocabulary of single characters as the files of a Hugging Face tokenizer, in which a text is its characters; and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bindscope.errors import BindscopeError
from bindscope.model.described import read_json_object
from bindscope.tasks.vocabulary import Vocabulary

TOKENIZER = "tokenizer.json"


def check_tokens(directory: Path, vocabulary: Vocabulary) -> None:
    """Refuse a directory whose tokenizer, where it has one, gives the tokens other numbers than ``vocabulary`` does."""
    path = directory / TOKENIZER
    if not path.is_file():
        return
    model = read_json_object(path).get("model")
    theirs = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(theirs, dict):
        raise BindscopeError(f"{path}: lists no tokens; take it away if the model's tokens are those of the task.")
    for symbol, number in vocabulary.ids.items():
        if theirs.get(symbol) != number:
            raise BindscopeError(
                f"{path}: token {symbol!r} has the number {theirs.get(symbol)} where the task has {number}; "
                "import a model that was trained on the task's own tokens."
            )
    if len(theirs) != len(vocabulary):
        raise BindscopeError(f"{path}: has {len(theirs)} tokens where the task has {len(vocabulary)}.")


def why_no_tokenizer(vocabulary: Vocabulary | None) -> str | None:
    """Why there is no character tokenizer for this vocabulary, or None."""
    if vocabulary is None:
        return "no tokenizer was written, because no vocabulary was given; pass token ids."
    longer = [symbol for symbol in vocabulary.symbols if len(symbol) != 1]
    if longer:
        return f"no tokenizer was written, because {longer[0]!r} is not a single character; pass token ids."
    return None


def tokenizer_files(vocabulary: Vocabulary, context: int) -> dict[str, dict[str, Any]]:
    """File names to their JSON: every character is split off and looked up; an unknown one is an error."""
    every_character = {"type": "Split", "pattern": {"Regex": r"[\s\S]"}, "behavior": "Isolated", "invert": False}
    return {
        TOKENIZER: {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": every_character,
            "post_processor": None,
            "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": vocabulary.ids, "unk_token": "<unknown>"},
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": context,
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
        },
    }
