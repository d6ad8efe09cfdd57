"""Activation patching (interchange intervention) of a typed pair or of drawn pairs: a grid, chosen sites, or a path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from bindscope.errors import BindscopeError, suggest_nearest
from bindscope.interventions.metrics import METRICS
from bindscope.questions.fields import one_step, other_step, some_sites, some_steps
from bindscope.questions.opened import Opened, Step, Steps
from bindscope.questions.pairs import Drawn, PairQuestion
from bindscope.questions.program import Progress
from bindscope.questions.question import BadValue, ask, to_texts

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.interventions.attribution import Agreement
    from bindscope.interventions.contrast import Contrast
    from bindscope.interventions.own_metric import OwnMetric
    from bindscope.measures.binding.patching import Patch as Request
    from bindscope.measures.binding.patching_live import GridPart
    from bindscope.model.transformer import Transformer

Grid = Literal["chain", "residual", "heads", "mlps"]
LARGE = 3_000_000  # parameters from which the chain's columns of a streamed grid come first


def to_metric(value: Any) -> Any:
    """The name of a metric that comes with Bindscope; or one's own, from its location or as the function itself."""
    if not isinstance(value, str):
        from bindscope.interventions.own_metric import own_metric

        return own_metric(value)
    if value in METRICS:
        return value
    if value.endswith(".py"):
        raise BadValue("metric", f"say which function in {value} is the metric, as in {value}:f.")
    if ":" not in value:
        raise BadValue("metric", f"there is no metric '{value}'.{suggest_nearest(value, METRICS)}")
    from bindscope.interventions.own_metric import load_metric

    return load_metric(value)


@dataclass(frozen=True, kw_only=True)
class MeasuredQuestion(PairQuestion):
    """A question whose answer is measured by metrics, one of them shown.

    No request has the field ``metric``: a server never loads a file that somebody names.
    """

    usual_metric: ClassVar[str] = "success"

    metric: Any = ask(  # a name, or an OwnMetric
        None, convert=to_metric, live={"never": True},
        help="What to show: success (the source's answer is on top), kept, logit_difference, new_logit or kl, or a "
        "function of your own, PATH.py:NAME (docs/metrics.md). Usually success; logit_difference of paths and estimates.",
    )  # fmt: skip

    @property
    def own_metric(self) -> OwnMetric | None:
        """The metric, if it is one's own."""
        return None if isinstance(self.metric, str) else self.metric

    @property
    def shown(self) -> str:
        """The metric that is shown, as it is called in the answer."""
        own = self.own_metric
        return own.name if own is not None else self.metric or self.usual_metric

    @property
    def measured(self) -> dict[str, str]:
        """What an answer says of its metric."""
        location = "" if self.own_metric is None else self.own_metric.location
        return {"metric": self.shown, **({"metric_from": location} if location else {})}

    def values(self) -> dict[str, Any]:
        own = self.own_metric
        if own is not None and not own.location:
            raise BadValue("metric", f"'{own.name}' stands in no file; put it into one to write the question down.")
        return super().values() | ({} if own is None else {"metric": own.location})


@dataclass(frozen=True, kw_only=True)
class Patch(MeasuredQuestion):
    """What becomes of the answer when activations are those of another program?"""

    command_name, method = "patch", "patch"

    grid: Grid | None = ask(
        None, live={"type": Literal["residual", "heads", "mlps"], "default": "residual"},
        help="Cells to change one after another: the residual stream at the named positions of the chain, or at all "
        "positions (residual), each head's whole output, or each MLP's.",
    )  # fmt: skip
    sites: tuple[str, ...] = some_sites(
        flag="--site", live={"min_length": 1, "required": True},
        help='Change these sites together instead of a grid: L3.resid_pre@14, L2.H1 (a head\'s whole output), "L2.H1@rhs 2" '
        "(at a named position), L1.H0.q, L4.mlp_out. Give it once per site.",
    )  # fmt: skip
    neurons: tuple[int, ...] = ask((), flag="--neuron", convert=tuple, help="Take only these coordinates of the sites.")
    steps: Steps = some_steps()
    source_step: Step | None = other_step(flag="--from-step", help="Take the activations from this checkpoint instead.")
    approximate: bool = ask(
        False, help="Estimate the grid by its gradient, and say how near that comes to the exact one."
    )
    tolerance: float = ask(
        0.0, ge=0.0, le=1.0, live={"never": True},
        help="Of a grid of the residual stream: leave out, position by position, changes that the answer's logits would feel "
        "less of, which is faster in wide models, and say how far a sample of its cells is off. 0 is exact.",
    )  # fmt: skip

    def check(self) -> None:
        super().check()
        object.__setattr__(self, "grid", None if self.sites else self.grid or "residual")
        if self.neurons and not self.sites:
            raise BadValue("neurons", "name the sites whose neurons these are, such as --site L2.post.")
        if self.approximate and (self.sites or self.source_step is not None or self.several):
            raise BadValue("approximate", "works on grids of one checkpoint; leave out --site, --steps, --from-step.")
        if self.tolerance and (self.approximate or self.grid not in ("chain", "residual")):
            raise BadValue("tolerance", "it is for computed grids of the residual stream: --grid chain or residual.")
        if self.approximate and self.shown not in ("logit_difference", "new_logit"):
            raise BadValue("approximate", f"a gradient estimates logit_difference and new_logit, not {self.shown}.")

    @property
    def shown(self) -> str:
        return "logit_difference" if self.approximate and self.metric is None else super().shown

    @property
    def several(self) -> bool:
        """Whether it is asked of several checkpoints."""
        return self.steps == "all" or isinstance(self.steps, tuple)

    @property
    def request(self) -> Request:
        """What is changed, as the study says it."""
        from bindscope.measures.binding.patching import Patch as Request

        return Request(
            self.grid or "residual",
            self.sites,
            self.neurons,
            self.direction,
            self.approximate,
            self.own_metric,
            self.tolerance,
        )

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """Every outcome over (step, cell …, pair)."""
        from bindscope.measures.binding.patching import patch_steps

        drawn, steps = self.find_pairs(opened), opened.find_steps(self.steps)
        source = None if self.source_step is None else opened.find_step(self.source_step)
        dataset = patch_steps(
            opened.load, steps, drawn.pairs, self.request, source_step=source, on_progress=on_progress
        )
        return dataset.assign_attrs(run=opened.name, pairs=drawn.note, **self.measured)

    def compare(self, opened: Opened, estimate: xr.Dataset, metric: str) -> Agreement:
        """How near an approximate answer comes to the exact grid."""
        from bindscope.interventions.attribution import compare_with_exact
        from bindscope.measures.binding.patching import patch_model

        (step,) = opened.find_steps(self.steps)
        request = replace(self, approximate=False).request
        exact = patch_model(opened.load(step), self.find_pairs(opened).pairs, request)
        return compare_with_exact(estimate.isel(step=0), exact, metric)

    def distributions(self, opened: Opened) -> xr.Dataset:
        """Of a typed pair: distributions of base, source and patched run (step, condition, output), every metric (step)."""
        from bindscope.measures.binding.patching import count_columns
        from bindscope.measures.binding.patching_live import patch_distributions
        from bindscope.tasks.binding import columns_of, named_positions

        drawn, steps = self.find_pairs(opened), opened.find_steps(self.steps)
        contrast, positions = self._contrast(drawn), named_positions(drawn.pairs)
        source = None if self.source_step is None else opened.find_step(self.source_step)
        sites = count_columns(self.sites, columns_of(drawn.pairs.base))
        dataset = patch_distributions(opened.load, steps, contrast, sites, positions, source)
        shown = opened.task.gather_outputs(dataset.probability.values)  # [step, condition, output]
        names = opened.task.show_outputs(dataset.sizes["output"])
        dataset = dataset.drop_vars("probability").assign(
            probability=(("step", "condition", "output"), shown, {"units": "fraction"})
        )
        dataset = dataset.assign_coords(output=names)
        return dataset.assign_attrs({**_answers(drawn, self.direction), "sites": " ".join(self.sites)})

    def empty(self, opened: Opened) -> xr.Dataset:
        """The grid of a typed pair that ``parts`` fill, all cells missing."""
        from bindscope.measures.binding.patching_live import empty_grid
        from bindscope.tasks.binding import columns_of

        drawn = self.find_pairs(opened)
        columns = columns_of(drawn.pairs.base)
        dataset = empty_grid(self._model(opened), self._contrast(drawn), self.grid, len(columns))  # type: ignore[arg-type]
        if self.grid == "residual":
            base = self.program if self.direction == "noising" else self.counterfactual
            tokens = opened.task.show_tokens(opened.task.read(base, opened.n_positions))
            dataset = dataset.assign_coords(token=("position", tokens))
        return dataset.assign_attrs(_answers(drawn, self.direction))

    def parts(self, opened: Opened, n_workers: int = 1) -> Iterator[GridPart]:
        """The grid of a typed pair, part by part as it is made; of a large model the chain's columns first.

        ``n_workers`` threads compute a residual grid.
        """
        from bindscope.measures.binding.patching_live import stream_grid
        from bindscope.tasks.binding import columns_of

        drawn, model = self.find_pairs(opened), self._model(opened)
        source = None if self.source_step is None else opened.model(self.source_step)
        pairs, first = drawn.pairs, set[int]()
        if model.config.n_parameters >= LARGE:
            chain = pairs.chain_positions[0]
            first = {*chain[chain >= 0].tolist(), pairs.query_position, pairs.colon_position}
        columns = columns_of(pairs.base)
        contrast = self._contrast(drawn)
        yield from stream_grid(model, contrast, self.grid, source, first, columns, n_workers)  # type: ignore[arg-type]

    @property
    def note(self) -> str:
        """Where activations come from, if not from the checkpoint itself."""
        return "" if self.source_step is None else f"activations taken from step {self.source_step:,}"

    def _model(self, opened: Opened) -> Transformer:
        (step,) = opened.find_steps(self.steps)
        return opened.load(step)

    def _contrast(self, drawn: Drawn) -> Contrast:
        from bindscope.interventions.contrast import contrast_pairs

        return contrast_pairs(drawn.pairs, self.direction)


@dataclass(frozen=True, kw_only=True)
class Path(MeasuredQuestion):
    """What does one part of the model tell another directly (path patching)?"""

    command_name, method = "path", "path"
    usual_metric: ClassVar[str] = "logit_difference"

    sender: str = ask(
        "",
        help='The site that speaks: L1.H0 (a head\'s whole output), L2.mlp_out, "L2.H1@rhs 2" (at a named position).',
    )
    receivers: tuple[str, ...] = ask(
        (), flag="--receiver", convert=to_texts,
        help="The site that hears: a head's input (L3.H1.q, .k or .v), L3.pre, logits, … Give it once per receiver; each "
        "is measured alone.",
    )  # fmt: skip
    step: Step = one_step()

    def check(self) -> None:
        super().check()
        if not self.sender or not self.receivers:
            raise BindscopeError("name both ends: --sender L1.H0 --receiver L3.H1.k, or --receiver logits.")

    def answer(self, opened: Opened) -> xr.Dataset:
        """Every metric over (receiver, pair)."""
        import xarray as xr

        from bindscope.interventions.contrast import contrast_pairs
        from bindscope.interventions.paths import patch_path
        from bindscope.measures.binding.patching import count_columns, locate_sites
        from bindscope.tasks.binding import columns_of, named_positions

        drawn, step = self.find_pairs(opened), opened.find_step(self.step)
        columns = columns_of(drawn.pairs.base)
        contrast, positions = contrast_pairs(drawn.pairs, self.direction), named_positions(drawn.pairs)
        model = opened.load(step)
        (speaks,), sent = locate_sites(count_columns([self.sender], columns), positions)
        parts: list[Any] = []
        for text in self.receivers:
            (hears,), received = locate_sites(count_columns([text], columns), positions)
            end, ends = "final" if hears == "logits" else hears, received.get(hears)
            part = patch_path(
                model, contrast, speaks, end,
                sender_positions=sent.get(speaks), receiver_positions=ends, metric=self.own_metric,
            )  # fmt: skip
            parts.append(part)
        dataset = xr.concat(parts, dim="receiver", combine_attrs="drop_conflicts")
        dataset = dataset.assign_coords(receiver=list(self.receivers))
        frozen = "; ".join(f"{name}: {part.attrs['frozen']}" for name, part in zip(self.receivers, parts))
        return dataset.assign_attrs(frozen=frozen, run=opened.name, step=step, pairs=drawn.note, **self.measured)


def _answers(drawn: Drawn, direction: str) -> dict[str, str]:
    """The true answers of a typed pair, as digits."""
    import numpy as np

    from bindscope.tasks.binding import to_digits

    pairs = drawn.pairs
    base, source = to_digits(pairs.base, np.array([pairs.base_answers[0], pairs.counterfactual_answers[0]])).tolist()
    base, source = (base, source) if direction == "noising" else (source, base)
    return {"base_answer": str(base), "source_answer": str(source)}
