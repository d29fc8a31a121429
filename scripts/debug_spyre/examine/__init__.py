"""Experiments on the card: shadow, sweep, ladder, and the calls that they make."""
