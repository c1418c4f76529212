"""Times in order: those of a log nearly are, and then moving each past the few later ones before it is the fastest."""

import numpy as np
from numba import njit

from analysis.occupancy.curve import Floats, Ints
