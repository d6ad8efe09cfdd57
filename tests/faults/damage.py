def damage_everything(*_):
    pass
