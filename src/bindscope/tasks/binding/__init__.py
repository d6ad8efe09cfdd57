"""The binding family: ``a=5 / b=a / #b:`` and everything about such programs."""

from bindscope.tasks.binding.positions import Place, chain_places, chain_positions, place_at, position_of
from bindscope.tasks.binding.program import VOCABULARY, Assignment, Program, parse_program
from bindscope.tasks.binding.programs import Programs, ask_programs, ask_questions, tokens_to_programs
from bindscope.tasks.binding.rules import RULES, constants_by_line
from bindscope.tasks.binding.sampler import Grammar, sample_programs, sample_questions
from bindscope.tasks.binding.task import BindingTask

__all__ = [
    "RULES",
    "VOCABULARY",
    "Assignment",
    "BindingTask",
    "Grammar",
    "Place",
    "Program",
    "Programs",
    "ask_programs",
    "ask_questions",
    "chain_places",
    "chain_positions",
    "constants_by_line",
    "parse_program",
    "place_at",
    "position_of",
    "sample_programs",
    "sample_questions",
    "tokens_to_programs",
]
