"""The smallest script that shows a fault, proved in fresh processes."""
