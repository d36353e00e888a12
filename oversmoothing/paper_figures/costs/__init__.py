"""What time and memory the program takes, measured for the figures."""
