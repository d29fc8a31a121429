"""The hypothesis queue: rules, seeds, warnings."""
