"""How people meet Bindscope in a browser: stored results to read, a model to question live, and a folder to publish."""
