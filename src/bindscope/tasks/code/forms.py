"""Surface forms: how a binding program is written as text, and read back.

    python     a = 5\\nb = a\\nprint(b)\\n>>>                     →  5
    compact    a=5\\nb=a\\nprint(b)\\n>>>                         →  5
    let        let a = 5;\\nlet b = a;\\nconsole.log(b); //        →  5
    arrow      a <- 5\\nb <- a\\nshow b ->                        →  5
    english    Let a be 5.\\nLet b be a.\\nThe value of b is      →  5

A text is *segments*, each a piece of it with what it is, as ``table.TokenTable`` calls it: the ``first`` or another name on the
left (``lhs``), ``equals``, a name or a value on the right, and ``newline`` of every line, then ``hash``, ``query``, ``colon`` and the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.tasks.binding.program import DIGITS, LETTERS, Assignment, Program

Segment = tuple[str, str]  # what it is, and its text


@dataclass(frozen=True)
class Form:
    """The pieces of text around names and values; none but ``before`` is empty."""

    before: str  # of each line, before the name that it assigns
    equals: str
    after: str  # of each line
    hash: str
    colon: str  # up to the answer, with the blank that a word has before it
    separator: str = "\n\n"  # between an answer and the next program, where examples come first

    def write(self, program: Program, names: Sequence[str], values: Sequence[str]) -> list[Segment]:
        """A program and its answer, the letters and digits in it standing for ``names`` and ``values``.

        >>> "".join(text for _, text in FORMS["python"].write(parse_program("a=5\\nb=a\\n#b:"), LETTERS, DIGITS))
        'a = 5\\nb = a\\nprint(b)\\n>>> 5'
        """
        words = dict(zip(LETTERS, names)) | dict(zip(DIGITS, values))
        segments = [("start", self.before)]
        for number, line in enumerate(program.assignments, start=1):
            segments += [("first" if number == 1 else "lhs", words[line.variable]), ("equals", self.equals)]
            segments += [("rhs_values" if line.is_constant else "rhs_names", words[line.source])]
            last = number == program.n_lines
            segments += [("end", self.after) if last else ("newline", self.after + self.before)]
        asked = [("hash", self.hash), ("query", words[program.query]), ("colon", self.colon)]
        return [*segments, *asked, ("answers", words[str(program.answer)])]

    def read(self, text: str, names: Sequence[str], values: Sequence[str]) -> Program | None:
        """The program that a text without its answer writes in this form; None where it is in no such form."""
        line = re.compile(rf"{_loosely(self.before)}(\w+){_loosely(self.equals)}(\w+){_loosely(self.after)}")
        query = re.compile(rf"{_loosely(self.hash)}(\w+){_loosely(self.colon)}")
        lines, at = [], 0
        while match := line.match(text, at):
            lines.append(match)
            at = match.end()
        asked = query.fullmatch(text, at)
        if not lines or not asked:
            return None
        words = dict(zip(names, LETTERS)) | dict(zip(values, DIGITS))
        unknown = [word for match in (*lines, asked) for word in match.groups() if word not in words]
        if unknown:
            raise BindscopeError(f"'{unknown[0]}' is neither a name nor a value of this task.")
        return Program(tuple(Assignment(*(words[word] for word in match.groups())) for match in lines), words[asked[1]])


FORMS: Mapping[str, Form] = {
    "python": Form("", " = ", "\n", "print(", ")\n>>> "),
    "compact": Form("", "=", "\n", "print(", ")\n>>> "),
    "let": Form("let ", " = ", ";\n", "console.log(", "); // "),
    "arrow": Form("", " <- ", "\n", "show ", " -> "),
    "english": Form("Let ", " be ", ".\n", "The value of ", " is "),
}


def find_form(name: str) -> Form:
    """The form of that name."""
    if name not in FORMS:
        raise BindscopeError(
            f"task.form: there is no surface form '{name}'; choose one of {', '.join(FORMS)}.{suggest_nearest(name, FORMS)}"
        )
    return FORMS[name]


def _loosely(piece: str) -> str:
    """A pattern for a piece of text with any blanks at its ends, ';' for a line's end, and perhaps only its first line."""
    if not piece.strip():
        return r"\s*[;\n]\s*" if piece else r"\s*"
    first, *rest = piece.strip().split("\n")
    return rf"\s*{re.escape(first)}(?:\s*{re.escape(' '.join(rest))})?\s*" if rest else rf"\s*{re.escape(first)}\s*"
