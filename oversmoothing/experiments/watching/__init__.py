"""Smoothing watched while a model trains: the stream and the spectrum of H, layer by layer."""
