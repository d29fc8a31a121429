"""A platform plugin that runs transformer layers on a Spyre card through torch-spyre."""
