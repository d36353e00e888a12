"""What every package of the project leans on: errors, files, workers, sizes."""
