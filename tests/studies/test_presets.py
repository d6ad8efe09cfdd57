"""The presets against what the papers say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bindscope.errors import BindscopeError
from bindscope.families import FAMILIES
from bindscope.model.transformer import Transformer
from bindscope.runs.config import config_from_mapping, config_to_mapping
from bindscope.studies.framework.presets import PRESETS, find_family_preset, find_preset


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_survives_being_written_down(name: str) -> None:
    config = PRESETS[name].config
    assert config_from_mapping(config_to_mapping(config)) == config
    assert config.name == name


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_parameters_listed_are_those_of_the_model(name: str) -> None:
    config = PRESETS[name].config.model
    if config.n_parameters > 100e6:  # too large to draw in a test; its layers are alike
        config = replace(config, n_layers=1)
    trained = sum(parameter.numel() for parameter in Transformer(config).parameters())
    assert trained == config.n_parameters


def test_the_paper_s_model_of_study_1_has_37_8_million_parameters() -> None:
    config = find_preset("binding-paper").config
    assert round(config.model.n_parameters / 1e6, 1) == 37.8
    assert config.total_steps == pytest.approx(105_400, rel=1e-3)


def test_the_paper_s_presets_use_no_part_of_the_recipe() -> None:
    for name in ("binding-paper", "assign-add"):
        model = find_preset(name).config.model
        assert (model.identity_qk, model.identity_vo) == (False, False)
        assert model.init.scheme == "gpt2"
        assert (model.init.mimetic_qk, model.init.mimetic_vo, model.init.offset_bias) == (0, 0, 0)


def test_study_2_has_an_mlp_in_its_second_layer_only_and_59_answers() -> None:
    model = find_preset("assign-add").config.model
    assert (model.layers_with_mlp, model.outputs, model.n_positions, model.d_vocab) == ((1,), 59, 16, 74)


def test_every_family_stands_for_a_preset_of_it() -> None:
    for family in FAMILIES:
        assert find_family_preset(family).config.task.family == family.replace("-", "_")


def test_an_unknown_preset_suggests_the_nearest() -> None:
    with pytest.raises(BindscopeError, match="Did you mean 'binding-tiny'"):
        find_preset("bindingtiny")
