"""Binding in language models: programs written as text, for models that others have trained."""
