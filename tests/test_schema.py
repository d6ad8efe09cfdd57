"""Configs survive a round trip through JSON, and say where they are wrong."""

import json
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import pytest

from bindscope.errors import BindscopeError
from bindscope.model.config import InitConfig, ModelConfig
from bindscope.schema import convert_value, from_mapping, to_mapping
from bindscope.training.config import TrainingConfig


@dataclass(frozen=True)
class Circle:
    family: ClassVar[str] = "circle"
    radius: float = 1.0


@dataclass(frozen=True)
class Square:
    family: ClassVar[str] = "square"
    side: int = 2
    style: Literal["plain", "round"] = "plain"


@dataclass(frozen=True)
class Drawing:
    shape: Circle | Square
    corner: tuple[float, float] = (0.0, 1.0)
    label: str | None = None
    nested: Square = field(default_factory=Square)


@pytest.mark.parametrize(
    "value",
    [
        Drawing(Circle(3.0), label="x"),
        Drawing(Square(5, "round"), (2.0, 3.0)),
        ModelConfig(d_vocab=4, n_positions=9, mlp_layers=(1,), init=InitConfig(scheme="fan_in")),
        TrainingConfig(stop_at=0.99),
    ],
)
def test_a_config_survives_json(value):
    assert from_mapping(type(value), json.loads(json.dumps(to_mapping(value)))) == value


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ({"shape": {"family": "circle", "radus": 2}}, "drawing.shape: unknown key 'radus'. Did you mean 'radius'?"),
        ({"shape": {"family": "cirle"}}, "drawing.shape: unknown family 'cirle'. Did you mean 'circle'?"),
        ({}, "drawing: missing key 'shape'."),
        ({"shape": {"family": "circle", "radius": "big"}}, "drawing.shape.radius: expected float, got 'big'."),
        ({"shape": {"family": "square", "side": True}}, "drawing.shape.side: expected int, got True."),
        ({"shape": {"family": "square", "style": "rond"}}, "drawing.shape.style: 'rond' is not a choice."),
        ({"shape": Circle(), "corner": [1.0]}, "drawing.corner: expected 2 values, got 1."),
        (3, "drawing: expected a table of settings, got 3."),
    ],
)
def test_a_wrong_config_says_where_it_is_wrong(mapping, said):
    with pytest.raises(BindscopeError) as caught:
        from_mapping(Drawing, mapping, where="drawing")
    assert said in str(caught.value)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_number_has_to_be_finite(value):
    with pytest.raises(BindscopeError, match="finite"):
        convert_value(float | None, value, "training.clip")
