"""Step of binary matrices with a given number of columns."""

from pymc.step_methods.compound import Competence
from pymc.step_methods.metropolis import BinaryGibbsMetropolis

from bayesstruct.core.gibbs import register_step
from bayesstruct.core.recognition import is_op
from bayesstruct.features.priors.finite_features import FiniteFeaturesRV

__all__ = ["FiniteFeatureMetropolis"]


@register_step
class FiniteFeatureMetropolis(BinaryGibbsMetropolis):
    """Metropolis flips of the entries of a :class:`bayesstruct.distributions.FiniteFeatures`, one after the other.

    Assigned by ``pm.sample``. Right for any model, at one evaluation of its density for each entry; PyMC knows
    the sampler, but not that this distribution is binary.
    """

    name = "finite_feature_metropolis"

    @staticmethod
    def competence(var):
        """Ideal for these matrices."""
        return Competence.IDEAL if is_op(var, FiniteFeaturesRV) else Competence.INCOMPATIBLE
