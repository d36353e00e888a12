"""The theory of oversmoothing for X -> X + A X W: spectra, verdicts, certificates, proofs."""
