"""The matrix of rows that are in one cluster."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

import bayesstruct as bs


def result(labels):
    cluster = (("chain", "draw", "observation"), np.asarray(labels))
    return xr.DataTree.from_dict({"posterior": xr.Dataset({"cluster": cluster})})


#: Rows 0, 2, 4 and 1, 3: row 4 changes in a quarter of the draws, rows 1 and 3 never.
LABELS = [[[0, 1, 0, 1, 0], [1, 0, 1, 0, 1]], [[0, 1, 0, 1, 0], [0, 1, 0, 1, 1]]]


def test_cells_are_the_probabilities_in_the_order_of_the_clusters():
    ax = bs.plot_clusters(result(LABELS))
    rows = [int(label.get_text()) for label in ax.get_yticklabels()]
    assert rows == [0, 2, 4, 1, 3]
    expected = bs.co_clustering(result(LABELS)).to_numpy()[np.ix_(rows, rows)]
    np.testing.assert_allclose(ax.images[0].get_array(), expected)
    assert [text.get_text() for text in ax.texts] == ["1", "2", "cluster"]
    assert [line.get_ydata()[0] for line in ax.lines[:1]] == [2.5]
    assert bs.cluster_table(result(LABELS))["size"].tolist()[0] == pytest.approx(2.75)


def test_many_rows_have_no_names():
    labels = np.repeat([0, 1, 2], [30, 20, 10])
    _, ax = plt.subplots()
    assert bs.plot_clusters(result(np.broadcast_to(labels, (2, 4, 60))), ax=ax) is ax
    assert not len(ax.get_xticks())
    assert ax.get_xlabel() == "60 rows"
    assert [text.get_text() for text in ax.texts] == ["1", "2", "3", "cluster"]
    assert bs.summary(result(LABELS)).plot().images
