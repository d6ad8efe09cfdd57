"""Which heads move the value along a chain, or a pointer to it: what is patched (``patches``), and how that is read (``reading``)."""
