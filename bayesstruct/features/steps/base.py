"""Base of the steps that draw one set of latent features with the variables that belong to it."""

import numpy as np

from bayesstruct.core.expressions import Expressions
from bayesstruct.core.gibbs import GibbsStep
from bayesstruct.core.missing import observed_values
from bayesstruct.core.recognition import (
    NotRecognized,
    check_drawn,
    depends_on,
    only_one,
    refusals,
)
from bayesstruct.features.priors.indian_buffet import IndianBuffetRV

__all__ = ["FeatureStep", "is_initial", "random_left_order", "too_many_features"]


class FeatureStep(GibbsStep):
    """Step of an IndianBuffet and the variables that are drawn with it.

    A subclass defines ``supported``, a sentence about the models that it accepts; ``recognise(model, feature)``,
    the recogniser of its structure, which returns an object with ``variables``, the features first, and ``rows``, the
    observed variable; ``tensors(part)``, expressions that may not depend on these variables and whose values
    ``self.values`` gives at a point; and ``observe(part, x)``, called once with the observed values.
    """

    stats_dtypes_shapes: dict = {"n_features": (int, [])}
    supported = ""
    #: What else to try, in the error about too many features.
    advice = ""

    def prepare(self, model, drawn):
        """Recognise the features among `drawn` and what belongs to them."""
        feature = only_one(drawn, IndianBuffetRV, "sets of features", self.supported)
        with refusals(feature, self.supported):
            part = self.recognise(model, feature)
            self._check(model, part, drawn)
        self.names = tuple(rv.name for rv in part.variables)
        self.matrix = feature.owner.op.matrix
        self.values = Expressions(model, self.tensors(part), self.compile_kwargs, user=feature.name)
        observed = Expressions(model, [observed_values(model, part.rows)], self.compile_kwargs)
        self.observe(part, np.asarray(observed(model.initial_point())[0]))

    def _check(self, model, part, drawn):
        """Refuse variables that cannot be drawn together."""
        check_drawn(part.variables, drawn)
        for rv in part.variables:
            if depends_on(self.tensors(part), rv):
                raise NotRecognized(f"hyperparameters depend on {rv.name!r}")
        if any(rv not in model.free_RVs for rv in part.variables):
            raise NotRecognized("some of these are observed")
        if part.rows not in model.observed_RVs:
            raise NotRecognized(f"{part.rows.name!r} is not observed")

    def _new_rate(self, alpha, concentration, discount) -> float:
        """Prior mean of the number of features that only one row has."""
        from bayesstruct.features.kernels.indian_buffet import new_dish_rates

        return float(alpha * new_dish_rates(self.matrix[0], concentration, discount)[-1])

    def _check_number(self, enough):
        """Raise if the maximum number of features was not enough."""
        if not enough:
            raise too_many_features(self.names[0], self.matrix[1], self.advice)

    def _order(self, z) -> np.ndarray:
        """Left order of the columns, see `random_left_order`."""
        return random_left_order(self.rng, z)


def too_many_features(name: str, most: int, advice: str = "") -> ValueError:
    """Error of a chain that needs more than the maximum number of features; says how to keep its draws.

    Parameters
    ----------
    name : str
        Of the features.
    most : int
        The maximum number.
    advice : str
        What else to try.
    """
    return ValueError(
        f"there are more than {most} features in {name!r}: set `max_features` to more{advice}. pm.sample loses the draws "
        "before such an error; bs.sample(checkpoint=...) keeps them, and bs.load_checkpoint reads them"
    )


def random_left_order(rng: np.random.Generator, z: np.ndarray) -> np.ndarray:
    """Order of the columns of a binary matrix as in an IndianBuffet; equal columns come in random order.

    What belongs to equal columns is exchangeable.

    Parameters
    ----------
    rng : numpy.random.Generator
    z : (n, K) ndarray of 0 and 1

    Returns
    -------
    (K,) ndarray of int
    """
    from bayesstruct.features.kernels.indian_buffet import left_order

    order = rng.permutation(z.shape[1])
    return order[left_order(z[:, order])]


def is_initial(feature: np.ndarray) -> bool:
    """Whether there is one feature, which all rows have: the initial point of an IndianBuffet."""
    return bool(feature[:, 0].all() and not feature[:, 1:].any())
