"""Trained models in one form: sources, describe, and how one pass is read (tape, reader)."""
