"""The part of this room that touches the world: files, processes, the card."""
