"""Identity scaling on the tasks of the other studies."""
