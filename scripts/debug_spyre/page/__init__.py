"""The log of a session as frozen values, and its rendering."""
