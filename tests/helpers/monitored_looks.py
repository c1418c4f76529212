"""Tables of looks, and the recursion that says how often a Brownian motion leaves a boundary at one of them."""

import numpy as np
import pandas as pd
from scipy.stats import norm


def looks(**columns):
    count = len(columns.get("change", (0.0, 0.02, 0.001)))
    table = {"change": [0.0, 0.02, 0.001], "error": [0.005] * count, "freedom": 30.0, "share": [0.2, 0.6, 1.0]}
    return pd.DataFrame(table | columns)


def crossing(multipliers, information):
    """Chance that a Brownian motion leaves the boundary at one of the looks, by recursive integration.

    As Armitage, McPherson and Rowe 1969.
    """
    reach = 9 * np.sqrt(information[-1])
    grid = np.linspace(-reach, reach, 2001)
    step = grid[1] - grid[0]
    density = norm.pdf(grid, 0, np.sqrt(information[0]))
    left = 0.0
    for k, critical in enumerate(multipliers):
        if k:
            kernel = norm.pdf(grid, 0, np.sqrt(information[k] - information[k - 1])) * step
            density = np.convolve(density, kernel, mode="same")
        out = np.abs(grid) > critical * np.sqrt(information[k])
        left += density[out].sum() * step
        density = np.where(out, 0.0, density)
    return left
