"""The twelve claims of "How do transformers learn variable binding in symbolic programs?" (arXiv 2505.20896) as data."""

from bindscope.studies.binding.claims import conditions, generalisation, learning, mechanism, representation
from bindscope.studies.binding.results import RESULTS
from bindscope.studies.claims import Study

_PARTS = (learning, conditions, generalisation, mechanism, representation)
_CLAIMS = [claim for part in _PARTS for claim in part.CLAIMS]
STUDY = Study(
    family="binding",
    title="Variable binding in symbolic programs",
    claims=tuple(sorted(_CLAIMS, key=lambda claim: int(claim.id.removeprefix("VB")))),
    results=RESULTS,
)

__all__ = ["STUDY"]
