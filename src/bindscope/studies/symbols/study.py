"""The thirteen claims of "When can transformers reason with abstract symbols?" (arXiv 2310.09753) as data."""

from bindscope.studies.framework.claims import Study
from bindscope.studies.symbols.efficiency import gain as measure_gain
from bindscope.studies.symbols.efficiency import judge as judge_efficiency
from bindscope.studies.symbols.efficiency import measure as measure_curves
from bindscope.studies.symbols.evidence import EVIDENCE
from bindscope.studies.symbols.kernel import judge as judge_kernel
from bindscope.studies.symbols.kernel import measure as measure_kernel
from bindscope.studies.symbols.language import judge as judge_language
from bindscope.studies.symbols.language import measure as measure_language
from bindscope.studies.symbols.pretrained import judge as judge_pretrained
from bindscope.studies.symbols.pretrained import measure as measure_pretrained
from bindscope.studies.symbols.published import SOURCE
from bindscope.studies.symbols.tasks import judge as judge_tasks
from bindscope.studies.symbols.width import judge as judge_width
from bindscope.studies.symbols.width import measure as measure_directions

_MEASURED = (measure_curves, measure_gain, measure_directions, measure_pretrained, measure_language, measure_kernel)
_JUDGED = (judge_efficiency, judge_tasks, judge_width, judge_pretrained, judge_language, judge_kernel)

STUDY = Study.of("templates", "Reasoning with abstract symbols", _MEASURED, _JUDGED, EVIDENCE, source=SOURCE)
