"""A question that cannot be asked is refused when it is made, in one sentence; one that can is written down one way."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bindscope.errors import BindscopeError
from bindscope.questions.opened import Opened
from bindscope.questions.patch import Patch
from bindscope.questions.program import Ablate, Predict
from bindscope.questions.question import Question, to_steps
from bindscope.questions.render import literal_of, text_of, write_command, write_python
from bindscope.questions.sums import Sum
from bindscope.questions.transplants import Transplant

PROGRAM, OTHER = "a=5;b=a;#b:", "a=8;b=a;#b:"


@pytest.mark.parametrize(
    ("given", "read"),
    [("last", "last"), ("600", 600), (600, 600), ([600], 600), ("1000,0,last", (0, 1000, "last")), ((5, 3), (5, 3)),
     ("last,first,7,7", ("first", 7, "last")), ("all", "all")],
)  # fmt: skip
def test_steps_are_read_however_they_are_given(given: object, read: object) -> None:
    assert to_steps(given) == read


def test_a_question_is_settled_as_it_is_written_down() -> None:
    opened = Opened.at("binding-laptop")
    typed = Predict(run="binding-laptop", program="a=5\\nb=a\n#b:", steps=opened.run.steps)
    assert typed.settled(opened) == Predict(run="binding-laptop", program=PROGRAM, steps="all")
    sums = Opened.at("assign-add")
    assert Sum(run="assign-add", sequence=" c=1,b=17  |b + 19").settled(sums).sequence == "c=1 b=17 | b+19"


def test_the_answer_depends_on_every_checkpoint_that_is_named() -> None:
    opened = Opened.at("binding-laptop")
    first, *_, last = opened.run.steps
    question = Patch(run="x", program=PROGRAM, counterfactual=OTHER, steps="last", source_step="first")
    assert question.saved_steps(opened) == [last, first]
    assert Ablate(run="x", program=PROGRAM, step=first).saved_steps(opened) == [first]


@pytest.mark.parametrize(
    ("question", "fields", "sentence"),
    [
        (Patch, {"n": 0}, "n: must be at least 1, got 0."),
        (Patch, {"seed": -1}, "seed: must be at least 0, got -1."),
        (Patch, {"program": PROGRAM}, "one program was given; give a second one"),
        (Patch, {"direction": "sideways"}, "direction: must be one of noising, denoising"),
        (Patch, {"approximate": True, "steps": "all"}, "works on grids of one checkpoint"),
        (Patch, {"neurons": (3,)}, "name the sites"),
        (Ablate, {"program": PROGRAM, "kind": "resample"}, "draw programs"),
        (Transplant, {"receiver": 3}, "name both checkpoints"),
        (Predict, {"program": PROGRAM, "steps": ()}, "name at least one checkpoint"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(
    question: type[Question], fields: dict[str, object], sentence: str
) -> None:
    with pytest.raises(BindscopeError, match=sentence):
        question(run="binding-laptop", **fields)  # type: ignore[call-arg]


def test_a_run_of_another_family_is_refused_in_one_sentence() -> None:
    question = Patch(run="assign-add", program=PROGRAM, counterfactual=OTHER)
    with pytest.raises(
        BindscopeError, match=r"^assign-add: its task is assign_add; programs are for runs on binding or code\.$"
    ):
        question.answer(Opened.at("assign-add"))


def test_numbers_are_written_shortest_and_text_as_python_reads_it() -> None:
    for value in (0.1, 3.0, -2.5, 1e-7, 5e-5, 1.5e300, 1e21, 123456789.125, -0.0):
        assert float(text_of(value)) == value
    for text in ("a'b", 'a"b', "a\\nb", "α\t\x01😀"):
        assert eval(literal_of(text)) == text


def test_a_question_is_made_before_anything_heavy_is_imported() -> None:
    code = (
        "import sys; from bindscope.questions.table import QUESTIONS, Patch; Patch(run='x').command();"
        "print([name for name in ('torch', 'numpy', 'xarray', 'pydantic') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"


def test_a_command_that_no_question_stands_behind_is_written_by_the_same_rules():
    written = write_command("behaviour", "my run", step=600, by="root-line", over_training=True, n=None, seed=0)
    assert written == "bindscope behaviour 'my run' --step 600 --by root-line --over-training --seed 0"
    asked = Predict(run="laptop", program="a=5;#a:", steps="all")
    assert write_command("predict", "laptop", "a=5;#a:", steps="all") == asked.command()
    assert write_python('run.predict("a=5;#a:", steps="all")', name="laptop") == asked.python()


def test_a_question_about_a_run_of_somebodys_own_family_says_where_that_is():
    asked = Predict(run="mine", program="a3 | a")
    assert asked.command("my files/recall.py:Recall").endswith(" --family 'my files/recall.py:Recall'")
    assert 'open_run("mine", family="recall.py:Recall")' in asked.python("recall.py:Recall")


def test_no_page_writes_a_command_by_hand():
    """Commands that panels offer come from the renderer; sentences may name one."""
    root = Path(__file__).parents[2]
    pages = [*(root / "src/bindscope/web").rglob("*.py")]
    pages += [path for kind in ("*.ts", "*.svelte") for path in (root / "frontend/src").rglob(kind)]
    made = re.compile(r"""(?:f["']|`|command="|<pre>)bindscope [a-z]""")
    named = re.compile(r"``bindscope|`bindscope [a-z ]+`")  # in comments
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in pages
        if ".test." not in path.name
        for line in path.read_text().splitlines()
        if made.search(named.sub("", line)) and "{" in line
    ]
    assert not found, "\n".join(found)
