"""The hooks of the client. Standard library only, Python 3.9 syntax, as few imports as possible: it starts before every call."""
