"""The edge: everything that touches the world, one kind of world per module."""
