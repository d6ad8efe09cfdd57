"""Text: the next token of any text a person has, for language modelling with and without identity scaling."""

from bindscope.tasks.text.corpus import Corpus, Split, load_corpus
from bindscope.tasks.text.sources import LIBRARY
from bindscope.tasks.text.task import TextTask

__all__ = ["LIBRARY", "Corpus", "Split", "TextTask", "load_corpus"]
