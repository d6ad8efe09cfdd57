"""How people meet it in Python: a run by its name, and labelled arrays that draw themselves.

>>> import bindscope
>>> run = bindscope.open_run("binding-laptop")
>>> run.patch("k=9;c=k;#c:", "k=4;c=k;#c:", grid="residual").plot()
"""

from bindscope.notebook.drawn import Drawn
from bindscope.notebook.view import RunView, open_run

__all__ = ["Drawn", "RunView", "open_run"]
