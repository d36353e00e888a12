"""The arrays that functions take and return, where shapes are said in words."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
