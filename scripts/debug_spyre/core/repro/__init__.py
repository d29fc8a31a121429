"""Small scripts that show a fault: the call that they make, their text, and the search for the smallest one."""
