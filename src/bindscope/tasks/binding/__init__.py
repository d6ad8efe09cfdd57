"""The binding family: ``a=5 / b=a / #b:`` and everything about such programs."""

from bindscope.tasks.binding.curriculum import Curriculum
from bindscope.tasks.binding.dataset import PAPER_SPLITS, BindingDataset, make_splits
from bindscope.tasks.binding.pairs import (
    CounterfactualPairs,
    pair_programs,
    read_pair,
    sample_conflict_pairs,
    sample_name_pairs,
    sample_root_pairs,
)
from bindscope.tasks.binding.pointers import PointerPairs, point_elsewhere, references_of, sample_pointer_pairs
from bindscope.tasks.binding.positions import NamedPosition, chain_names, chain_positions, name_at, position_of
from bindscope.tasks.binding.program import VOCABULARY, Assignment, Program, parse_program
from bindscope.tasks.binding.programs import Programs, ask_programs, ask_questions, tokens_to_programs
from bindscope.tasks.binding.rendered import columns_of, outputs_of_digits, programs_of, rows_of, to_digits
from bindscope.tasks.binding.rules import RULES, constants_by_line
from bindscope.tasks.binding.sampler import Grammar, sample_programs, sample_questions
from bindscope.tasks.binding.structure import distractor_positions, named_positions
from bindscope.tasks.binding.task import BindingTask

__all__ = [
    "PAPER_SPLITS",
    "RULES",
    "VOCABULARY",
    "Assignment",
    "BindingDataset",
    "BindingTask",
    "CounterfactualPairs",
    "Curriculum",
    "Grammar",
    "NamedPosition",
    "PointerPairs",
    "Program",
    "Programs",
    "ask_programs",
    "ask_questions",
    "chain_names",
    "chain_positions",
    "columns_of",
    "constants_by_line",
    "distractor_positions",
    "make_splits",
    "name_at",
    "named_positions",
    "outputs_of_digits",
    "pair_programs",
    "parse_program",
    "point_elsewhere",
    "position_of",
    "programs_of",
    "read_pair",
    "references_of",
    "rows_of",
    "sample_conflict_pairs",
    "sample_name_pairs",
    "sample_pointer_pairs",
    "sample_programs",
    "sample_questions",
    "sample_root_pairs",
    "to_digits",
    "tokens_to_programs",
]
