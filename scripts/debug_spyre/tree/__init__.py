"""The working files of the checkout: snapshot, patch, revert."""
