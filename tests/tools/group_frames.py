"""A table of two groups of rows in units of its own."""

import numpy as np
import pandas as pd

NAMES = ["mood", "sleep", "worry", "energy"]
QUIET = {"progressbar": False, "chains": 2, "cores": 1}


def frame(n=150, gaps=False, seed=1):
    """The first two columns depend on each other with another sign in the second group."""
    rng = np.random.default_rng(seed)
    z, second = rng.normal(size=(n, 4)), np.arange(n) % 3 == 0
    z[:, 1] += 1.2 * z[:, 0] * np.where(second, -1, 1)
    z[:, 3] += 0.9 * z[:, 2]
    table = pd.DataFrame([100.0, -5.0, 0.0, 1e3] + z * [10.0, 0.1, 1.0, 50.0], columns=NAMES)
    table.loc[second, "mood"] += 200.0  # means may differ as they like
    if gaps:
        table.iloc[3, 1] = table.iloc[7, 0] = table.iloc[7, 3] = np.nan
    return table.assign(site=np.where(second, "b", "a"))
