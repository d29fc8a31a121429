"""What is wrong with a tensor, in numbers and in words. Arrays in, values out; numpy only."""
