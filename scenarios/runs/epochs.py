"""How long the epochs of a run are."""

import numpy as np
import pandas as pd


def epoch_length_s(epochs: pd.DataFrame) -> float:
    """Return the length of a run's epochs in seconds; NaN of a single one.

    Parameters
    ----------
    epochs : start_s; table `epochs`, rows in any order

    Examples
    --------
    >>> epoch_length_s(pd.DataFrame({"start_s": [300.0, 0.0, 600.0]})), epoch_length_s(pd.DataFrame({"start_s": [0.0]}))
    (300.0, nan)
    """
    start_s = np.sort(epochs["start_s"].to_numpy(np.float64))
    return float(start_s[1] - start_s[0]) if start_s.size > 1 else float("nan")
