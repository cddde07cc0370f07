import numpy as np
import pytest

from matplotlib.axes import Axes
from tools.features import feature_posterior, shuffled_features

from bayesstruct.modes.summary import summary
from bayesstruct.plots import plot_feature_count, plot_features

Z = np.column_stack([np.arange(20) < 15, np.arange(20) % 2 == 0])
LOADING = np.array([[3.0, 0, 0, 1, 0, 0], [0, -2, 0, 1, 0, 1]])


@pytest.fixture(scope="module")
def result():
    return shuffled_features(Z, LOADING)


def test_images_have_the_mean_loadings(result):
    pictures = plot_features(result, shape=(2, 3))
    assert len(pictures) == 2
    for ax, loading in zip(pictures, LOADING, strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), loading.reshape(2, 3), atol=0.1)
    assert "P = 1" in pictures[0].get_title()
    assert "75 % of rows" in pictures[0].get_title()


def test_without_a_shape_one_heat_map_shows_all(result):
    ax = plot_features(result)
    assert isinstance(ax, Axes)
    np.testing.assert_allclose(ax.images[0].get_array(), LOADING, atol=0.1)
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"x{j}" for j in range(6)]
    assert len(plot_features(result, n=1).get_yticks()) == 1


def test_features_without_loadings_show_who_has_them():
    tree = feature_posterior(np.broadcast_to(Z, (2, 5, 20, 2)))
    ax = plot_features(tree)
    np.testing.assert_array_equal(ax.images[0].get_array(), Z.T)
    with pytest.raises(ValueError, match="no loadings"):
        plot_features(tree, shape=(2, 3))


def test_without_features_the_main_figure_is_their_number():
    empty = feature_posterior(np.zeros((2, 5, 20, 2), int))
    with pytest.raises(ValueError, match="nothing to draw"):
        plot_features(empty)
    assert summary(empty).plot().get_xlabel() == "number of features"


@pytest.mark.parametrize(
    ("options", "message"),
    [({"shape": (2, 2)}, "does not make 6"), ({"n": 0}, "from 1 up"), ({"shape": 6}, "`shape`")],
)
def test_options_that_do_not_fit(result, options, message):
    with pytest.raises(ValueError, match=message):
        plot_features(result, **options)


def test_count_with_its_prior(result):
    assert len(plot_feature_count(result).patches) == 3
    tree = result.copy()
    tree["prior"] = result["posterior"].copy()
    ax = plot_feature_count(tree)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0, 0, 1])
