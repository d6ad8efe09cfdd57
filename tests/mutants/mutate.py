"""Small wrong changes to a Python file, one at a time, each as a person could have made it.

>>> [mutant.change for mutant in find_mutants("def f(a):\\n    return a + 1 if a < 3 else -a\\n")]
['+ → -', '< → <=', '1 → 2', '3 → 4', '-a → a', 'return … → return None']
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip
SIGNS = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.And: "and", ast.Or: "or", ast.BitAnd: "&", ast.BitOr: "|",
}  # fmt: skip
OPERATORS = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "+", ast.Div: "*", ast.FloorDiv: "*", ast.Mod: "+",
    ast.BitAnd: "|", ast.BitOr: "&",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A file with one change: where it is, what it is, and the whole text after it."""

    line: int
    change: str
    text: str


def find_mutants(source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its statements; annotations and docstrings are left alone."""
    return [mutant for node in _executed(ast.parse(source)) for mutant in _mutants_of(node, source)]


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run: no annotations, docstrings, or blocks for type checkers."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_comment"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
                continue
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                continue
            yield node
            if not isinstance(node, ast.JoinedStr):  # a sentence
                yield from _executed(node)


def _mutants_of(node: ast.AST, source: str) -> Iterator[Mutant]:
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS and not _is_text(node):
        yield _between(node.left, node.right, type(node.op), OPERATORS[type(node.op)], source)
    elif isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:]):
            yield _between(left, right, type(operator), COMPARISONS[type(operator)], source)
    elif isinstance(node, ast.BoolOp):
        other = "or" if isinstance(node.op, ast.And) else "and"
        yield _between(node.values[0], node.values[1], type(node.op), other, source)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
        inner = ast.get_source_segment(source, node.operand) or ""
        yield _replaced(node, inner if isinstance(node.op, ast.USub) else f"({inner})", source)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield _replaced(node, str(not node.value), source)
        elif isinstance(node.value, int | float):
            yield _replaced(node, str(node.value + 1), source)
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        found = _replaced(node, "return None", source)
        yield Mutant(found.line, "return … → return None", found.text)


def _is_text(node: ast.BinOp) -> bool:
    return any(isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
               for side in (node.left, node.right))  # fmt: skip


def _between(left: ast.expr, right: ast.expr, operator: type[ast.AST], other: str, source: str) -> Mutant:
    """The sign between two expressions replaced by another."""
    start, end = _offset(source, left.end_lineno, left.end_col_offset), _offset(source, right.lineno, right.col_offset)
    sign, between = SIGNS[operator], source[start:end]
    if sign not in between:  # brackets and comments between them never hide it, so this is another spelling
        return Mutant(left.lineno, "unchanged", source)
    text = source[:start] + between.replace(sign, other, 1) + source[end:]
    return Mutant(left.end_lineno or 0, f"{sign} → {other}", text)


def _replaced(node: ast.expr | ast.stmt, other: str, source: str) -> Mutant:
    start, end = _offset(source, node.lineno, node.col_offset), _offset(source, node.end_lineno, node.end_col_offset)
    return Mutant(node.lineno, f"{source[start:end]} → {other}", source[:start] + other + source[end:])


def _offset(source: str, line: int | None, column: int | None) -> int:
    """The index of a character: ``column`` counts bytes, as the parser does."""
    lines = source.splitlines(keepends=True)
    before = sum(map(len, lines[: (line or 1) - 1]))
    return before + len(lines[(line or 1) - 1].encode()[: column or 0].decode())
