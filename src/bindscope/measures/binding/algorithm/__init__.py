"""Which algorithm a model follows a chain by: what is patched (``patches``), and how that is read (``reading``)."""
