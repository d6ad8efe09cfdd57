"""AdamW, or Muon for the hidden matrices and AdamW for the rest, as one object whose state has parameter names."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from bindscope.errors import BindscopeError
from bindscope.training.config import OptimizerConfig
from bindscope.training.muon import Muon


def build_optimizer(model: nn.Module, config: OptimizerConfig) -> Optimizer:
    """The optimizer of a run. Parameters that are not trained are left out.

    >>> optimizer = build_optimizer(model, OptimizerConfig("muon", muon_lr=0.02))
    """
    named = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    hidden = {name for name in named if config.name == "muon" and is_hidden_matrix(name, named[name])}
    rest = [parameter for name, parameter in named.items() if name not in hidden]
    members: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=config.lr, betas=config.betas, weight_decay=config.weight_decay, fused=True)
    ]
    if hidden:
        matrices = [named[name] for name in named if name in hidden]
        members.append(
            Muon(matrices, lr=config.muon_lr, momentum=config.muon_momentum, weight_decay=config.weight_decay)
        )
    return Optimizer(members, named)


def is_hidden_matrix(name: str, parameter: Tensor) -> bool:
    """Whether Muon takes it: a matrix between two hidden layers, not an embedding, unembedding or position table."""
    return parameter.ndim == 2 and name.startswith("blocks.")


class Optimizer:
    """Several torch optimizers that step together; their state is named after the parameters it belongs to."""

    def __init__(self, members: list[torch.optim.Optimizer], named: Mapping[str, nn.Parameter]) -> None:
        self.members = members
        self._names = {id(parameter): name for name, parameter in named.items()}
        self._base_rates = [[group["lr"] for group in member.param_groups] for member in members]

    @property
    def lr(self) -> float:
        """The rate AdamW steps with."""
        return float(self.members[0].param_groups[0]["lr"])

    def scale_rates(self, factor: float) -> None:
        """Set every rate to its base value times ``factor``."""
        for member, rates in zip(self.members, self._base_rates):
            for group, rate in zip(member.param_groups, rates):
                group["lr"] = rate * factor

    def zero_grad(self) -> None:
        for member in self.members:
            member.zero_grad(set_to_none=True)

    def step(self) -> None:
        for member in self.members:
            member.step()

    def state_dict(self) -> dict[str, Tensor]:
        """A flat copy, ready for a file: ``{"blocks.0.mlp.w_in/exp_avg": tensor, …}``."""
        return {
            f"{self._names[id(parameter)]}/{key}": value.detach().clone()
            for member in self.members
            for parameter, values in member.state.items()
            for key, value in values.items()
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        by_name: dict[str, dict[str, Tensor]] = {}
        for path, value in state.items():
            name, _, key = path.rpartition("/")
            by_name.setdefault(name, {})[key] = value.detach().clone()
        unknown = sorted(by_name.keys() - set(self._names.values()))
        if unknown:
            raise BindscopeError(f"the optimizer state is of another model: this one has no parameter '{unknown[0]}'.")
        for member in self.members:
            self._load_member(member, by_name)

    def _load_member(self, member: torch.optim.Optimizer, by_name: Mapping[str, dict[str, Tensor]]) -> None:
        parameters = [parameter for group in member.param_groups for parameter in group["params"]]
        values = {
            index: by_name[self._names[id(p)]] for index, p in enumerate(parameters) if self._names[id(p)] in by_name
        }
        for index, tensors in values.items():
            for key, tensor in tensors.items():
                if tensor.ndim and tensor.shape != parameters[index].shape:
                    raise BindscopeError(
                        f"the optimizer state is of another model: '{self._names[id(parameters[index])]}/{key}' has "
                        f"shape {list(tensor.shape)}, the parameter {list(parameters[index].shape)}."
                    )
        member.load_state_dict({"state": values, "param_groups": member.state_dict()["param_groups"]})
