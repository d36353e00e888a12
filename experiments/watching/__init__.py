"""Smoothing watched while a model trains: the stream and the spectrum of H by layer, at a few steps."""
