"""The parts of a scaled head: taking out both identity parts is the model without them, and nothing stays behind."""

import numpy as np
import pytest
import torch

from bindscope.errors import BindscopeError
from bindscope.measures.identity_paths import PARTS, TARGETS, compare_parts, remove_parts, without_part
from bindscope.model.config import ModelConfig
from bindscope.model.run import run
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, ask_programs, parse_program

TASK = BindingTask(lines=4, max_depth=2)
SHAPE = {"d_vocab": 40, "n_positions": 19, "n_layers": 2, "n_heads": 2, "d_model": 16, "d_head": 8, "d_mlp": 16}


def scaled_model():
    model = Transformer(ModelConfig(**SHAPE, identity_qk=True, identity_vo=True, identity_gain=4.0))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.4, generator=generator)
    return model.eval()


def batch(n=40):
    return TASK.sample_evaluation(np.random.default_rng(0), n)["test"]


EVERYWHERE = [(layer, head) for layer in range(2) for head in range(2)]


def test_without_both_identity_parts_it_is_the_plain_model():
    model, tokens = scaled_model(), torch.from_numpy(batch().tokens)
    plain = Transformer(ModelConfig(**SHAPE)).eval()
    plain.load_state_dict({name: value for name, value in model.state_dict().items() if "identity" not in name})
    with without_part(model, "identity scores", EVERYWHERE), without_part(model, "identity outputs", EVERYWHERE):
        torch.testing.assert_close(model(tokens), plain(tokens))
    assert not torch.allclose(model(tokens), plain(tokens))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_changes_what_it_names_and_is_put_back(part):
    model, tokens = scaled_model(), torch.from_numpy(batch().tokens)
    read = ["L0.H1.scores", "L0.H0.scores", "L0.H1.result", "L0.H0.result"]
    before = run(model, tokens, read=read)
    with without_part(model, part, [(0, 1)]):
        during = run(model, tokens, read=read)
    after = run(model, tokens, read=read)
    touched = "scores" if "scores" in part else "result"
    assert not torch.allclose(before[f"L0.H1.{touched}"], during[f"L0.H1.{touched}"])
    torch.testing.assert_close(before[f"L0.H0.{touched}"], during[f"L0.H0.{touched}"])
    torch.testing.assert_close(before.logits, after.logits, rtol=0, atol=0)


def test_the_two_parts_of_the_scores_and_of_the_outputs_make_the_whole():
    model, tokens = scaled_model(), torch.from_numpy(batch().tokens)
    visible = torch.ones(19, 19, dtype=torch.bool).tril()
    whole = run(model, tokens, read=["L0.scores"])["L0.scores"][..., visible]
    parts = torch.zeros_like(whole)
    for part in ("identity scores", "trained scores"):
        with without_part(model, part, EVERYWHERE):
            parts += run(model, tokens, read=["L0.scores"])["L0.scores"][..., visible]
    torch.testing.assert_close(parts, whole)


def test_removing_parts_is_measured_by_depth_for_heads_layers_and_the_model():
    model = scaled_model()
    dataset = remove_parts(model, batch())
    assert dict(dataset.sizes) == {"layer": 2, "head": 2, "part": len(PARTS), "depth": 2}
    assert int(dataset.n_at_depth.sum()) == 40
    with without_part(model, "trained outputs", [(1, 0), (1, 1)]):
        alone = remove_parts(model, batch()).accuracy_with_all
    np.testing.assert_array_equal(dataset.accuracy_without_layer.sel(layer=1, part="trained outputs"), alone)
    np.testing.assert_array_equal(dataset.accuracy_without_later.sel(part="trained outputs"), alone)


def test_attention_to_named_positions_is_read_off_the_pattern():
    model = scaled_model()
    programs = ask_programs([parse_program("a=5\nb=a\nc=3\nd=b\n#d:")])
    dataset = compare_parts(model, programs)
    pattern = run(model, torch.from_numpy(programs.tokens), read=["L1.pattern"])["L1.pattern"][0].detach().numpy()
    # names: a at 6 (assigned on 0), b at 14 (assigned on 4), d at 17 (assigned on 12)
    right = np.mean([pattern[:, 6, 2], pattern[:, 14, 6], pattern[:, 17, 14]], axis=0)
    left = np.mean([pattern[:, 6, 0], pattern[:, 14, 4], pattern[:, 17, 12]], axis=0)
    found = dataset.name_attention.sel(layer=1, path="whole")
    np.testing.assert_allclose(found.sel(target="right of the assignment"), right, rtol=1e-5)
    np.testing.assert_allclose(found.sel(target="left of the assignment"), left, rtol=1e-5)
    assert list(dataset.target.values) == list(TARGETS)


def test_fractions_are_none_and_all_when_one_part_is_all_there_is():
    model = scaled_model()
    with without_part(model, "trained scores", EVERYWHERE), without_part(model, "identity outputs", EVERYWHERE):
        dataset = compare_parts(model, batch())
    np.testing.assert_allclose(dataset.identity_fraction_of_scores, 1)
    np.testing.assert_allclose(dataset.identity_fraction_of_outputs, 0)


def test_a_model_without_identity_paths_is_refused():
    with pytest.raises(BindscopeError, match="this model has none"):
        remove_parts(Transformer(ModelConfig(**SHAPE)), batch())
    with (
        pytest.raises(BindscopeError, match="unknown part 'identity score'"),
        without_part(scaled_model(), "identity score", []),
    ):
        pass
