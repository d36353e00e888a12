"""A structured fuzzer of the command line: `python -m tests.fuzz 20000 --seed 0`."""
