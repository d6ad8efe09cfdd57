"""Byte-level BPE, trained on a text or read from files. Needs the ``tokenizers`` library."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bindscope.errors import BindscopeError

END_OF_TEXT = "<|endoftext|>"
FEWEST_TOKENS = 257  # one for each byte, and the end of a text
PIECE = 1 << 20  # characters that are encoded at once; pieces end with a line


@dataclass(frozen=True, eq=False)
class TextTokenizer:
    """Text to token ids and back.

    >>> tokenizer = train_tokenizer(["one text", "another"], vocabulary_size=260)
    >>> tokenizer.decode(tokenizer.encode("a text"))
    'a text'
    """

    inner: Any  # a tokenizers.Tokenizer
    size: int
    separator: int | None  # the token that stands before each text

    def encode(self, text: str) -> np.ndarray:
        pieces = [self.inner.encode(piece, add_special_tokens=False).ids for piece in _pieces(text)]
        return np.array([token for piece in pieces for token in piece], dtype=np.int64)

    def decode(self, tokens: Sequence[int] | np.ndarray) -> str:
        return str(self.inner.decode([int(token) for token in tokens], skip_special_tokens=False))


def train_tokenizer(texts: Sequence[str], vocabulary_size: int) -> TextTokenizer:
    """A byte-level BPE of at most ``vocabulary_size`` tokens, the same for the same texts."""
    tokenizers = _import_tokenizers()
    inner = tokenizers.Tokenizer(tokenizers.models.BPE())
    inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    inner.train_from_iterator((piece for text in texts for piece in _pieces(text)), trainer)
    return _wrap(inner)


def load_tokenizer(location: str, vocabulary_size: int) -> TextTokenizer:
    """A ``tokenizer.json``, or the directory of one, or of GPT-2's ``vocab.json`` and ``merges.txt``."""
    tokenizers, path = _import_tokenizers(), Path(location).expanduser()
    file = path / "tokenizer.json" if path.is_dir() else path
    try:
        if file.is_file():
            inner = tokenizers.Tokenizer.from_file(str(file))
        elif (path / "vocab.json").is_file() and (path / "merges.txt").is_file():
            inner = tokenizers.Tokenizer(
                tokenizers.models.BPE.from_file(str(path / "vocab.json"), str(path / "merges.txt"))
            )
            inner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
            inner.decoder = tokenizers.decoders.ByteLevel()
        else:
            raise BindscopeError(
                f"task.tokenizer: '{location}' has no tokenizer.json, nor GPT-2's vocab.json and merges.txt."
            )
    except BindscopeError:
        raise
    except Exception as problem:  # the library raises Exception itself for damaged files
        raise BindscopeError(f"task.tokenizer: '{location}' cannot be read as a tokenizer: {problem}.") from None
    wrapped = _wrap(inner)
    if wrapped.size > vocabulary_size:
        raise BindscopeError(
            f"task.vocabulary_size: the tokenizer of '{location}' has {wrapped.size} tokens, got {vocabulary_size}; set "
            f"task.vocabulary_size={wrapped.size}."
        )
    return wrapped


def _wrap(inner: Any) -> TextTokenizer:
    ids = inner.get_vocab(with_added_tokens=True).values()
    return TextTokenizer(inner, max(ids) + 1, inner.token_to_id(END_OF_TEXT))


def _pieces(text: str) -> Iterator[str]:
    """The text in parts of bounded length that end with a line, where its lines are shorter than that."""
    start = 0
    while start < len(text):
        end = start + PIECE
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


def _import_tokenizers() -> Any:
    try:
        import tokenizers
        import tokenizers.decoders
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError:
        raise BindscopeError(
            "text needs the tokenizers library, which is not installed; install it with: pip install 'bindscope[text]'"
        ) from None
    return tokenizers
