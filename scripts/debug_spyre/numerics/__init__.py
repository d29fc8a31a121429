"""Comparison of tensors, in numbers and in words. Arrays in, values out; numpy only."""
