r"""Local scores of linear structural equations: approximate log evidences of one column given its parents.

They serve all searches and samplers of :mod:`bayesstruct.networks`. With normal noise, free variances and normal slabs they are the
score BGe; otherwise they are Laplace approximations (:mod:`bayesstruct.sem.kernels.fits`), of few rows sharpened by importance
sampling with fixed numbers, and a sampler has to weigh what it draws by them (:mod:`bayesstruct.sem.kernels.chain`). Where noise may be
normal or not they are those of both cases, weighed by the prior.

With equal or known variances the scores are those given a *reference*: a log scale for each column, and a shape of a mixture. Where
the share of columns with normal noise is random they are those given a share, the ``normal_probability`` of the settings.
"""

import math

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from scipy.special import logsumexp

from bayesstruct.networks.kernels.scores.base import Score, finite_numbers
from bayesstruct.sem.kernels.errors import start_shape
from bayesstruct.sem.kernels.families import Family, mixed_evidence, normal_settings
from bayesstruct.sem.kernels.fits import fit_family, is_exact, parameter_count
from bayesstruct.sem.kernels.proposals import even_numbers, give_shared, weigh
from bayesstruct.sem.kernels.refinement import is_large, refined
from bayesstruct.sem.kernels.settings import FREE, MIXTURE, SemSettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike


__all__ = ["SemScores"]

_FEW_ROWS, _EVEN = 200, 64  # rows up to which evidences are sharpened, and by how many draws
_FAMILIES = 2000  # fits kept with their tables
_SCORES = 2_000_000  # scores and modes kept


class SemScores(Score):
    """Approximate log evidences of linear structural equations.

    Parameters
    ----------
    table : (n, d) array_like of float
        Standardised columns; with equal or known variances columns that are centred and divided by one number.
    settings : SemSettings
        See :func:`bayesstruct.sem.kernels.settings.sem_settings`.
    interventions : (n, d) bool array_like, optional
        True where a column was set from outside.
    relative : (d,) array_like, optional
        Known noise variances up to a factor; ones by default.
    log_scale : float
        Reference of the log scale that all columns share, with equal or known variances.
    shape : (S,) array_like, optional
        Reference of the shape of a mixture that all columns share; its prior by default.

    Attributes
    ----------
    d : int
        Number of columns.
    n_rows : (d,) int array
        Rows in which each column was not set.
    settings, log_scale, shape
        As given.
    log_relative : (d,) array
        Half the logarithms of `relative`.

    Raises
    ------
    ValueError
        If a value is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from bayesstruct.sem.kernels.settings import sem_settings
    >>> x = np.random.default_rng(0).laplace(size=(500, 2))
    >>> x[:, 1] += x[:, 0]
    >>> score = SemScores((x - x.mean(0)) / x.std(0), sem_settings(2))
    >>> forward = score.local(0, ()) + score.local(1, (0,))
    >>> backward = score.local(1, ()) + score.local(0, (1,))
    >>> bool(forward > backward + 5)
    True
    """

    def __init__(
        self,
        table: "ArrayLike",
        settings: SemSettings,
        *,
        interventions: "ArrayLike | None" = None,
        relative: "ArrayLike | None" = None,
        log_scale: float = 0.0,
        shape: "ArrayLike | None" = None,
    ):
        self.table = finite_numbers(table)
        super().__init__(self.table.shape, interventions)
        self.settings, self.log_scale = settings, float(log_scale)
        self.relative = np.ones(self.d) if relative is None else np.asarray(relative, np.float64)
        self.log_relative = 0.5 * np.log(self.relative)
        self.shape = start_shape(settings) if shape is None else np.asarray(shape, np.float64)
        self.interventions = interventions
        self._columns = [np.ascontiguousarray(self.table[kept].T) for kept in self._kept]
        self._known: dict = {}
        self._families: OrderedDict = OrderedDict()

    def at(self, log_scale: float, shape: "ArrayLike | None" = None) -> "SemScores":
        """Return the scores of the same table at another reference."""
        return SemScores(
            self.table,
            self.settings,
            interventions=self.interventions,
            relative=self.relative,
            log_scale=log_scale,
            shape=shape,
        )

    def at_share(self, share: float) -> "SemScores":
        """Return the scores of the same table at another probability of normal noise, without new fits."""
        settings = self.settings._replace(normal_probability=share)
        out = SemScores(
            self.table, settings, interventions=self.interventions, relative=self.relative
        )
        out._known = self._known
        return out

    def family(self, child: int, parents: "Iterable[int]") -> Family:
        """Return the table, the fit and the score of a column given its parents.

        Parameters
        ----------
        child : int
        parents : iterable of int
            In ascending order.

        Returns
        -------
        Family
        """
        key = int(child), tuple(int(j) for j in parents)
        if key in self._families:
            self._families.move_to_end(key)
            return self._families[key]
        y, design = self._design(*key)
        own, other, mode = self._evidences(*key)
        fit = self._fit(key[0], y, design, self.settings, mode)
        if not is_large(*self.table.shape):
            fit = refined(y, design, fit, self.settings)
        found = Family(y, design, fit, own, self.settings)
        p = self.settings.normal_probability
        if p > 0.0:
            normal = self._fit(key[0], y, design, normal_settings(self.settings), None)
            found = found._replace(normal=normal, normal_evidence=other, probability=p)
        self._families[key] = found
        if len(self._families) > _FAMILIES:
            self._families.popitem(last=False)
        return found

    def _design(self, child, parents):
        columns = self._columns[self._group[child]]
        design = np.ones((len(parents) + 1, columns.shape[1]))
        design[1:] = columns[list(parents)]
        return columns[child], design

    def _fit(self, child, y, design, settings, start):
        return fit_family(
            y,
            design,
            settings,
            tau=self.log_scale + self.log_relative[child],
            shape=self.shape if settings.variances != FREE else None,
            start=start,
        )

    def _scored(self, child, parents):
        """Score of a family."""
        own, normal, _ = self._evidences(child, parents)
        p = self.settings.normal_probability
        return mixed_evidence(p, own, normal) if p > 0.0 else own

    def _evidences(self, child, parents):
        """Log evidences of a family given its kind of noise, and its mode; fits do not depend on the probability of normal noise."""
        key = child, parents
        if key not in self._known:
            if len(self._known) > _SCORES:
                self._known.clear()
            y, design = self._design(child, parents)
            start = self._start(child, parents)
            own, fit = self._evidence(child, y, design, self.settings, start)
            normal = -math.inf
            if self.settings.normal_probability > 0.0:
                normal = self._evidence(child, y, design, normal_settings(self.settings))[0]
            self._known[key] = own, normal, fit.mode
        return self._known[key]

    def _evidence(self, child, y, design, settings, start=None):
        """Log evidence and fit of a family, given the kind of noise."""
        fit = self._fit(child, y, design, settings, start)
        if not len(y):
            return 0.0, fit
        if len(y) <= _FEW_ROWS and not is_exact(settings):
            return self._sharpened(child, y, design, settings, fit), fit
        return fit.log_evidence, fit

    def _start(self, child, parents):
        """Mode with one parent less, where it is known; a mixture begins elsewhere."""
        if self.settings.noise == MIXTURE and self.settings.variances == FREE:
            return None
        for a in range(len(parents)):
            known = self._known.get((child, parents[:a] + parents[a + 1 :]))
            if known is not None:
                return np.insert(known[-1], a + 1, 0.0)
        return None

    def _sharpened(self, child, y, design, settings, fit):
        k = len(design) - 1
        theta = np.zeros((_EVEN, parameter_count(settings, k)))
        tau = self.log_scale + self.log_relative[child]
        give_shared(settings, theta, k, tau, self.shape)
        numbers = even_numbers(settings, k, len(y), _EVEN)
        weights = weigh(y, design, fit, settings, numbers, theta)
        out = float(logsumexp(weights) - np.log(_EVEN))
        return out if np.isfinite(out) else fit.log_evidence

    def _fill(self, child, candidates, fixed, most, out):
        order = [int(j) for j in candidates]
        for m in range(len(out)):
            chosen = [j for b, j in enumerate(order) if m >> b & 1]
            size = len(chosen) + len(fixed)
            if size > most:
                out[m] = -np.inf
                continue
            parents = tuple(sorted([*chosen, *(int(j) for j in fixed)]))
            out[m] = self._scored(int(child), parents)
