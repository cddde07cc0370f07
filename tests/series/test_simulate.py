"""Simulated series that share behaviours."""

import numpy as np
import pandas as pd
import pytest

from bayesstruct.simulate import markov_transitions as simulate


def test_series_have_their_behaviours_and_options_are_checked():
    made = simulate(2000, 3, stay=0.8, random_seed=4)
    assert made.feature.any(axis=0).all()
    assert made.feature.any(axis=1).all()
    state = made.state.to_numpy()
    own = made.feature.loc[made.data["series"]].to_numpy()
    places = made.feature.columns.get_indexer(state)
    assert own[range(len(state)), places].all()
    error = made.data[["x0", "x1"]].to_numpy() - made.mean.loc[state].to_numpy()
    assert (abs(error.mean(axis=0)) < 4.5 / np.sqrt(6000)).all()
    pd.testing.assert_frame_equal(made.data, simulate(2000, 3, stay=0.8, random_seed=4).data)
    for options, words in [
        ({"n": 2.5}, "`n`"),
        ({"n": "9"}, "`n`"),
        ({"n_series": 0}, "`n_series`"),
        ({"p": True}, "`p`"),
        ({"n_behaviours": 1.5}, "`n_behaviours`"),
        ({"stay": 2}, "`stay`"),
        ({"probability": np.nan}, "`probability`"),
        ({"spread": -1.0}, "`spread`"),
        ({"random_seed": "x"}, "`random_seed`"),
    ]:
        with pytest.raises((TypeError, ValueError), match=words):
            simulate(**{"n": 10, **options})
