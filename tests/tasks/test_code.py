"""Programs as text: what is written is what the tokenizer reads, what is read is what the interpreter answers."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.schema import from_mapping, to_mapping
from bindscope.tasks.binding import (
    BindingTask,
    Program,
    columns_of,
    distractor_positions,
    name_at,
    named_positions,
    programs_of,
    rows_of,
    sample_name_pairs,
    sample_pointer_pairs,
    sample_root_pairs,
    to_digits,
)
from bindscope.tasks.code import FORMS, CodeTask
from tasks.made_code import N_TOKENS, write_tokenizer

forms = st.sampled_from(sorted(FORMS))
seeds = st.integers(0, 2**31)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer")).parent


@given(form=forms, seed=seeds, shots=st.integers(0, 2), lines=st.integers(3, 7))
@settings(max_examples=40, deadline=None)
def test_what_is_written_is_read_back_to_the_interpreters_answer(form: str, seed: int, shots: int, lines: int) -> None:
    task = CodeTask(lines=lines, max_depth=3, form=form, shots=shots, shots_seed=seed)
    batch = task.sample_batch(np.random.default_rng(seed), 4)
    for tokens, row, target in zip(batch.tokens, rows_of(batch), batch.targets[:, 0]):
        program = Program.from_tokens(row)
        text = bytes(tokens.tolist()).decode()
        assert text.rstrip(" ") == task.text_of(program)
        alone = replace(task, shots=0).text_of(program)
        assert text.rstrip(" ").endswith(alone)
        assert task.read(alone) == task.read(program.one_line) == program
        assert chr(target) == str(program.answer)


@given(seed=seeds, form=st.sampled_from(["python", "compact"]))
@settings(max_examples=20, deadline=None)
def test_python_itself_gives_the_answer(seed: int, form: str) -> None:
    task = CodeTask(form=form)
    batch = task.sample_batch(np.random.default_rng(seed), 4)
    for row, digit in zip(rows_of(batch), to_digits(batch, batch.targets[:, 0])):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(task.text_of(Program.from_tokens(row)).removesuffix(">>>"), {})
        assert printed.getvalue().strip() == str(digit)


@pytest.mark.parametrize("form", sorted(FORMS))
@pytest.mark.parametrize("shots", [0, 2])
def test_tokens_and_positions_are_those_of_the_tokenizer(directory: Path, form: str, shots: int) -> None:
    task = CodeTask(lines=5, form=form, shots=shots).with_tokenizer(directory, N_TOKENS + 20)
    assert task.tokens is not None
    assert len(task.vocabulary) == N_TOKENS + 20
    tokenizer = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    batch = task.sample_batch(np.random.default_rng(1), 20)
    columns = columns_of(batch)
    assert batch.tokens.shape[1] == task.n_positions
    assert (np.diff(columns) > 0).all()
    for tokens, row, target in zip(batch.tokens, rows_of(batch), batch.targets[:, 0]):
        program = Program.from_tokens(row)
        text = task.text_of(program, answered=True)
        oracle = tokenizer.encode(text)
        assert oracle.ids == [*tokens, target]
        written = [text[slice(*offsets)].strip() for offsets in oracle.offsets]
        assert written[-1] == str(program.answer)
        for position, sign in enumerate(program.text):
            if name_at(position, program.n_lines).part in ("lhs", "rhs", "query"):
                assert written[columns[position]] == sign
        assert columns[-1] == len(tokens) - 1  # the answer is asked for at the colon's last token


def test_questions_and_pairs_are_those_of_the_binding_task(directory: Path) -> None:
    shape = {"lines": 6, "max_depth": 3}
    plain, code = BindingTask(**shape), CodeTask(**shape).with_tokenizer(directory, N_TOKENS)  # type: ignore[arg-type]
    for sample in (sample_root_pairs, sample_name_pairs):
        expected, pairs = (sample(task, np.random.default_rng(3), 30) for task in (plain, code))
        columns = columns_of(pairs.base)
        assert (rows_of(pairs.base) == expected.base_tokens).all()
        assert (rows_of(pairs.counterfactual) == expected.counterfactual_tokens).all()
        assert (to_digits(pairs.base, pairs.counterfactual_answers) == expected.counterfactual_answers).all()
        assert (pairs.changed_positions == columns[expected.changed_positions]).all()
        for found, known in ((named_positions, named_positions), (distractor_positions, distractor_positions)):
            for name, at in known(expected).items():
                assert (found(pairs)[name] == np.where(at < 0, -1, columns[at])).all()
    pointers = [sample_pointer_pairs(task, np.random.default_rng(3), 10, 2, "rhs 2", 1) for task in (plain, code)]
    assert (rows_of(pointers[1].pairs.base) == pointers[0].pairs.base_tokens).all()
    drawn = code.sample_evaluation(np.random.default_rng(0), 50)["test"]
    assert (programs_of(drawn)[0].depth.max(1) <= 3).all()
    assert drawn.labels.keys() == plain.sample_evaluation(np.random.default_rng(0), 50)["test"].labels.keys()


def test_settings_are_the_whole_of_the_task(directory: Path, tmp_path: Path) -> None:
    task = CodeTask(shots=1, form="let").with_tokenizer(directory, N_TOKENS)
    again = from_mapping(CodeTask, json.loads(json.dumps(to_mapping(task))))
    assert again == task
    first, second = (each.sample_batch(np.random.default_rng(0), 8).tokens for each in (task, again))
    assert (first == second).all()


def test_words_of_ones_own_are_tokens_or_refused_by_name(directory: Path) -> None:
    words = {"names": ("print", "value", "show"), "n_variables": 3, "lines": 3, "max_depth": 2}
    with pytest.raises(BindscopeError, match=r"between them: the names value\. Choose others"):
        CodeTask(**words).with_tokenizer(directory, N_TOKENS)  # type: ignore[arg-type]
    with pytest.raises(BindscopeError, match=r"the names foo; the values 12|the values 12; the names foo"):
        CodeTask(
            names=("a", "b", "foo"), values=("1", "12"), n_variables=3, n_constants=2, lines=3, max_depth=2
        ).with_tokenizer(directory, N_TOKENS)
    with pytest.raises(BindscopeError, match=r"gives 3 words where task\.n_variables is 26"):
        CodeTask(names=("a", "b", "c"))


def test_a_tokenizer_that_splits_digits_off_their_blanks_suits_the_compact_form(tmp_path: Path) -> None:
    path = write_tokenizer(tmp_path)
    settings = json.loads(path.read_text())
    digits_alone = {"type": "Split", "pattern": {"Regex": r"\d"}, "behavior": "Isolated", "invert": False}
    settings["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits_alone, settings["pre_tokenizer"]]}
    path.write_text(json.dumps(settings))
    with pytest.raises(BindscopeError, match=r"' = '.*another form"):
        CodeTask().with_tokenizer(tmp_path, N_TOKENS)
    task = CodeTask(form="compact", lines=3).with_tokenizer(tmp_path, N_TOKENS)
    assert task.show_tokens(task.read("a=5;b=a;c=1;#b:"))[-1] == "␣"  # the blank before the answer is the prompt's last


def test_a_bad_tokenizer_gets_one_sentence(directory: Path, tmp_path: Path) -> None:
    with pytest.raises(BindscopeError, match=r"has no tokenizer.json; copy that of the model there"):
        CodeTask().with_tokenizer(tmp_path, 500)
    with pytest.raises(BindscopeError, match=r"has \d+ tokens and the model 100"):
        CodeTask().with_tokenizer(directory, 100)
    assert CodeTask().with_tokenizer(directory, N_TOKENS).table  # no more and no fewer than the model has
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BindscopeError, match="cannot be read as a tokenizer"):
        CodeTask().with_tokenizer(tmp_path, 500)


def test_settings_that_cannot_be_written_are_refused() -> None:
    with pytest.raises(
        BindscopeError, match=r"no surface form 'pyton'; choose one of python, .* Did you mean 'python'"
    ):
        CodeTask(form="pyton")
    with pytest.raises(BindscopeError, match="asks one question"):
        CodeTask(queries=2)
    with pytest.raises(BindscopeError, match=r"task.shots: must lie between"):
        CodeTask(shots=-1)
    with pytest.raises(BindscopeError, match="different words"):
        CodeTask(names=("a", "a"), n_variables=2, lines=2)
    with pytest.raises(BindscopeError, match="among the values too"):
        CodeTask(names=("a", "5"), n_variables=2, lines=2, max_depth=2)
    with pytest.raises(BindscopeError, match="'q' is neither a name nor a value"):
        CodeTask(names=("a", "b"), n_variables=2, lines=2, max_depth=2).read("a = 5\nq = a\nprint(q)")


def test_probabilities_are_shown_for_values_words_and_all_others_together(directory: Path) -> None:
    task = CodeTask().with_tokenizer(directory, N_TOKENS)
    fractions = np.random.default_rng(0).dirichlet(np.ones(N_TOKENS), size=3)
    shown, names = task.gather_outputs(fractions), task.show_outputs(N_TOKENS)
    assert shown.shape == (3, len(names))
    assert len(set(names)) == len(names)
    assert np.allclose(shown.sum(1), 1)
    assert names[:10] == list("0123456789")
    assert names[-1] == "other"
    assert np.allclose(shown[:, 5], fractions[:, task.table.answers[5]])


def test_what_a_tokenizer_puts_before_every_text_is_read_first(tmp_path: Path) -> None:
    path = write_tokenizer(tmp_path)
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    begin = tokenizer.token_to_id("<|endoftext|>")
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<|endoftext|> $A <|endoftext|>", special_tokens=[("<|endoftext|>", begin)]
    )
    tokenizer.save(str(path))
    task = CodeTask(lines=4, shots=1).with_tokenizer(tmp_path, N_TOKENS)
    batch = task.sample_batch(np.random.default_rng(0), 3)
    assert (batch.tokens[:, 0] == begin).all()
    assert (batch.tokens == begin).sum() == 3  # what it puts after a text is left out
    assert (rows_of(batch)[:, 0] >= 10).all()
