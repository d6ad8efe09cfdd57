"""The twelve claims of "How do transformers learn variable binding in symbolic programs?" (arXiv 2505.20896) as data."""

from bindscope.studies.binding import development
from bindscope.studies.binding.algorithm import measure as measure_algorithm
from bindscope.studies.binding.behaviour import measure as measure_behaviour
from bindscope.studies.binding.conditions import judge as judge_conditions
from bindscope.studies.binding.crosscoder import measure as measure_crosscoder
from bindscope.studies.binding.edges import measure as measure_edges
from bindscope.studies.binding.evidence import EVIDENCE
from bindscope.studies.binding.generalisation import judge as judge_generalisation
from bindscope.studies.binding.generalisation import measure as measure_generalisation
from bindscope.studies.binding.identifiers import measure as measure_identifiers
from bindscope.studies.binding.learning import judge as judge_learning
from bindscope.studies.binding.learning import judge_sources
from bindscope.studies.binding.learning import measure as measure_learning
from bindscope.studies.binding.lookbacks import measure as measure_lookbacks
from bindscope.studies.binding.mechanism import grids as measure_grids
from bindscope.studies.binding.mechanism import hops as measure_hops
from bindscope.studies.binding.mechanism import judge as judge_mechanism
from bindscope.studies.binding.mechanism import judge_heads
from bindscope.studies.binding.mechanism import measure as measure_mechanism
from bindscope.studies.binding.mixture import measure as measure_mixture
from bindscope.studies.binding.published import SOURCE
from bindscope.studies.binding.reassignment import measure as measure_reassignment
from bindscope.studies.binding.representation import judge as judge_representation
from bindscope.studies.binding.representation import measure as measure_representation
from bindscope.studies.binding.representation import projections as measure_projections
from bindscope.studies.binding.transplants import measure as measure_transplants
from bindscope.studies.framework import measuring
from bindscope.studies.framework.claims import Study

_MEASURED = (
    measuring,
    measure_learning,
    measure_generalisation,
    measure_mechanism,
    measure_algorithm,
    measure_mixture,
    measure_identifiers,
    measure_lookbacks,
    measure_reassignment,
    measure_crosscoder,
    measure_edges,
    measure_hops,
    measure_grids,
    measure_representation,
    measure_behaviour,
    measure_projections,
    measure_transplants,
    development,
)
_JUDGED = (
    judge_learning,
    judge_sources,
    judge_conditions,
    judge_generalisation,
    judge_mechanism,
    judge_heads,
    judge_representation,
)

_DRAWN = (
    measure_hops,
    measure_mixture,
    measure_identifiers,
    measure_lookbacks,
    measure_reassignment,
    measure_crosscoder,
    measure_edges,
    measure_transplants,
    development,
)

STUDY = Study.of(
    "binding",
    "Variable binding in symbolic programs",
    _MEASURED,
    _JUDGED,
    EVIDENCE,
    _DRAWN,
    source=SOURCE,
)
