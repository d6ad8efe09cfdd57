"""The eleven claims of "Assign and Add" (arXiv 2605.31497) as data."""

from bindscope.studies.assign_add import development, seeds
from bindscope.studies.assign_add.addition import judge as judge_addition
from bindscope.studies.assign_add.addition import measure as measure_addition
from bindscope.studies.assign_add.attention import judge as judge_attention
from bindscope.studies.assign_add.attention import measure as measure_attention
from bindscope.studies.assign_add.evidence import EVIDENCE
from bindscope.studies.assign_add.learning import judge as judge_learning
from bindscope.studies.assign_add.neurons import judge as judge_neurons
from bindscope.studies.assign_add.neurons import measure as measure_neurons
from bindscope.studies.assign_add.one_step import judge as judge_one_step
from bindscope.studies.assign_add.one_step import measure as measure_one_step
from bindscope.studies.assign_add.progress import measure as measure_progress
from bindscope.studies.assign_add.published import SOURCE
from bindscope.studies.assign_add.scores import measure as measure_scores
from bindscope.studies.assign_add.sweeps import judge as judge_sweeps
from bindscope.studies.assign_add.sweeps import measure as measure_sweeps
from bindscope.studies.assign_add.transplants import judge as judge_transplants
from bindscope.studies.assign_add.transplants import measure as measure_transplants
from bindscope.studies.assign_add.weights import judge as judge_weights
from bindscope.studies.assign_add.weights import measure as measure_weights
from bindscope.studies.framework import measuring
from bindscope.studies.framework.claims import Study

_MEASURED = (
    measuring,
    seeds,
    measure_sweeps,
    measure_progress,
    measure_weights,
    measure_attention,
    measure_addition,
    measure_neurons,
    measure_transplants,
    measure_scores,
    measure_one_step,
    development,
)
_JUDGED = (
    judge_learning,
    judge_sweeps,
    judge_attention,
    judge_addition,
    judge_neurons,
    judge_weights,
    judge_transplants,
    judge_one_step,
)

STUDY = Study.of(
    "assign_add",
    "Assign and add: variables in modular sums",
    _MEASURED,
    _JUDGED,
    EVIDENCE,
    (measure_scores, development),
    source=SOURCE,
)
