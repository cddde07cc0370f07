"""Tables of several series."""

import numpy as np

from bayesstruct.series.data import SeriesTable
from bayesstruct.simulate import markov_transitions as simulate


def test_the_ways_to_give_series_are_the_same():
    made = simulate(20, 3, random_seed=2)
    tables = {name: part.drop(columns="series") for name, part in made.data.groupby("series")}
    a = SeriesTable.read(made.data.sample(frac=1, random_state=0).sort_index(), "series")
    b = SeriesTable.read(tables)
    c = SeriesTable.read([t.to_numpy() for t in tables.values()])
    for other in (b, c):
        np.testing.assert_allclose(a.standardized, other.standardized)
        assert a.lengths == other.lengths == (20, 20, 20)
    assert a.labels == b.labels == ("a", "b", "c")
    assert SeriesTable.read([[1.0, 2, 3], [4.0, 5]]).lengths == (3, 2)
