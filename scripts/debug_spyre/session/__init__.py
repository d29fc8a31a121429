"""One session: events, journal, replay, state, workspace."""
