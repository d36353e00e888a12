"""Several residual streams, mixed in every layer: spectra, verdicts, certificates (T13)."""
