"""What there is to choose from: the models, in the order in which they come."""

from dataclasses import dataclass

__all__ = ["MODELS", "PRIORS", "Entry"]

PRIORS = ("spike_slab", "laplace")


@dataclass(frozen=True)
class Entry:
    """One model.

    Attributes
    ----------
    purpose : str
        The table that it is for.
    priors : tuple of str
    ready : bool
    """

    purpose: str
    priors: tuple[str, ...] = ()
    ready: bool = False

    @property
    def state(self) -> str:
        """``ready`` or ``planned``."""
        return "ready" if self.ready else "planned"


MODELS = {
    "gaussian_graphical": Entry(
        "continuous columns: who depends on whom, given all others", PRIORS, ready=True
    ),
    "gaussian_neighbourhoods": Entry("many continuous columns, one regression each"),
    "ising_neighbourhoods": Entry("many binary columns, one regression each"),
    "ising": Entry("binary columns: symptoms, votes, presence or absence"),
    "pairwise_mrf": Entry("categorical and ordinal columns"),
    "bayesian_network": Entry("directed graphs: which way does it go"),
    "latent_features": Entry("hidden binary features behind continuous columns"),
    "link_prediction": Entry("missing links of a network"),
}
