"""The tests compute on one thread each: they run in as many processes as there are processors."""

import os

# Before NumPy and torch come. A second thread of linear algebra waits, at every small product, for
# a processor that another process has: seen, 234 s in place of 4.
for _pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_pool, "1")
