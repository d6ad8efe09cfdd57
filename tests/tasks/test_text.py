"""Text as a task: what a source holds, how it is split, and that tokens spell it."""

from __future__ import annotations

import builtins
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bindscope.errors import BindscopeError
from bindscope.schema import from_mapping, to_mapping
from bindscope.tasks.text import LIBRARY, TextTask, load_corpus, sources
from bindscope.tasks.text.sources import read_source
from bindscope.tasks.text.tokenizer import END_OF_TEXT, load_tokenizer, train_tokenizer
from tasks.made_text import made_text, write_text

GENERATOR = np.random.default_rng
TOKENIZER = train_tokenizer([made_text(50)], 280)


@pytest.fixture
def task(tmp_path: Path) -> TextTask:
    return TextTask(source=str(write_text(tmp_path / "made.txt")), vocabulary_size=300, context=16)


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=60))
def test_tokens_spell_any_text_again(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_a_tokenizer_has_no_more_tokens_than_asked_and_uses_what_repeats() -> None:
    tokenizer = train_tokenizer([made_text()], 300)
    assert tokenizer.size == 300
    assert len(tokenizer.encode(" follows")) < len(" follows")
    assert tokenizer.separator == tokenizer.inner.token_to_id(END_OF_TEXT)


def test_long_texts_are_encoded_in_pieces_that_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bindscope.tasks.text.tokenizer.PIECE", 37)
    text = made_text(20) + "x" * 100
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


def test_the_splits_are_the_text_cut_in_three(task: TextTask) -> None:
    corpus = task.corpus
    parts = {name: task.decode(split.tokens).removeprefix(END_OF_TEXT) for name, split in corpus.splits.items()}
    text = made_text()
    assert parts["train"] + parts["validation"] + parts["test"] == text
    assert all(part.endswith("\n") for part in parts.values())
    assert len(parts["test"]) == pytest.approx(0.05 * len(text), abs=40)
    assert corpus.splits["test"].n_words == len(parts["test"].split())
    assert corpus.splits["test"].n_bytes == len(parts["test"].encode())


def test_the_tokenizer_is_trained_on_the_training_part_alone(tmp_path: Path) -> None:
    text = made_text() + "zqzq zqzq zqzq zqzq\n" * 30
    (tmp_path / "made.txt").write_text(text, encoding="utf-8")
    spelled = TextTask(source=str(tmp_path / "made.txt"), vocabulary_size=400, context=16, test_share=0.1)
    assert "zqzq" not in spelled.decode(spelled.corpus.splits["train"].tokens)
    assert len(spelled.encode("zqzq")) == 4


def test_every_target_is_the_token_that_follows(task: TextTask) -> None:
    batch = task.sample_batch(GENERATOR(0), 40)
    assert batch.tokens.shape == batch.targets.shape == (40, 16)
    assert np.array_equal(batch.tokens[:, 1:], batch.targets[:, :-1])
    whole = " ".join(map(str, task.corpus.splits["train"].tokens))
    for row, target in zip(batch.tokens, batch.targets[:, -1]):
        assert " ".join(map(str, [*row, target])) in whole


def test_every_position_of_the_training_text_can_begin_a_window(task: TextTask) -> None:
    class First(np.random.Generator):
        def integers(self, high, size):  # type: ignore[no-untyped-def, override]
            return np.arange(high - size, high)

    batch = task.sample_batch(First(np.random.PCG64(0)), 2)
    assert batch.targets[-1, -1] == task.corpus.splits["train"].tokens[-1]


def test_evaluated_windows_are_spread_over_their_splits_without_overlap(task: TextTask) -> None:
    every = task.sample_evaluation(GENERATOR(0), 10_000)
    tokens = task.corpus.splits["test"].tokens
    assert np.array_equal(every["test"].tokens.ravel(), tokens[: every["test"].tokens.size])
    assert every["test"].tokens.size > len(tokens) - 2 * task.context
    few = task.sample_evaluation(GENERATOR(1), 3)
    assert all(len(split) == 3 for split in few.values())
    assert np.array_equal(few["test"].tokens[[0, -1]], every["test"].tokens[[0, -1]])


def test_a_task_can_be_written_down_and_described_without_its_text() -> None:
    task = TextTask(source="/nowhere/at/all.txt", vocabulary_size=300)
    assert from_mapping(TextTask, to_mapping(task)) == task
    assert (len(task.vocabulary), task.d_out, task.n_positions) == (300, 300, 128)


def test_files_that_name_their_split_are_taken_as_it(tmp_path: Path) -> None:
    for index, (split, name) in enumerate([("train", "train"), ("validation", "valid"), ("test", "test")]):
        write_text(tmp_path / "wiki" / f"wiki.{name}.raw", 50, seed=index)
        lines = made_text(50, seed=index).splitlines(keepends=True)
        table = tmp_path / "jsonl" / "data" / f"{split}-00000-of-00001.jsonl"
        table.parent.mkdir(parents=True, exist_ok=True)
        table.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    (tmp_path / "jsonl" / "README.md").write_text("a card, not a text")
    for folder in ("wiki", "jsonl"):
        read = read_source(str(tmp_path / folder)).splits
        assert read == {name: [made_text(50, seed)] for seed, name in enumerate(("train", "validation", "test"))}


def test_rows_that_are_no_lines_are_texts_of_their_own(tmp_path: Path) -> None:
    rows = [{"body": "one text"}, {"body": "another\n\ntext"}, {"body": None}, {"body": ""}]
    (tmp_path / "made.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert read_source(str(tmp_path / "made.jsonl"), "body").splits == {"train": ["one text", "another\n\ntext"]}


def test_a_directory_is_read_in_the_order_of_its_paths(tmp_path: Path) -> None:
    for name, text in (
        ("b.md", "second"),
        ("a.txt", "first"),
        ("c/d.py", "third"),
        (".hidden/e.txt", "no"),
        ("f.bin", "no"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert read_source(str(tmp_path)).splits == {"train": ["first", "second", "third"]}


def test_texts_are_separated_and_a_given_split_is_kept_whole(tmp_path: Path) -> None:
    write_text(tmp_path / "train.txt", 300)
    write_text(tmp_path / "test.txt", 30, seed=1)
    task = TextTask(source=str(tmp_path), vocabulary_size=300, context=16)
    splits = task.corpus.splits
    assert task.decode(splits["test"].tokens) == END_OF_TEXT + made_text(30, seed=1)
    together = [task.decode(splits[name].tokens).removeprefix(END_OF_TEXT) for name in ("train", "validation")]
    assert "".join(together) == made_text(300)


@pytest.mark.parametrize("form", ["parquet", "stream", "file"])
def test_parquet_and_arrow_tables_hold_the_same_rows(tmp_path: Path, form: str) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    table = pa.table({"text": ["one text", "another"], "id": [1, 2]})
    path = tmp_path / "train" / ("data.parquet" if form == "parquet" else "data.arrow")
    path.parent.mkdir()
    if form == "parquet":
        pq.write_table(table, path)
    else:
        writer = pa.ipc.new_stream if form == "stream" else pa.ipc.new_file
        with writer(str(path), table.schema) as opened:
            opened.write_table(table)
    assert read_source(str(tmp_path)).splits == {"train": ["one text", "another"]}
    with pytest.raises(BindscopeError, match="no column 'body', only text, id"):
        read_source(str(tmp_path), "body")
    path.write_bytes(b"damaged")
    with pytest.raises(BindscopeError, match="is damaged"):
        read_source(str(tmp_path))


def test_a_given_tokenizer_is_used_as_it_is(task: TextTask, tmp_path: Path) -> None:
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    TOKENIZER.inner.save(str(folder / "tokenizer.json"))
    gpt2 = tmp_path / "gpt2"
    gpt2.mkdir()
    TOKENIZER.inner.model.save(str(gpt2))
    for position in (folder, folder / "tokenizer.json", gpt2):
        given = TextTask(source=task.source, tokenizer=str(position), vocabulary_size=280, context=16)
        assert np.array_equal(given.encode(made_text(3)), TOKENIZER.encode(made_text(3)))
    with pytest.raises(BindscopeError, match="has 280 tokens, got 270; set"):
        load_tokenizer(str(folder), 270)


def test_pythons_own_documentation_is_a_text_in_no_particular_order(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("one", "two", "three", "tests/four"):
        (tmp_path / f"{name}.py").parent.mkdir(exist_ok=True)
        source = f'"""About {name}."""\n\n\ndef inner():\n    """Inner of {name}."""\n'
        (tmp_path / f"{name}.py").write_text(source)
    (tmp_path / "broken.py").write_text("def (")
    documents = sources._module_documentation(tmp_path)
    assert documents["module two.py"] == "About two.\n\nInner of two.\n"
    assert set(documents) == {"module one.py", "module two.py", "module three.py"}
    monkeypatch.setattr(sources, "_module_documentation", lambda library: documents)
    read = read_source(LIBRARY)
    assert sum("Inner of" in text for text in read.splits["train"]) == 3
    assert "topics and modules" in read.description
    assert read.splits == read_source(LIBRARY).splits


def test_the_same_text_has_the_same_hash_and_another_another(tmp_path: Path) -> None:
    def fingerprint() -> str:
        load_corpus.cache_clear()
        return TextTask(source=str(tmp_path / "made.txt"), vocabulary_size=300, context=16).corpus.sha256

    write_text(tmp_path / "made.txt")
    first = fingerprint()
    assert fingerprint() == first
    text = (tmp_path / "made.txt").read_text(encoding="utf-8")
    (tmp_path / "made.txt").write_text(text[:-3] + "?" + text[-2:], encoding="utf-8")
    assert fingerprint() != first


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("", b"", "name the text to train on"),
        ("missing.txt", None, "there is no file or directory"),
        ("empty.txt", b"", "holds no training text"),
        ("blank.txt", b"\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", "part of .* is empty"),
        ("short.txt", b"a few words are no text\n" * 9, "one window needs 17"),
        ("latin.txt", "naïve".encode("latin-1") * 99, "is not UTF-8 text .byte 2."),
        ("broken.jsonl", b'{"text": "one"}\nnot json\n', "line 2: not valid JSON"),
        ("list.jsonl", b"[1, 2]\n", "line 1: not a table row"),
        ("column.jsonl", b'{"texts": "one"}\n', "no column 'text', only texts. Did you mean 'texts'"),
        ("number.jsonl", b'{"text": 5}\n', "row 1: 'text' holds no text"),
        ("pointer.parquet", b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
    ],
)
def test_a_bad_source_is_one_sentence(tmp_path: Path, name: str, content: bytes | None, sentence: str) -> None:
    if name and content is not None:
        (tmp_path / name).write_bytes(content)
    task = TextTask(source=str(tmp_path / name) if name else "", vocabulary_size=300, context=16)
    with pytest.raises(BindscopeError, match=sentence) as error:
        task.sample_batch(GENERATOR(0), 1)
    assert "\n" not in str(error.value)


def test_a_directory_without_text_or_with_several_datasets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BindscopeError, match="holds no text"):
        read_source(str(tmp_path))
    for folder in ("wikitext-2-raw-v1", "wikitext-103-raw-v1"):
        write_text(tmp_path / folder / "wiki.train.raw", 5)
    with pytest.raises(BindscopeError, match=r"several folders \(wikitext-103-raw-v1, wikitext-2-raw-v1\); name one"):
        read_source(str(tmp_path))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"vocabulary_size": 200}, "task.vocabulary_size: must be at least 257"),
        ({"context": 1}, "task.context: must be at least 2"),
        ({"test_share": 0.7}, "task.test_share: must lie between"),
        ({"validation_share": 0.0}, "task.validation_share: must lie between"),
    ],
)
def test_bad_settings_are_refused(settings: dict, sentence: str) -> None:
    with pytest.raises(BindscopeError, match=sentence):
        TextTask(**settings)


def test_the_shortest_context_has_a_token_and_the_one_that_follows() -> None:
    assert TextTask(context=2, vocabulary_size=257).context == 2  # a token for each byte, and the end of a text


def test_bad_tokenizers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BindscopeError, match=r"has no tokenizer\.json, nor"):
        load_tokenizer(str(tmp_path), 300)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(BindscopeError, match="cannot be read as a tokenizer"):
        load_tokenizer(str(tmp_path), 300)


@pytest.mark.parametrize(
    ("module", "name", "sentence"),
    [
        ("tokenizers", "made.txt", r"pip install 'bindscope\[text\]'"),
        ("pyarrow", "made.parquet", "pip install pyarrow"),
    ],
)
def test_what_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, name: str, sentence: str
) -> None:
    really_import = builtins.__import__

    def import_without(wanted: str, *arguments: object, **options: object) -> object:
        if wanted.partition(".")[0] == module:
            raise ImportError(wanted)
        return really_import(wanted, *arguments, **options)  # type: ignore[arg-type]

    for known in [known for known in sys.modules if known.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, known)
    monkeypatch.setattr(builtins, "__import__", import_without)
    write_text(tmp_path / name)
    with pytest.raises(BindscopeError, match=sentence):
        TextTask(source=str(tmp_path / name), vocabulary_size=300, context=16).sample_batch(GENERATOR(0), 1)
