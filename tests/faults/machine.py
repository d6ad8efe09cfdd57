def strain_machine(*_):
    pass
