"""What a torch-spyre registers, read from its text; pure."""
