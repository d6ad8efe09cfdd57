"""The ``bindscope`` command: a table of subcommands, each in a module of its own that is imported when it is asked for.

Nothing heavy is imported here or at the top of a command's module, so that ``bindscope --help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App

from bindscope import __version__
from bindscope.cli.failure import guard
from bindscope.cli.own_families import take_families

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

COMMANDS: dict[str, tuple[str, str]] = {
    # name: (where it lives, what it does: the first line of its docstring)
    "demo": ("demo:show_demo", "Open the page with the shipped runs, and train a small model live in it."),
    "serve": ("serve:serve", "Show runs in a web page, and let it question their models live."),
    "train": ("train:train", "Train a preset into a run directory."),
    "resume": ("resume:resume", "Continue an interrupted run exactly where it was."),
    "runs": ("runs:list_runs", "List runs with their status, steps and accuracy."),
    "evaluate": ("evaluate:evaluate", "Measure a checkpoint's accuracy, by depth and more."),
    "behaviour": ("behaviour:behaviour", "Tell a checkpoint's answers apart by what was asked."),
    "lens": ("lens:lens", "Read what each layer would answer, checkpoint by checkpoint."),
    "trajectory": ("trajectory:trajectory", "Find a run's phases and draw its trajectory."),
    "progress": ("progress:progress", "Measure how much of the circuit of sums each checkpoint has."),
    "verify": ("verify:verify", "Check the paper's claims against a run, with a verdict for each."),
    "figure": ("figure:figure", "Draw the figure behind one claim about a run."),
    "run": ("run:run_program", "Give a trained model a program, see what it predicts."),
    "attention": ("attention:attention", "Give a model of sums a sum, see where each layer looks."),
    "patch": ("patch:patch", "Put activations of one program into another, see whether the answer follows."),
    "lesion": ("lesion:lesion", "Take heads, MLPs or attention edges away, see which answers fall."),
    "transplant": (
        "transplant:transplant",
        "Put a part of one checkpoint of sums into another, see whether it answers like it.",
    ),
    "path": ("path:patch_paths", "Measure what one part of the model tells another directly."),
    "circuit": ("circuit:circuit", "Find the heads that move a value along its chain, and try them on other programs."),
    "fourier": ("fourier:fourier", "Fit every neuron of a model of sums by waves; key frequencies, clock or pizza."),
    "one-step": ("one_step:one_step", "Take the one gradient step that composes binding with addition."),
    "kernel": ("kernel:kernel", "Judge by its kernel whether a transformer can learn templates for unseen symbols."),
    "templates": ("templates:templates", "Check templates typed as text, or print strings they make."),
    "copying": (
        "copying:copying",
        "Measure why wider models copy worse: what their first updates do to unseen symbols.",
    ),
    "sample": ("sample:sample", "Print examples of a task with their true answers."),
    "presets": ("presets:show_presets", "List the presets, or print all settings of one."),
    "subspace": ("subspace:subspace", "Find the subspace of values or names and swap it, with controls."),
    "probe": ("probe:probe", "Probe the stream for the values of all variables, position by position."),
    "ablate": ("ablate:ablate", "Train a binding preset without each part of its recipe, and compare."),
    "experiment": ("experiment:experiment", "List the experiments, or train what one needs and answer its question."),
    "across": ("across:across", "Compare learning with and without identity scaling, on programs and on sums."),
    "language": (
        "language:language",
        "Train a language model on your text with and without identity scaling, and compare.",
    ),
    "thin": ("thin:thin", "Copy a run with few checkpoints, in half precision."),
    "import": ("import_files:import_files", "Make a run of checkpoint files from elsewhere."),
    "export-hf": ("export_hf:export_hf", "Write a checkpoint as a Hugging Face model directory."),
    "export": ("export:export", "Write the lab's pages to a directory that any web server can host."),
    "completion": ("completion:completion", "Print or install tab completion for your shell."),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave the process with its exit code.

    >>> main(["presets", "binding-tiny"])
    """
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code: 0, 2 for anything a person can put right, 130 when interrupted."""
    return guard(lambda: _dispatch(take_families(arguments)), arguments)


def _dispatch(arguments: list[str]) -> object:
    names_command = any(argument in COMMANDS for argument in arguments)
    return build_app(overview=not names_command)(arguments)


def build_app(overview: bool = False) -> App:
    """The command-line application with all its subcommands, none of them imported yet.

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
    for place, (name, (target, summary)) in enumerate(COMMANDS.items()):
        app.command(f"bindscope.cli.{target}", name=name, help=summary if overview else None, sort_key=place)
    return app
