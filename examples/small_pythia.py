"""A small language model with the file layout of Pythia: a stand-in on which docs/pythia.md is tested.

    python examples/small_pythia.py pythia-70m                     # step0/ … step2600/, about ten minutes of one core
    python examples/small_pythia.py tiny --steps 4 --width 32      # seconds; it learns nothing

Writes one Hugging Face directory for each of several steps (``config.json``, ``model.safetensors``, ``tokenizer.json``): a
GPT-NeoX of 1.1 million parameters with a byte-level BPE of its own, trained on generated text. The text is short
programs in all surface forms of the family ``code``, whose variables are then asked for one after another, between other
code-like lines. So that it learns within minutes, its attention starts near matching and copying, as in docs/recipe.md; a
real language model has no such help.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from bindscope.model.config import InitConfig, ModelConfig
from bindscope.model.convert import export_hugging_face
from bindscope.model.transformer import Transformer
from bindscope.tasks.binding import BindingTask, Program
from bindscope.tasks.binding.program import DIGITS, LETTERS
from bindscope.tasks.code import FORMS
from bindscope.tasks.text.tokenizer import TextTokenizer, train_tokenizer

N_TOKENS, CONTEXT, SIZE_ON_DISK = 512, 96, 256  # the model reads up to SIZE_ON_DISK tokens, as rotary ones can
FIRST_STEPS = (0, 1, 2, 4, 8, 16, 32, 64, 128)  # early ones, as Pythia has them
INIT = InitConfig(scheme="fan_in", mimetic_vo=1.0, mimetic_qk=1.25, orthogonal=True, offset_bias=8.0, tied_start=0.6)
OTHER_LINES = (
    "for {0} in range({3}):\n    {1} = {1} + {0}\n",
    "def {0}({1}, {2}):\n    return {1} * {2}\n",
    "if {0} > {3}:\n    print({1})\n",
    "while {0} < {3}:\n    {0} = {0} + 1\n",
    "# {0} and {1} are numbers below {3}\n",
)


def main(arguments: list[str]) -> None:
    """Make the text, the tokenizer and the checkpoints."""
    options = _read_options(arguments)
    torch.set_num_threads(1)
    torch.manual_seed(options.seed)
    rng = np.random.default_rng(options.seed)
    tokenizer = train_tokenizer([write_document(rng) for _ in range(3_000)], N_TOKENS)
    tokenizer_file = options.out / "tokenizer.json"
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer.inner.save(str(tokenizer_file))
    model = Transformer(_configure(options.width, tokenizer.size))
    print(f"{model.config.n_parameters:,} parameters, {tokenizer.size} tokens", flush=True)
    train(model, tokenizer, rng, options.steps, options.every, options.out, tokenizer_file)
    tokenizer_file.unlink()  # each step has its own


def write_document(rng: np.random.Generator) -> str:
    """A program that is asked for several of its variables, or some other lines of code."""
    if rng.random() < 0.15:
        names = rng.choice(list(LETTERS), 3, replace=False)
        return str(rng.choice(OTHER_LINES)).format(*names, rng.integers(10)) + "\n"
    lines = int(rng.integers(2, 7))
    form = "python" if rng.random() < 0.7 else str(rng.choice(list(FORMS)))
    task = BindingTask(lines=lines, max_depth=min(3, lines), p_constant=0.6, balance="weights")
    program = Program.from_tokens(task.sample_batch(rng, 1).tokens[0])
    asked = [replace(program, query=line.variable) for line in program.assignments]
    written = [[text for _, text in FORMS[form].write(each, LETTERS, DIGITS)] for each in asked]
    questions = ["".join(texts[-4:]) for texts in written]  # hash, query, colon, answer
    return "".join(written[0][:-4]) + "\n".join(str(question) for question in rng.permutation(questions)) + "\n\n"


def train(
    model: Transformer,
    tokenizer: TextTokenizer,
    rng: np.random.Generator,
    steps: int,
    every: int,
    out: Path,
    tokenizer_file: Path,
) -> None:
    """Next-token training on fresh text, with a directory for each saved step."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.95, 0.99), weight_decay=0.01)
    kept = {step for step in (*FIRST_STEPS, *range(0, steps, every), steps) if step <= steps}
    for step in range(steps + 1):
        if step in kept:
            directory = out / f"step{step}"
            export_hugging_face(model, directory, context=SIZE_ON_DISK)
            shutil.copy(tokenizer_file, directory)
        if step == steps:
            return
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * min(1, (step + 1) / 100) * (1 - 0.95 * step / steps)
        tokens = make_rows(tokenizer, rng, 16)
        loss = torch.nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step:,}  loss {loss.item():.3f}", flush=True)


def make_rows(tokenizer: TextTokenizer, rng: np.random.Generator, n_rows: int) -> torch.Tensor:
    """Rows of documents, one after another, each row from the beginning of one."""
    rows = []
    for _ in range(n_rows):
        row: list[int] = []
        while len(row) <= CONTEXT:
            row += tokenizer.encode(write_document(rng)).tolist()
        rows.append(row[: CONTEXT + 1])
    return torch.tensor(rows)


def _configure(width: int, d_vocab: int) -> ModelConfig:
    """The shape of Pythia: rotary on a quarter of each head's dimensions, parallel residual, untied."""
    return ModelConfig(
        d_vocab, SIZE_ON_DISK, n_layers=5, n_heads=4, d_model=width, d_head=width // 4, d_mlp=4 * width,
        rope_fraction=0.25, parallel=True, init=INIT,
    )  # fmt: skip


def _read_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("out", type=Path, help="a new directory")
    parser.add_argument("--steps", type=int, default=2600)
    parser.add_argument("--every", type=int, default=200, help="steps between checkpoints, beside the early ones")
    parser.add_argument("--width", type=int, default=128, help="of the residual stream")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
