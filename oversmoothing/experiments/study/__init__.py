"""The study of trained models: runs that differ in one factor, hypotheses written before them."""
