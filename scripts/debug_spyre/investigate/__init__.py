"""From a red matrix to proved causes in one job."""
