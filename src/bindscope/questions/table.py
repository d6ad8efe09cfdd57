"""Every question, and the table from which the browser writes their commands and Python.

python -m bindscope.questions.table frontend/src/api/questions.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bindscope.questions.algorithm import Algorithm
from bindscope.questions.coefficient import Coefficient
from bindscope.questions.diagnostics import Diagnostics
from bindscope.questions.edges import Edges
from bindscope.questions.grids import Grids
from bindscope.questions.hypotheses import Hypotheses
from bindscope.questions.lookups import Identifiers, Lookbacks
from bindscope.questions.mixture import Mixture
from bindscope.questions.moves import Moves
from bindscope.questions.patch import Patch
from bindscope.questions.patch import Path as PathPatch
from bindscope.questions.program import Ablate, Attention, Lens, Predict
from bindscope.questions.question import Question, describe_question
from bindscope.questions.reassignment import Reassignment
from bindscope.questions.samples import Sample
from bindscope.questions.subspace import Project, Swap
from bindscope.questions.sums import Sum
from bindscope.questions.templates import Kernel, TemplateCheck, TemplateSamples
from bindscope.questions.transplants import Retrain, Transplant

QUESTIONS: tuple[type[Question], ...] = (
    Predict, Lens, Attention, Ablate, Patch, PathPatch, Grids, Edges, Moves, Algorithm, Hypotheses, Mixture, Identifiers, Lookbacks, Reassignment, Swap, Project, Sample, Sum,
    Transplant, Retrain, Kernel, TemplateSamples,
    TemplateCheck, Coefficient, Diagnostics,
)  # fmt: skip


def encode_table() -> bytes:
    """The table as it is written to a file, a field a line."""
    parts = []
    for question in QUESTIONS:
        row = describe_question(question)
        head = ", ".join(f'"{name}": {json.dumps(row[name])}' for name in ("command", "opener", "method"))  # type: ignore[literal-required]
        fields = ",\n".join("      " + json.dumps(field) for field in row["fields"])
        parts.append(f'  "{question.__name__}": {{\n    {head},\n    "fields": [\n{fields}\n    ]\n  }}')
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(encode_table())
