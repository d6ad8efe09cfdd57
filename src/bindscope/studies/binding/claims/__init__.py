"""The twelve claims of "How do transformers learn variable binding in symbolic programs?" (arXiv 2505.20896) as data."""

from bindscope.studies.binding.claims import conditions, generalisation, learning, mechanism
from bindscope.studies.binding.results import RESULTS
from bindscope.studies.claims import Study

_CLAIMS = (*learning.CLAIMS, *conditions.CLAIMS, *generalisation.CLAIMS, *mechanism.CLAIMS)
STUDY = Study(
    family="binding",
    title="Variable binding in symbolic programs",
    claims=tuple(sorted(_CLAIMS, key=lambda claim: int(claim.id.removeprefix("VB")))),
    results=RESULTS,
)

__all__ = ["STUDY"]
