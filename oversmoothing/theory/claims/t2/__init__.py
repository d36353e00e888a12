"""T2: dominance for real spectra."""
