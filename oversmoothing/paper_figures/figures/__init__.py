"""The figures, one file each: its name is the name of the figure."""
