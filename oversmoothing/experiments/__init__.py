"""Models trained here and measured against the theory: digits ViTs, their spectra, Table 1."""
