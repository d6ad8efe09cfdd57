"""``transformers`` reads what we write and computes the same."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bindscope.model.convert import export_hugging_face  # noqa: E402
from interop.exported import CASES, CHARACTERS, GPT2, REALISTIC, make_exported  # noqa: E402
from model.test_convert import make_perturbed_model  # noqa: E402
from model.test_transformer import random_tokens  # noqa: E402


def load(directory, **options):
    return transformers.AutoModelForCausalLM.from_pretrained(directory, **options)


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
@torch.no_grad()
def test_logits_are_the_same(changes, attention, tmp_path):
    model = make_exported(tmp_path / "out", changes)
    tokens = random_tokens(4, model.config.n_positions)
    theirs, report = load(tmp_path / "out", attn_implementation=attention, output_loading_info=True)
    assert not any(report.values())  # no name missing, unexpected or of another shape
    torch.testing.assert_close(theirs(tokens).logits, model(tokens), atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_logits_are_the_same_in_a_long_context(tmp_path):
    """Where a last bit of a rotation's angle would show."""
    model, tokens = make_exported(tmp_path / "out", {**REALISTIC, "n_positions": 2048}), random_tokens(1, 2048)
    torch.testing.assert_close(load(tmp_path / "out")(tokens).logits, model(tokens), atol=1e-5, rtol=0)


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
@torch.no_grad()
def test_every_written_tensor_matters(changes, tmp_path):
    """So that agreement of the logits means agreement of every weight."""
    model, generator = make_exported(tmp_path / "out", changes), torch.Generator().manual_seed(1)
    theirs, tokens = load(tmp_path / "out"), random_tokens()
    for name, parameter in theirs.named_parameters():
        kept = parameter.clone()
        parameter += torch.randn(parameter.shape, generator=generator)
        assert (theirs(tokens).logits - model(tokens)).abs().max() > 1e-3, name
        parameter.copy_(kept)


def test_the_tokenizer_reads_characters_as_the_task_does(tmp_path):
    make_exported(tmp_path / "out", {})
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    for text in ("a=1\nb=a\n#b:", "  a  ", "\n\n", "é?"):
        tokens = tokenizer(text)["input_ids"]
        assert tokens == CHARACTERS.encode(text)
        assert tokenizer.decode(tokens) == text
    with pytest.raises(Exception, match="UNK"):
        tokenizer("z")


@torch.no_grad()
def test_a_shorter_context_keeps_the_first_positions(tmp_path):
    model, tokens = make_perturbed_model(n_heads=3, **GPT2["learned positions"]), random_tokens(2, 9)
    export_hugging_face(model, tmp_path / "out", context=9)
    theirs = load(tmp_path / "out")
    assert theirs.config.n_positions == 9
    torch.testing.assert_close(theirs(tokens).logits, model(tokens), atol=1e-5, rtol=1e-5)
