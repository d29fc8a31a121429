"""The set-up of the demo: a plugin repo and a simulated card."""
