"""What the claims of study 3 read, by name. None of it needs a run: experiments were trained, kernels are computed."""

from bindscope.studies.symbols.results import curves, directions, kernel, language, pretrained

_PARTS = (curves, directions, pretrained, language, kernel)
RESULTS = tuple(result for part in _PARTS for result in part.RESULTS)

__all__ = ["RESULTS"]
