"""The error of the compile side; its prefix is how people recognise it."""


class Unsupported(RuntimeError):
    """The backend has no form for what the graph asks."""

    def __init__(self, thing):
        super().__init__(f"Spyre backend does not support: {thing}")
