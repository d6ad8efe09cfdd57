"""``bindscope completion``: tab completion."""

from __future__ import annotations

from typing import Literal

from bindscope.cli.options import Flag
from bindscope.errors import BindscopeError


def completion(
    shell: Literal["bash", "zsh", "fish", "powershell"] | None = None,
    /,
    *,
    install: Flag = False,
) -> None:
    """Print or install tab completion for your shell.

    Examples:
        bindscope completion bash > ~/.local/share/bash-completion/completions/bindscope
        bindscope completion --install

    Parameters
    ----------
    shell
        Which shell; found out from the environment when left out.
    install
        Put the script where the shell looks for it, and source it from the shell's start file, instead of printing it.
    """
    from cyclopts.completion.detect import ShellDetectionError

    from bindscope.cli.main import build_app

    app = build_app()
    try:
        if install:
            print(f"Installed: {app.install_completion(shell=shell)}. Open a new shell to use it.")
        else:
            print(app.generate_completion(shell=shell))
    except ShellDetectionError:
        raise BindscopeError("the shell could not be recognised; name it, as in 'bindscope completion bash'.") from None
