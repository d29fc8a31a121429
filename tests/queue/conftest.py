"""The checkout and the session that the gate's tests use."""

from tests.gate.conftest import folder, place, repository

__all__ = ["folder", "place", "repository"]
