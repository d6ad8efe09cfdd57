"""The thirteen claims of "When can transformers reason with abstract symbols?" (arXiv 2310.09753) as data."""

from bindscope.studies.framework.claims import Study
from bindscope.studies.symbols.efficiency import judge as judge_efficiency
from bindscope.studies.symbols.efficiency import measure as measure_curves
from bindscope.studies.symbols.kernel import judge as judge_kernel
from bindscope.studies.symbols.kernel import measure as measure_kernel
from bindscope.studies.symbols.language import judge as judge_language
from bindscope.studies.symbols.language import measure as measure_language
from bindscope.studies.symbols.pretrained import judge as judge_pretrained
from bindscope.studies.symbols.pretrained import measure as measure_pretrained
from bindscope.studies.symbols.tasks import judge as judge_tasks
from bindscope.studies.symbols.width import judge as judge_width
from bindscope.studies.symbols.width import measure as measure_directions

_MEASURED = (measure_curves, measure_directions, measure_pretrained, measure_language, measure_kernel)
_JUDGED = (judge_efficiency, judge_tasks, judge_width, judge_pretrained, judge_language, judge_kernel)

RESULTS = tuple(result for part in _MEASURED for result in part.RESULTS)
_CLAIMS = [claim for part in _JUDGED for claim in part.CLAIMS]
STUDY = Study(
    family="templates",
    title="Reasoning with abstract symbols",
    claims=tuple(sorted(_CLAIMS, key=lambda claim: int(claim.id.removeprefix("AS")))),
    results=RESULTS,
)
