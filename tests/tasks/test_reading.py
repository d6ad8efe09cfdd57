"""What a person types is read by one rule for each family, and refused in one sentence."""

from __future__ import annotations

import pytest

import bindscope
from bindscope.errors import BindscopeError
from bindscope.tasks.assign_add import AssignAddTask
from bindscope.tasks.binding import BindingTask, read_pair
from bindscope.tasks.templates import TemplateTask
from bindscope.tasks.templates.reading import read_labels, read_templates
from bindscope.tasks.text import TextTask

PROGRAM, OTHER = "a=5;b=a;#b:", "a=8;b=a;#b:"


@pytest.mark.parametrize("text", ["a=5\nb=a\n#b:", "a=5;b=a;#b:", "a=5\\nb=a\\n#b:", "a=5;b=a\\n#b:\n"])
def test_lines_of_a_program_end_in_three_ways(text: str) -> None:
    assert BindingTask().read(text).one_line == PROGRAM


def test_a_program_is_as_long_as_the_model_reads() -> None:
    task = BindingTask(lines=2, max_depth=2)
    longer = "a=5;b=a;c=b;#c:"
    assert task.read(longer, n_positions=15).n_lines == 3
    with pytest.raises(BindscopeError, match="3 lines and 15 tokens; the model reads 11: leave out lines"):
        task.read(longer)
    with pytest.raises(BindscopeError, match="the model reads 11"):
        read_pair(task, PROGRAM, longer)


def test_a_pair_has_two_programs_of_one_length_and_two_answers() -> None:
    base, counterfactual, pairs = read_pair(BindingTask(), PROGRAM, OTHER)
    assert (base.answer, counterfactual.answer) == (5, 8)
    assert pairs.base_answers.tolist() + pairs.counterfactual_answers.tolist() == [5, 8]
    for other, sentence in [
        (PROGRAM, "the same program"),
        ("a=8;b=a;c=1;#b:", "2 and 3 lines"),
        ("a=5;c=a;#c:", "both programs have the answer 5"),
        ("a=5;c=q;#c:", "line 2: 'q' is used before it is assigned"),
    ]:
        with pytest.raises(BindscopeError, match=sentence):
            read_pair(BindingTask(), PROGRAM, other)


@pytest.mark.parametrize(("task", "text", "answer"), [
    (BindingTask(), PROGRAM, 5),
    (AssignAddTask(), "c=1 b=17 | b+19", 36),
    (TemplateTask(name="aba-abb"), "train_6 train_3 train_6", 1),
])  # fmt: skip
def test_a_typed_example_is_a_batch_of_one_with_its_true_answer(task, text: str, answer: int) -> None:
    batch = task.to_batch(task.read(text))
    assert batch.tokens.shape[0] == 1
    assert batch.targets.item() == answer


def test_text_has_nothing_to_answer() -> None:
    with pytest.raises(BindscopeError, match="no answers to typed examples"):
        TextTask.read(None, "once upon a time")  # type: ignore[arg-type]


def test_templates_are_typed_or_named() -> None:
    assert read_templates(["AA", "AB"], [1, -1]) == (("AA", "AB"), (1, -1))
    assert read_templates(["aba-abb"]) == (("ABA", "ABB"), (1.0, -1.0))
    assert read_templates(["aba-abb"], [2, 3])[1] == (2, 3)
    assert read_templates(["random"])[0]
    assert read_labels("1, -1") == (1.0, -1.0)
    assert read_labels("C,D") == ("C", "D")
    for texts, sentence in [([], "give templates"), (["aba-abc"], "neither a task nor a template .* 'aba-abb'")]:
        with pytest.raises(BindscopeError, match=sentence):
            read_templates(texts)


def test_a_notebook_refuses_a_pair_as_the_command_does() -> None:
    run = bindscope.open_run("binding-laptop")
    long = ";".join(f"{letter}=1" for letter in "abcdefghijklmnopq") + ";#a:"
    for ask in (run.patch, run.swap):
        with pytest.raises(BindscopeError, match="both programs have the answer 5"):
            ask(PROGRAM, "a=5;c=a;#c:")
        with pytest.raises(BindscopeError, match="17 lines and 71 tokens; the model reads 67"):
            ask(long, long)
