"""Rigorous enclosures of spectra in float64, and the verdicts they certify (T10)."""
