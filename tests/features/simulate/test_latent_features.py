import numpy as np
import pandas as pd
import pytest

import bayesstruct as bs

from bayesstruct.simulate import latent_features


def test_the_table_is_features_times_loadings_plus_noise():
    made = latent_features(4000, 5, n_features=3, noise=0.3, random_seed=1)
    rest = made.data.to_numpy() - made.feature.to_numpy() @ made.loading.to_numpy()
    assert abs(rest.std() - 0.3) < 0.01
    assert abs(made.feature.to_numpy().mean() - 0.5) < 0.02
    assert repr(made) == "LatentFeatureSimulation(4,000 x 5 table, 3 features)"
    again = latent_features(4000, 5, n_features=3, noise=0.3, random_seed=1)
    pd.testing.assert_frame_equal(made.data, again.data)


def test_with_alpha_the_features_are_those_of_a_buffet():
    counts = [latent_features(10, alpha=1.5, random_seed=s).feature.shape[1] for s in range(400)]
    mean = 1.5 * (1 / np.arange(1, 11)).sum()
    assert abs(np.mean(counts) - mean) < 4 * np.sqrt(mean / 400)


def test_given_loadings_and_missing_values():
    loading = pd.DataFrame([[1.0, 2, 3]], columns=list("abc"))
    made = bs.simulate.latent_features(50, loading=loading, missing=0.2, random_seed=0)
    assert list(made.data.columns) == list("abc")
    assert made.data.isna().to_numpy().sum() == 30
    assert made.feature.shape == (50, 1)
    assert latent_features(5, n_features=0, random_seed=0).feature.shape == (5, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n": 0}, "`n`"),
        ({"probability": 1.5}, "probability"),
        ({"noise": -1.0}, "noise"),
        ({"loading_scale": np.nan}, "loading_scale"),
        ({"missing": 1.0}, "missing"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": 1.0, "n_features": 2}, "leave out"),
        ({"loading": [[1.0]], "n_features": 2}, "`n_features` is 2"),
        ({"loading": [1.0]}, "matrix"),
        ({"n_features": -1}, "`n_features`"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        latent_features(**{"n": 5, **options})
