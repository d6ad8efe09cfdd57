"""Hugging Face directories: written whole or not at all, and only for models they can express."""

import errno
import json
import sys
from pathlib import Path

import pytest
import safetensors

from bindscope.errors import BindscopeError
from bindscope.model.convert import export_hugging_face
from bindscope.tasks.vocabulary import Vocabulary
from model.test_transformer import make_model

CHARACTERS = Vocabulary(tuple("ab01 =\n#:?é"))
LLAMA = {"norm": "rms", "gated": True}
FILES = {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


def test_nothing_of_hugging_face_is_needed_to_write(tmp_path, monkeypatch):
    for name in ("transformers", "tokenizers", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it now fails
    written = export_hugging_face(make_model(n_heads=3), tmp_path / "deep" / "out", CHARACTERS)
    assert written.architecture == "GPTNeoXForCausalLM"
    assert written.notes == ()
    assert {path.name for path in written.directory.iterdir()} == FILES
    assert json.loads((written.directory / "config.json").read_text())["vocab_size"] == 11
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["out"]  # nothing half-made is left beside it


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"causal": False}, "bidirectional"),
        ({"identity_qk": True}, "identity scaling"),
        ({"identity_vo": True}, "identity scaling"),
        ({"norm": "none"}, "no norm"),
        ({"norm": "rms"}, "as a Llama, but plain MLPs"),
        ({"gated": True}, "as a Llama, but LayerNorm"),
        ({"n_kv_heads": 1}, "as a Llama, but LayerNorm"),
        ({**LLAMA, "parallel": True}, "as a Llama, but parallel layers"),
        ({**LLAMA, "positions": "learned"}, "as a Llama, but learned positions"),
        ({**LLAMA, "rope_fraction": 0.5}, "as a Llama, but only a part"),
        ({"parallel": True, "positions": "learned"}, "GPT-2's layers are not parallel"),
        ({"mlp_layers": (0, 2)}, "layers without an MLP"),
        ({"activation": "cos"}, "activation is cos"),
        ({"n_heads": 2}, r"span 8 dimensions .* not d_model = 12"),
        ({"d_out": 5}, "5 outputs for 11 tokens"),
        ({"positions": "normal"}, "positions are fixed"),
        ({"positions": "none"}, "no positions"),
    ],
)
def test_what_no_format_can_express_is_refused(changes, said, tmp_path):
    with pytest.raises(BindscopeError, match=said):
        export_hugging_face(make_model(**{"n_heads": 3, **changes}), tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("positions", ["rope", "learned"])
def test_biases_are_zero_where_the_model_has_none(positions, tmp_path):
    export_hugging_face(make_model(n_heads=3, bias=False, positions=positions), tmp_path / "out")
    with safetensors.safe_open(tmp_path / "out" / "model.safetensors", framework="pt") as file:
        biases = [name for name in file.keys() if name.endswith("bias") and "ln_" not in name and "norm" not in name]  # noqa: SIM118
        assert len(biases) == 3 * 4
        assert not any(file.get_tensor(name).any() for name in biases)


def test_an_empty_directory_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    export_hugging_face(make_model(n_heads=3), tmp_path / "out", CHARACTERS)
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_what_exists_is_never_touched(tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(BindscopeError, match="exists already"):
        export_hugging_face(make_model(n_heads=3), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("kept")
    with pytest.raises(BindscopeError, match="exists already"):
        export_hugging_face(make_model(n_heads=3), tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_full_disk_leaves_nothing_behind(tmp_path, monkeypatch):
    def fill(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fill)
    with pytest.raises(BindscopeError, match="No space left on device"):
        export_hugging_face(make_model(n_heads=3), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_words_get_a_note_in_place_of_a_tokenizer(tmp_path):
    words = Vocabulary((*"abcdefghij", "PAD"))
    written = export_hugging_face(make_model(n_heads=3), tmp_path / "out", words)
    assert "'PAD' is not a single character" in written.notes[0]
    assert {path.name for path in written.directory.iterdir()} == {"config.json", "model.safetensors"}
    assert "no vocabulary" in export_hugging_face(make_model(n_heads=3), tmp_path / "bare").notes[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"context": 21}, "21 is more than the 20 positions"),
        ({"context": 0}, "at least 1"),
        ({"vocabulary": Vocabulary(("a", "b"))}, "2 tokens does not fit 11"),
    ],
)
def test_options_that_do_not_fit_the_model_are_refused(options, said, tmp_path):
    with pytest.raises(BindscopeError, match=said):
        export_hugging_face(make_model(n_heads=3, positions="learned"), tmp_path / "out", **options)
    assert not list(tmp_path.iterdir())
