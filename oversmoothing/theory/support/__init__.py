"""What every package of the project leans on: errors, files, provenance."""
