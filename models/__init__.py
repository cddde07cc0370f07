"""Models: one file for each structure-learning problem, each an ordinary ``pm.Model``."""

from bayesstruct.models.gaussian_graphical import gaussian_graphical

__all__ = ["gaussian_graphical"]
