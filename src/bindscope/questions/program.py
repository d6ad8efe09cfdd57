"""Questions about one program: what a model answers, layer by layer, where heads attend to, and without some parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from bindscope.errors import BindscopeError, name_nearest
from bindscope.families import family_of
from bindscope.questions.fields import a_program, one_step, some_sites, some_steps
from bindscope.questions.opened import Opened, Step, Steps
from bindscope.questions.pairs import DrawnQuestion
from bindscope.questions.question import RunQuestion, ask, to_texts

if TYPE_CHECKING:
    import xarray as xr

Progress = Callable[[int, int], None]
OneByOne = ("heads", "mlps")  # what can be ablated part after part


@dataclass(frozen=True, kw_only=True)
class Predict(RunQuestion):
    """What does the model answer at these checkpoints?"""

    command_name, method = "predict", "predict"

    program: str = a_program(
        help="The program, or another example of the run's task. Lines end with a line break, the characters \\n, or ';'."
    )
    steps: Steps = some_steps()

    def answer(self, opened: Opened) -> xr.Dataset:
        """``probability`` over (step, output), or ``value`` over (step) where the answer is a number."""
        from bindscope.measures.predict import predict_example

        task: Any = opened.task
        example = task.read(self.program, opened.n_positions)
        models = ((step, opened.load(step)) for step in opened.find_steps(self.steps))
        family = family_of(task)
        found = family.predict(task, models, example)
        return predict_example(task, models, example, family.render_tokens) if found is None else found


@dataclass(frozen=True, kw_only=True)
class Lens(RunQuestion):
    """What would each layer answer at each position?"""

    command_name, method, runs_on = "lens", "lens", "programs"

    program: str = a_program(help="The program that is read, lines separated by ';'.", flag="--program")
    step: Step = one_step(flag="--steps", shown=True)

    def answer(self, opened: Opened) -> xr.Dataset:
        """Readings of the residual stream over (layer, position)."""
        from bindscope.measures.lens_map import map_lens

        task = opened.task_of(self.runs_on)
        return map_lens(opened.model(self.step), task.read(self.program, opened.n_positions), task)


@dataclass(frozen=True, kw_only=True)
class Attention(RunQuestion):
    """Where does every head attend to, perhaps without some parts?"""

    command_name, method, runs_on = "attention", "attention", "programs"

    program: str = a_program(help="The program, lines separated by ';'; of a run on modular addition, the sum.")
    step: Step = one_step()
    ablate: tuple[str, ...] = some_sites(help="Ablate these sites first: L1.H2, L3.mlp_out. Give it once per site.")
    kind: Literal["zero", "mean"] = ask(
        "zero", help="What stands there instead: nothing (zero), or the mean over other programs of this length."
    )

    def answer(self, opened: Opened) -> xr.Dataset:
        """``pattern`` over (layer, head, query, key)."""
        from bindscope.measures.binding.one_program import ablate_program, attention_dataset

        task = opened.task_of(self.runs_on)
        program = task.read(self.program, opened.n_positions)
        found = ablate_program(opened.model(self.step), task, program, self.ablate, self.kind)
        return attention_dataset(found.patterns, task, program)

    @property
    def note(self) -> str:
        """What was taken away."""
        return note_ablation(self.ablate, self.kind)


@dataclass(frozen=True, kw_only=True)
class Ablate(DrawnQuestion):
    """What does the model answer without these parts?"""

    command_name, method = "ablate", "ablate"
    runs_on: ClassVar[str] = "programs"

    program: str | None = a_program(
        None, help="Ask this program, lines separated by ';', before and after. Without one, programs are drawn."
    )
    sites: tuple[str, ...] = some_sites(
        flag="--of",
        help="Sites, all together: L1.H2, L3.mlp_out, \"L2.H0@rhs 2\". Give it once per site. Of drawn programs also 'heads' "
        "or 'mlps': each alone, one after another; heads when nothing else is asked.",
    )
    kind: Literal["zero", "mean", "resample"] = ask(
        "zero", shown=True, live={"type": Literal["zero", "mean"]},
        help="What stands there instead: the mean over the programs (or over others of a typed one's length), nothing "
        "(zero), or another program's (resample).",
    )  # fmt: skip
    cut: tuple[str, ...] = ask(
        (), convert=to_texts,
        help="Knock an attention edge out instead, from the query position to the key position: \"colon>query\". Several "
        "are knocked out together.",
    )  # fmt: skip
    layer: int | None = ask(None, help="Knock the edges out in this layer only.")
    head: int | None = ask(None, help="Knock the edges out in this head of each layer only.")
    step: Step = one_step()
    n: int = ask(400, help="How many programs to draw, balanced over depths.", ge=1, live={"le": 400, "default": 96})
    depth: int | None = ask(None, help="Draw programs of this depth only.")
    first_root_line: int = ask(
        1, help="The first line that may hold the queried chain's constant.", live={"ge": 1, "le": 99}
    )

    def check(self) -> None:
        if self.program is not None and (self.cut or self.kind == "resample"):
            raise BindscopeError(
                "a typed program: its edges stay, and it has no others to resample from; draw programs."
            )
        if self.sites and self.cut:
            raise BindscopeError("--of and --cut: choose one of the two.")
        if (self.layer is not None or self.head is not None) and not self.cut:
            raise BindscopeError("--layer and --head: say which edge to cut there, such as --cut 'colon>query'.")
        if len(self.sites) > 1 and set(OneByOne) & set(self.sites):
            raise BindscopeError("--of: 'heads' and 'mlps' go one by one; ask for them alone, or name sites.")
        if len(self.sites) == 1 and (near := name_nearest(self.sites[0], OneByOne)) and self.sites[0] not in OneByOne:
            raise BindscopeError(f"--of {self.sites[0]}: not a site.{near}")

    def answer(self, opened: Opened, on_progress: Progress | None = None) -> xr.Dataset:
        """Of a typed program ``probability`` over (condition: before, after; output); else answers over (…, example)."""
        task = opened.task_of(self.runs_on)
        if self.program is not None:
            return self._answer_program(opened, task, self.program)
        drawn = self.draw(task)
        step = opened.find_step(self.step)
        dataset = self._answer_drawn(opened.load(step), drawn.pairs, on_progress)
        return dataset.assign_attrs(run=opened.name, step=step, programs=drawn.note.replace("pairs", "programs"))

    @property
    def note(self) -> str:
        """What was taken away from a typed program."""
        return note_ablation(self.sites, self.kind)

    def _answer_program(self, opened: Opened, task: Any, text: str) -> xr.Dataset:
        import numpy as np
        import xarray as xr

        from bindscope.measures.binding.one_program import ablate_program

        program = task.read(text, opened.n_positions)
        found = ablate_program(opened.model(self.step), task, program, self.sites, self.kind)
        fractions = task.gather_outputs(np.stack([found.before, found.after]))
        return xr.Dataset(
            {"probability": (("condition", "output"), fractions, {"units": "fraction"})},
            {"condition": ["before", "after"], "output": task.show_outputs(len(found.before))},
            {"answer": str(program.answer), "sites": " ".join(self.sites)},
        )

    def _answer_drawn(self, model: Any, pairs: Any, on_progress: Progress | None) -> xr.Dataset:
        import numpy as np

        from bindscope.interventions.ablation import ablate_heads, ablate_mlps, ablate_together
        from bindscope.interventions.knockout import knock_out_edges, name_edge
        from bindscope.measures.binding.patching import count_columns, locate_sites
        from bindscope.tasks.binding import columns_of, named_positions

        named, rng = named_positions(pairs), np.random.default_rng([self.seed, 2])
        if self.cut:
            edges = [name_edge(text, named, self.layer, self.head) for text in self.cut]
            return knock_out_edges(model, pairs.base, edges)
        if self.sites in ((), ("heads",)):
            return ablate_heads(model, pairs.base, kind=self.kind, rng=rng, on_progress=on_progress)
        if self.sites == ("mlps",):
            return ablate_mlps(model, pairs.base, kind=self.kind, rng=rng, on_progress=on_progress)
        sites, positions = locate_sites(count_columns(self.sites, columns_of(pairs.base)), named)
        return ablate_together(model, pairs.base, sites, self.kind, positions=positions, rng=rng)


def note_ablation(sites: tuple[str, ...], kind: str) -> str:
    """What was taken away from one program, and what stands there instead."""
    from bindscope.measures.binding.one_program import N_REFERENCE

    if not sites:
        return ""
    means = f" (means of {N_REFERENCE} other programs of this length, seed 0)" if kind == "mean" else ""
    return f"without {', '.join(sites)}: {kind}{means}"
