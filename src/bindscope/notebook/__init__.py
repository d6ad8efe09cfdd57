"""How people meet it in Python: a run or a study by its name, and labelled arrays that draw themselves.

>>> import bindscope
>>> run = bindscope.open_run("binding-laptop")
>>> run.patch("k=9;c=k;#c:", "k=4;c=k;#c:", grid="residual").plot()
>>> bindscope.open_run("assign-add").attention("c=1 b=17 | b+19").plot()
>>> bindscope.open_study("symbols").kernel("AA", "AB", labels=(1, -1)).plot()
"""

from bindscope.notebook.drawn import Drawn
from bindscope.notebook.opening import open_run
from bindscope.notebook.programs import ProgramsView
from bindscope.notebook.sums import SumsView
from bindscope.notebook.symbols import SymbolsView, open_study
from bindscope.notebook.view import RunView

__all__ = ["Drawn", "ProgramsView", "RunView", "SumsView", "SymbolsView", "open_run", "open_study"]
