"""The thirteen claims of "When can transformers reason with abstract symbols?" (arXiv 2310.09753) as data."""

from bindscope.studies.claims import Study
from bindscope.studies.symbols.claims import efficiency, kernel, language, pretrained, tasks, width
from bindscope.studies.symbols.results import RESULTS

_PARTS = (efficiency, tasks, width, pretrained, language, kernel)
_CLAIMS = [claim for part in _PARTS for claim in part.CLAIMS]
STUDY = Study(
    family="templates",
    title="Reasoning with abstract symbols",
    claims=tuple(sorted(_CLAIMS, key=lambda claim: int(claim.id.removeprefix("AS")))),
    results=RESULTS,
)

__all__ = ["STUDY"]
