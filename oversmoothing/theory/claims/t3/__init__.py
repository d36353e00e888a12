"""T3: dominance for complex spectra."""
