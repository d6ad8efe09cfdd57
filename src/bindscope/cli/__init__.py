"""How people meet it: the bindscope command, one module per subcommand."""
