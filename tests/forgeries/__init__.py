"""Certificates forged in every part are refused, honest ones are accepted."""
