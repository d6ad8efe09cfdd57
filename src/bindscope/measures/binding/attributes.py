"""What can be said of a question about a binding program before any model has answered it.

    a=4  b=7  c=a  #c:     depth 2, root on line 1, asked about line 3, two lines apart, one distractor chain

These are the groups behaviour is told apart by, and what its mistakes are explained with.
"""

from __future__ import annotations

import numpy as np

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.tasks.binding import Programs, programs_of
from bindscope.tasks.task import Batch

ATTRIBUTES: dict[str, str] = {
    "depth": "assignments on the queried chain",
    "root_line": "the line of the chain's constant, from 1",
    "query_line": "the line that assigns the queried variable, from 1",
    "distance": "lines from the chain's constant to the queried variable's line",
    "n_distractors": "chains that start elsewhere: constants off the queried chain",
    "n_same_root": "lines that hold the same constant by reference, the queried chain's own included",
    "n_distinct": "different digits among the constants",
    "n_equal": "constants whose digit is the answer",
    "longest_chain": "the depth of the program's deepest line",
    "n_overwritten": "lines whose variable is assigned again later",
    "line_1_right": "1 where the constant of line 1 is the answer",
    "line_2_constant": "1 where line 2 assigns a constant",
    "answer": "the digit that is the answer",
    "lines": "assignments in the program",
}


def describe_questions(batch: Batch) -> dict[str, np.ndarray]:
    """Every attribute [batch] of the (first) question of each row.

    >>> describe_questions(ask_programs([parse_program("a=4\\nb=7\\nc=a\\n#c:")]))["distance"]
    array([2])
    """
    programs, queries = programs_of(batch)
    rows, query = np.arange(len(programs)), queries[:, 0]
    root, answer = programs.root[rows, query].astype(np.int64), programs.value[rows, query]
    same_root = (programs.root == root[:, None]).sum(1)  # [batch], the root line itself included
    equal = (programs.is_constant & (programs.value == answer[:, None])).sum(1)
    attributes = {
        "depth": programs.depth[rows, query],
        "root_line": root + 1,
        "query_line": query + 1,
        "distance": query - root,
        "n_distractors": programs.is_constant.sum(1) - 1,
        "n_same_root": same_root - 1,
        "n_distinct": _count_distinct(programs),
        "n_equal": equal,
        "longest_chain": programs.depth.max(1),
        "n_overwritten": (~programs.live).sum(1),
        "line_1_right": programs.value[:, 0] == answer,
        "line_2_constant": programs.is_constant[:, 1] if programs.n_lines > 1 else np.zeros(len(programs)),
        "answer": answer,
        "lines": np.full(len(programs), programs.n_lines),
    }
    return {name: values.astype(np.int64) for name, values in attributes.items()}


def check_attribute(name: str) -> str:
    """The attribute's name with dashes as underscores, or a refusal that names the nearest."""
    found = name.replace("-", "_")
    if found not in ATTRIBUTES:
        raise BindscopeError(f"attribute '{name}' is not known.{suggest_nearest(found, ATTRIBUTES)}")
    return found


def _count_distinct(programs: Programs) -> np.ndarray:
    digits = np.arange(10)
    present = (programs.source[:, :, None] == digits) & programs.is_constant[:, :, None]  # [program, line, digit]
    return present.any(1).sum(1)
