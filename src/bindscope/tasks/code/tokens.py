"""A table of tokens from a tokenizer: every name and value must be one token where it stands."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bindscope.errors import BindscopeError
from bindscope.tasks.binding.program import DIGITS, LETTERS, Assignment, Program
from bindscope.tasks.code.forms import FORMS, Segment
from bindscope.tasks.code.table import FIXED, OF_NAMES, OF_VALUES, TokenTable
from bindscope.tasks.text.tokenizer import load_tokenizer

MOST_TOKENS = 1 << 31
AROUND = "the text around names and values"
FILES = ("tokenizer.json", "vocab.json")


class Piece(NamedTuple):
    """One token of a text: its number, what it is called, and the characters it stands for."""

    token: int
    name: str
    start: int
    stop: int


Encode = Callable[[str], list[Piece]]


def encode_bytes(text: str) -> list[Piece]:
    """Every byte a token, for a model of 256 of them."""
    return [Piece(byte, chr(byte), at, at + 1) for at, sign in enumerate(text) for byte in sign.encode()]


def read_tokenizer(location: Path, d_vocab: int) -> tuple[Encode, str]:
    """A tokenizer's encoding and the hash of its file; it must have no more tokens than the model."""
    file = next((location / name for name in FILES if (location / name).is_file()), location)
    if not file.is_file():
        raise BindscopeError(
            f"{location}: has no tokenizer.json; copy that of the model there, or name it with --tokenizer."
        )
    tokenizer = load_tokenizer(str(location), MOST_TOKENS)
    if tokenizer.size > d_vocab:
        raise BindscopeError(
            f"{file}: has {tokenizer.size} tokens and the model {d_vocab}; give the tokenizer that the model was trained with."
        )

    def encode(text: str) -> list[Piece]:
        found = tokenizer.inner.encode(text)
        pieces = [Piece(*piece) for piece in zip(found.ids, found.tokens, *zip(*found.offsets))]
        special = [index for index, marked in enumerate(found.special_tokens_mask) if not marked]
        return pieces[: special[-1] + 1] if special else pieces  # without what it puts after a text

    return encode, hashlib.sha256(file.read_bytes()).hexdigest()


def build_table(
    encode: Encode, form_name: str, names: Sequence[str], values: Sequence[str], size: int, sha256: str = ""
) -> TokenTable:
    """The tokens of a form, looked up in texts that show every name and value at each place where it can stand.

    What is not one token there is refused, all of it in one sentence.
    """
    form, found, misfits = FORMS[form_name], _Found(), dict[str, list[str]]()
    for program in _probes(len(names), len(values)):
        segments = form.write(program, names, values)
        (_, first), *others = segments[1:]
        text = [*segments, ("separator", form.separator + form.before), ("again", first), *others]
        for problem, word in found.add(encode, text):
            misfits.setdefault(problem, []).append(word)
    _refuse(misfits, form_name)
    fixed = {name: found.fixed.get(name, ()) for name in FIXED}
    words = {name: tuple(found.words[name, word] for word in names) for name in OF_NAMES}
    words |= {name: tuple(found.words[name, word] for word in values) for name in OF_VALUES}
    _refuse_alike({name: (tokens, names if name in OF_NAMES else values) for name, tokens in words.items()})
    return TokenTable(size, sha256, **fixed, **words, texts=tuple(sorted(found.texts.items())))


class _Found:
    """What texts have shown so far."""

    def __init__(self) -> None:
        self.fixed: dict[str, tuple[int, ...]] = {}
        self.words: dict[tuple[str, str], int] = {}
        self.texts: dict[int, str] = {}

    def add(self, encode: Encode, segments: Sequence[Segment]) -> Iterator[tuple[str, str]]:
        """Look all segments of a text up, and name the words and pieces that do not fit."""
        text = "".join(written for _, written in segments)
        ends = np.cumsum([len(written) for _, written in segments])
        pieces: list[list[Piece]] = [[] for _ in segments]
        for piece in encode(text):  # a token belongs to the segment of its last character
            self.texts[piece.token] = _show(piece.name)
            pieces[int(np.searchsorted(ends, piece.stop)) if piece.stop else 0].append(piece)
        for (what, written), end, those in zip(segments, ends.tolist(), pieces):
            tokens = tuple(piece.token for piece in those)
            if what in FIXED:
                if self.fixed.setdefault(what, tokens) != tokens or (not tokens and what != "start"):
                    yield AROUND, repr(written)
            elif len(those) != 1 or text[those[0].start : end - len(written)].strip():
                yield ("the values" if what in OF_VALUES else "the names"), written
            else:
                self.words[what, written] = tokens[0]


def _probes(n_names: int, n_values: int) -> Iterator[Program]:
    """Programs that together show every name and value everywhere, and both before every piece of text."""
    for index in range(max(n_names, n_values)):
        first, second, third = (LETTERS[(index + shift) % n_names] for shift in range(3))
        value, other = (DIGITS[(index + shift) % n_values] for shift in range(2))
        lines = [Assignment(first, value), Assignment(second, first)]
        yield Program((*lines, Assignment(third, other)) if n_names > 2 else tuple(lines), first)


def _show(name: str) -> str:
    """A token as its tokenizer calls it, with a sign for the blank."""
    return name.replace("Ġ", "␣").replace("▁", "␣").replace(" ", "␣").replace("Ċ", "\n")


def _refuse(misfits: dict[str, list[str]], form: str) -> None:
    if misfits:
        words = {
            what: those for what, those in misfits.items() if what != AROUND
        }  # which change the text around them too
        listed = "; ".join(f"{what} {', '.join(dict.fromkeys(those))}" for what, those in (words or misfits).items())
        others = ", ".join(name for name in FORMS if name != form)
        raise BindscopeError(
            f"task.form: under this tokenizer the form '{form}' does not have one token for each name and value, and the same ones "
            f"between them: {listed}. Choose others (--set names=…, --set values=…) or another form ({others})."
        )


def _refuse_alike(words: dict[str, tuple[tuple[int, ...], Sequence[str]]]) -> None:
    """Two words that the tokenizer takes for the same one, as it does with words that it does not know."""
    for tokens, texts in words.values():
        alike = [text for token, text in zip(tokens, texts) if tokens.count(token) > 1]
        if alike:
            raise BindscopeError(
                f"task.names, task.values: the tokenizer has one and the same token for {', '.join(alike)}; choose others."
            )
