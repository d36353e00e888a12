"""The study of trained models: runs that differ in one factor, hypotheses written before them."""

from pathlib import Path

# What runs of the study and of its commands left, which comes with the package.
RECORDED = Path(__file__).with_name("results")
