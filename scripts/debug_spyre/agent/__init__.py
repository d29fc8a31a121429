"""The skill in a checkout and in a client: install, settings."""
