"""Two models in one context: clashes are explained, and each part of a result is read by itself."""

import numpy as np
import pandas as pd
import pymc as pm
import pytest

import bayesstruct as bs


def numbers(columns="abc"):
    rng = np.random.default_rng(3)
    return pd.DataFrame(rng.normal(size=(30, len(columns))), columns=list(columns))


def test_clashing_names_and_columns_are_explained():
    with pm.Model():
        bs.models.gaussian_graphical(numbers())
        with pytest.raises(
            ValueError, match=r'pm.Model\("first"\): bs.models.gaussian_graphical.*bs.submodel'
        ):
            bs.models.gaussian_graphical(numbers())
    with pm.Model(), pm.Model("one"):
        bs.models.gaussian_graphical(numbers())
        with pytest.raises(ValueError, match=r"different labels along 'node'.*pm.Model of its own"):
            bs.models.gaussian_neighbourhoods(numbers("de"))


@pytest.mark.chain
def test_the_parts_of_a_result_are_those_of_the_models_alone():
    options = {
        "draws": 30,
        "tune": 20,
        "chains": 2,
        "cores": 1,
        "random_seed": 1,
        "progressbar": False,
    }
    options["compute_convergence_checks"] = False
    with pm.Model():
        with pm.Model("left"):
            bs.models.gaussian_graphical(numbers())
        with pm.Model("right"):
            bs.models.bayesian_network(2.0 * numbers())
        idata = pm.sample(**options)
    left, right = bs.submodel(idata, "left"), bs.submodel(idata, "right")
    with bs.models.gaussian_graphical(numbers()):
        alone = pm.sample(**options)
    assert set(left["posterior"].data_vars) == set(alone["posterior"].data_vars)
    assert set(left["constant_data"].data_vars) == set(alone["constant_data"].data_vars)
    np.testing.assert_array_equal(left["observed_data"]["x"], numbers())
    np.testing.assert_allclose(
        left["constant_data"]["edge_prior"], alone["constant_data"]["edge_prior"]
    )
    assert len(bs.edge_table(left)) == 3
    assert len(bs.arc_table(right)) == 6
    assert bs.check(left).rows
    for reader in (bs.edge_table, bs.predictability, bs.evidence_limits):
        with pytest.raises(ValueError, match=r"bs.submodel\(idata, 'left'\)"):
            reader(idata)
    assert {*bs.predictability(left)["node"]} == {*"abc"}
    assert len(bs.evidence_limits(left)) == 3
    with pytest.raises(
        ValueError, match="no variables of a model 'middle'; models in it are 'left', 'right'"
    ):
        bs.submodel(idata, "middle")
