"""Trained models in one form: sources, adapters (by families), describe (weights), model."""
