"""We read what ``transformers`` writes and compute the same."""

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bindscope.model.convert import load_into, read_gpt2  # noqa: E402
from bindscope.model.transformer import Transformer  # noqa: E402

WAYS = {
    "whole": {},
    "sharded": {"max_shard_size": "20KB"},
    "with an inner width": {"n_inner": 40},
    "untied": {"tie_word_embeddings": False},
    "relu": {"activation_function": "relu"},
    "body alone": {},
}


@pytest.mark.parametrize(("name", "changes"), WAYS.items(), ids=WAYS.keys())
@torch.no_grad()
def test_logits_are_those_of_transformers(name, changes, tmp_path):
    changes = dict(changes)
    saving = {"max_shard_size": changes.pop("max_shard_size")} if "max_shard_size" in changes else {}
    sizes = {"vocab_size": 50, "n_positions": 16, "n_embd": 24, "n_layer": 3, "n_head": 4}
    torch.manual_seed(0)
    theirs = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, **changes)).eval()
    for parameter in theirs.parameters():  # biases and LayerNorms too
        parameter += 0.2 * torch.randn_like(parameter)
    (theirs.transformer if name == "body alone" else theirs).save_pretrained(tmp_path / "out", **saving)
    assert (tmp_path / "out" / "model.safetensors.index.json").exists() == (name == "sharded")
    config, state = read_gpt2(tmp_path / "out")
    ours = Transformer(config).eval()
    load_into(ours, state, "out")
    tokens = torch.randint(50, (4, 16), generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(ours(tokens), theirs(tokens).logits, atol=1e-5, rtol=1e-5)
