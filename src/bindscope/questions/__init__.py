"""What a person can ask: one frozen dataclass for each question, the same for command, page and notebook.

>>> question = Predict(run="binding-laptop", program="a=5;b=a;#b:", steps="all")
>>> question.command()
"bindscope predict binding-laptop 'a=5;b=a;#b:' --steps all"
>>> print(question.python())
import bindscope
<BLANKLINE>
run = bindscope.open_run("binding-laptop")
run.predict("a=5;b=a;#b:", steps="all")
>>> question.answer(Opened.at(question.run)).probability.dims
('step', 'output')

A question is complete before anything heavy is imported: torch comes with its answer.
"""
