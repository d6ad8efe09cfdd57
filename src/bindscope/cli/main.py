"""The ``bindscope`` command: a table of subcommands, each in a module of its own that is imported when it is asked for.

Nothing heavy is imported here or at the top of a command's module, so that ``bindscope --help`` answers at once.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from typing import Any, NoReturn

from cyclopts import App, Group

from bindscope import __version__
from bindscope.cli.docstrings import for_terminals
from bindscope.cli.failure import guard, heed_termination
from bindscope.cli.one_voice import started_by_torchrun
from bindscope.cli.own_families import take_families

BACKGROUND = "live"  # the thread of ``web.background``, by its name
DESCRIPTION = """\
A laboratory for how a transformer learns to bind variables to values.

Start here:
    bindscope demo                  the page, with finished runs and a live one
    bindscope sample binding-tiny   see what the model is asked
    bindscope train binding-tiny    train it yourself
    bindscope COMMAND --help        every option of a command, with examples

Every command also takes --family PATH.py:NAME, a family of tasks of your own
(docs/families.md).
"""

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    # group: name: (where it lives, what it does: the first line of its docstring)
    "Start": {
        "demo": ("demo:show_demo", "Open the page with the shipped runs, and train a small model live in it."),
        "doctor": (
            "doctor:doctor",
            "Tell what is there (Python, torch, devices, page, browser, extras, disk), and what to do about the rest.",
        ),
        "serve": ("serve:serve", "Show runs in a web page, and let it question their models live."),
    },
    "Train": {
        "presets": ("presets:show_presets", "List the presets, or print all settings of one."),
        "sample": ("sample:sample", "Print examples of a task with their true answers."),
        "train": ("train:train", "Train a preset into a run directory."),
        "resume": ("resume:resume", "Continue an interrupted run exactly where it was."),
        "runs": ("runs:list_runs", "List runs with their status, steps and accuracy."),
        "thin": ("thin:thin", "Copy a run with few checkpoints, in half precision."),
        "check": ("check:check", "Read every file of runs and datasets, and name what is damaged."),
    },
    "Look": {
        "trajectory": ("trajectory:trajectory", "Find a run's phases and draw its trajectory."),
        "development": (
            "development:development",
            "Put everything measured of a run over training side by side, and tell what turns first.",
        ),
        "coefficient": (
            "coefficient:coefficient",
            "Estimate the local learning coefficient: how many directions around a checkpoint its loss can tell apart.",
        ),
        "calibrate": (
            "coefficient:calibrate",
            "Estimate learning coefficients that are known, to see what the estimator gives.",
        ),
        "diagnostics": (
            "diagnostics:diagnostics",
            "Measure plateau diagnostics: collapse, repetition, head entropies, participation ratio, gradient noise, steepness.",
        ),
        "announce": (
            "diagnostics:announce",
            "Tell which number leaves its range before a run on programs begins to follow chains, with its base rate.",
        ),
        "evaluate": ("evaluate:evaluate", "Measure a checkpoint's accuracy, by depth and more."),
        "behaviour": ("behaviour:behaviour", "Tell a checkpoint's answers apart by what was asked."),
        "predict": ("predict:predict_program", "Give a trained model a program, see what it predicts."),
        "lens": ("lens:lens", "Read what each layer would answer, checkpoint by checkpoint (logit lens)."),
        "attention": (
            "attention:attention",
            "Give a model a program or a sum, see what each head attends to.",
        ),
        "probe": ("probe:probe", "Probe the residual stream for the values of all variables, position by position."),
        "progress": ("progress:progress", "Measure how much of the circuit for modular addition each checkpoint has."),
        "fourier": ("fourier:fourier", "Fit every neuron by Fourier components; key frequencies, clock or pizza."),
    },
    "Patch": {
        "patch": ("patch:patch", "Patch activations of one program into another, see whether the answer follows."),
        "grids": (
            "grids:grids",
            "Patch every cell of every pair at every checkpoint, into a series of files that grows.",
        ),
        "path": ("path:patch_paths", "Measure what one part of the model tells another directly (path patching)."),
        "ablate": ("ablate:ablate", "Ablate heads or MLPs, or knock attention edges out, see which answers fall."),
        "subspace": ("subspace:subspace", "Find the subspace of values or names and swap it, with controls."),
        "circuit": (
            "circuit:circuit",
            "Find the heads that move a value along its chain, and try them on other programs.",
        ),
        "algorithm": (
            "algorithm:algorithm",
            "Tell by which algorithm a checkpoint follows chains: does the value come forward, or a pointer go back?",
        ),
        "moves": (
            "moves:moves",
            "Name the heads that move a value along its chain, or a pointer to it: from where to where, in which layer.",
        ),
        "mixture": (
            "mixture:mixture",
            "Tell what a checkpoint looks a question up by: a line, a name, a value, or the early lines.",
        ),
        "identifiers": (
            "lookups:identifiers",
            "Tell what swaps two bindings of a program: are names and values tied by identifiers of their line?",
        ),
        "lookbacks": (
            "lookups:lookbacks",
            "Tell where the address, the pointer and the payload of a lookup are, layer by layer.",
        ),
        "reassignment": (
            "reassignment:reassignment",
            "Tell which write of a variable wins, what holds the overwrite, and whether state is kept.",
        ),
        "edges": (
            "edges:edges",
            "Attribute the answer to every edge between parts, check it by exact patches, and try circuits of edges.",
        ),
        "apply": ("apply:apply", "Apply a saved subspace, circuit or intervention to another checkpoint or run."),
        "hypotheses": (
            "hypotheses:hypotheses",
            "Tell which of two hypotheses a checkpoint agrees with, by patches at which they predict different answers.",
        ),
        "transplant": (
            "transplant:transplant",
            "Patch a component of one checkpoint into another (transplant), see whether it answers like it.",
        ),
        "retrain": (
            "retrain:retrain",
            "Give a checkpoint on the plateau parts of a later one, train on, and count the steps until it leaves.",
        ),
    },
    "Study": {
        "verify": ("verify:verify", "Check the paper's claims against a run, with a verdict for each."),
        "measure": (
            "measure:measure",
            "Measure results of a run by name and save them, as pages and figures read them.",
        ),
        "claims": ("claims:claims", "List the claims that come with Bindscope, or print some as documents."),
        "explain": (
            "explain:explain",
            "Say what judging a claim would compute: results, cells, forward passes, operations, time and memory.",
        ),
        "figure": ("figure:figure", "Draw the figure behind one claim about a run, or one beside the claims."),
        "experiment": (
            "experiment:experiment",
            "List the experiments, or train what one needs and answer its question.",
        ),
        "evidence": (
            "evidence:evidence",
            "List every run and experiment behind the verdicts, and train what is missing.",
        ),
        "recipe": ("recipe:ablate_recipe", "Train a binding preset without each part of its recipe, and compare."),
        "one-step": ("one_step:one_step", "Take the one gradient step that composes binding with addition."),
        "kernel": (
            "kernel:kernel",
            "Judge by its kernel whether a transformer can learn templates for unseen symbols.",
        ),
        "templates": ("templates:templates", "Check templates typed as text, or print sequences they make."),
        "copying": (
            "copying:copying",
            "Measure why wider models copy worse: what their first updates do to unseen symbols.",
        ),
        "across": (
            "across:across",
            "Compare learning with and without identity scaling, on programs and on modular addition.",
        ),
        "language": (
            "language:language",
            "Train a language model on your text with and without identity scaling, and compare.",
        ),
    },
    "Share": {
        "export": ("export:export", "Write the lab's pages to a directory that any web server can host."),
        "export-hf": ("export_hf:export_hf", "Write checkpoints as Hugging Face model directories."),
        "export-metrics": (
            "export_metrics:export_metrics",
            "Write a run's evaluations for TensorBoard, Weights & Biases, or as CSV.",
        ),
        "construct": (
            "construct:construct",
            "Write a transformer that binds variables by design, as a run beside the learned ones.",
        ),
        "import": ("import_files:import_files", "Make a run of checkpoints from elsewhere."),
        "completion": ("completion:completion", "Print or install tab completion for your shell."),
    },
}
COMMANDS: dict[str, tuple[str, str]] = {name: entry for group in GROUPS.values() for name, entry in group.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave the process with its exit code.

    >>> main(["presets", "binding-tiny"])
    """
    heed_termination()
    code = run(sys.argv[1:] if arguments is None else list(arguments))
    if started_by_torchrun() or any(thread.name == BACKGROUND for thread in threading.enumerate()):
        leave_at_once(code)
    sys.exit(code)


def leave_at_once(code: int) -> NoReturn:
    """End without waiting for a thread that loads what nobody will ask for any more, nor taking Python from under it.

    Likewise of several processes: connections to those that have left already must not change the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # where nobody is listening the exit code still speaks
            stream.flush()
    os._exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code: 0, 2 for anything a person can put right, 130 when interrupted,
    143 when told to end, 141 when work was given up because nobody reads on."""
    return guard(lambda: _dispatch(take_families(arguments)), arguments)


def _dispatch(arguments: list[str]) -> object:
    named = next((argument for argument in arguments if argument in COMMANDS), None)
    return build_app(overview=named is None, named=named)(arguments)


def build_app(overview: bool = False, named: str | None = None) -> App:
    """The command-line application with all its subcommands, of which only the ``named`` one is imported.

    In an ``overview`` each command shows its summary from the table; otherwise its own docstring speaks.
    """
    app = App(
        name="bindscope",
        help=DESCRIPTION,
        help_format="plaintext",
        version=__version__,
        print_error=False,
        exit_on_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for order, (title, commands) in enumerate(GROUPS.items()):
        group = Group(title, sort_key=order)
        for index, (name, (target, summary)) in enumerate(commands.items()):
            shown = summary if overview else None
            command = find_command(target) if name == named else f"bindscope.cli.{target}"
            app.command(command, name=name, help=shown, sort_key=index, group=group)
    return app


def find_command(target: str) -> Callable[..., object]:
    """A command's function with its docstring as a terminal shows it."""
    module, name = target.split(":")
    function: Callable[..., object] = getattr(import_module(f"bindscope.cli.{module}"), name)

    @wraps(function)
    def command(*arguments: Any, **options: Any) -> object:
        return function(*arguments, **options)

    command.__doc__ = for_terminals(function.__doc__ or "")
    return command
