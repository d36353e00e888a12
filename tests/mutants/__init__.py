"""Mutation testing: does a broken formula turn a test red? `make mutants` (see __main__)."""
