"""Simulated layers, their metrics and spectra, and sweeps over drawn cases."""
