"""Questions about templates that a person types, or of a task by its name: no run is needed for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bindscope.questions.fields import a_seed
from bindscope.questions.question import Question, ask, to_texts

if TYPE_CHECKING:
    import xarray as xr

    from bindscope.tasks.templates.checks import TemplateSample
    from bindscope.theory.kernel import KernelSettings
    from bindscope.theory.kernel_learnable import KernelReport

MOST_TEMPLATES, MOST_TEXT = 8, 120  # templates that a server reads, and characters of each
LIVE_TEMPLATES = {
    "type": list[str], "item": {"min_length": 1, "max_length": MOST_TEXT}, "min_length": 1, "max_length": MOST_TEMPLATES,
    "required": True,
}  # fmt: skip
FINITE = {"allow_inf_nan": False}
LIVE_LABELS = {"type": list[float], "item": {**FINITE, "ge": -1e6, "le": 1e6}, "max_length": MOST_TEMPLATES}
SETTINGS = ("beta", "gamma", "activation", "b1", "b2", "cls", "points", "inner_points", "randomisations", "seed")


def to_labels(value: Any) -> tuple[Any, ...]:
    """Labels as they were typed, ``1,-1``, or as a list."""
    if not isinstance(value, str):
        return tuple(value)
    from bindscope.tasks.templates.reading import read_labels

    return read_labels(value)


def some_labels(help: str) -> Any:
    return ask(None, convert=to_labels, joined=True, live=LIVE_LABELS, help=help)


@dataclass(frozen=True, kw_only=True)
class Kernel(Question):
    """Can the transformer's kernel learn these templates for unseen symbols?"""

    command_name, method = "kernel", "kernel"

    templates: tuple[str, ...] = ask(
        positional=True, convert=to_texts, live=LIVE_TEMPLATES,
        help="Templates (capital letters are wildcards), or the name of a task such as aba-abb.",
    )  # fmt: skip
    labels: tuple[float, ...] | None = some_labels("One number for each template, separated by commas.")
    beta: float = ask(3.0, help="How sharply attention is focused.", live={**FINITE, "ge": 0, "le": 10})
    gamma: float = ask(1.0, help="How large positions are beside symbols.", live={**FINITE, "ge": 0, "le": 3})
    activation: str = ask(
        "cos", live={"type": Literal["cos", "relu", "gelu", "tanh", "identity"]},
        help="What the MLP computes: cos, relu, gelu, tanh or identity.",
    )  # fmt: skip
    b1: float = ask(1.0, help="The factor in cos(b1·t + b2).")
    b2: float = ask(0.5, help="The shift in cos(b1·t + b2).")
    cls: bool = ask(True, help="Whether sequences end with a CLS token.")
    points: int = ask(
        512, help="Points over what two sequences share; more make the error smaller.", live={"ge": 16, "le": 1024}
    )
    inner_points: int = ask(16, help="Points over the wildcards of each sequence, for every one of those.")
    randomisations: int = ask(16, help="Random shifts of the points, from which errors are estimated.")
    seed: int = a_seed(help="The seed that moves the points.")

    @property
    def settings(self) -> KernelSettings:
        """The random model and how finely its kernel is integrated."""
        from bindscope.theory.kernel import KernelSettings

        return KernelSettings(**{name: getattr(self, name) for name in SETTINGS})

    def read(self) -> tuple[tuple[str, ...], tuple[Any, ...] | None]:
        """The templates and labels that are meant."""
        from bindscope.tasks.templates.reading import read_templates

        return read_templates(self.templates, self.labels)

    def report(self) -> KernelReport:
        """N and the verdict on it."""
        from bindscope.theory.kernel_learnable import learnable

        return learnable(*self.read(), self.settings)

    def answer(self) -> xr.Dataset:
        """N over (template, other) with errors, eigenvalues with intervals, and the verdict."""
        return self.report().to_dataset()


@dataclass(frozen=True, kw_only=True)
class TemplateSamples(Question):
    """Sequences of these templates."""

    command_name, method = "templates sample", "sequences"

    templates: tuple[str, ...] = ask(positional=True, convert=to_texts, live=LIVE_TEMPLATES, help="The templates.")
    n: int = ask(5, help="How many sequences to draw of each template.", live={"ge": 1, "le": 50})
    seed: int = a_seed()

    def draw(self) -> list[tuple[str, TemplateSample]]:
        """Each template with a sequence of it, one template after another."""
        import numpy as np

        from bindscope.tasks.templates.checks import parse, sample_sequences

        rng = np.random.default_rng(self.seed)
        parsed = [parse(text) for text in self.templates]
        return [(str(template), sample) for template in parsed for sample in sample_sequences(template, self.n, rng)]

    def answer(self) -> xr.Dataset:
        """Over (sample) each sequence with its substitution; over (problem) what is wrong with the templates as a task."""
        import xarray as xr

        samples = self.draw()
        columns = {
            "template": [template for template, _ in samples],
            "sequence": [" ".join(sample.sequence) for _, sample in samples],
            "substitution": [describe_substitution(sample) for _, sample in samples],
        }
        problems = TemplateCheck(templates=self.templates).answer()
        return xr.Dataset({name: ("sample", values) for name, values in columns.items()}).merge(problems)


@dataclass(frozen=True, kw_only=True)
class TemplateCheck(Question):
    """Are these templates a task?"""

    command_name, method = "templates check", "check"

    templates: tuple[str, ...] = ask(positional=True, convert=to_texts, live=LIVE_TEMPLATES, help="The templates.")
    labels: tuple[Any, ...] | None = some_labels(
        "Labels to check too, separated by commas: numbers, or tokens of the templates."
    )

    def answer(self) -> xr.Dataset:
        """``problem_text`` over (problem): one sentence for each thing that is wrong, none if all is well."""
        import numpy as np
        import xarray as xr

        from bindscope.tasks.templates.checks import find_problems

        problems = find_problems(self.templates, self.labels)
        return xr.Dataset({"problem_text": ("problem", np.array(problems, dtype=object))})


def describe_substitution(sample: TemplateSample) -> str:
    """``A = q, B = v``."""
    return ", ".join(f"{wildcard} = {symbol}" for wildcard, symbol in sample.substitution.items())
