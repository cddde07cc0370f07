"""Data of one regression whose coefficients have a spike-and-slab prior, and sweeps over these."""

import copy

from typing import Self

import numpy as np

__all__ = ["GRAM_LIMIT", "RegressionData"]

GRAM_LIMIT = 8000  # predictors beyond which X'X (half a gigabyte) is not formed

_NOT_FINITE = "predictors or response of a spike-and-slab regression are not finite"


class RegressionData:
    """Predictors and response of one regression, as the kernels need them.

    Parameters
    ----------
    rows : (n, p) array
    response : (n,) array
    logistic : bool
    """

    def __init__(self, rows: np.ndarray, response: np.ndarray, logistic: bool):
        n, p = len(response), rows.shape[1]
        rows = np.broadcast_to(np.asarray(rows, float), (n, p))
        self.logistic = logistic
        if not np.isfinite(rows).all():
            raise ValueError(_NOT_FINITE)
        self.columns = np.ascontiguousarray(rows.T)
        self.gram: np.ndarray | None = None
        self.squares: np.ndarray | None = None
        if not logistic and p <= GRAM_LIMIT:
            self.gram = self.columns @ rows
            self.diagonal = self.gram.diagonal().copy()
            self.total = self.columns.sum(axis=1)
        self._respond(response)

    def with_response(self, response: np.ndarray) -> Self:
        """Return the regression of another response on these predictors, with shared products."""
        other = copy.copy(self)
        other._respond(response)
        return other

    def _respond(self, response):
        self.response = np.ascontiguousarray(response, float)
        if not np.isfinite(self.response).all():
            raise ValueError(_NOT_FINITE)
        if self.logistic and not np.isin(self.response, (0.0, 1.0)).all():
            raise ValueError("the response of a logistic regression must be 0 or 1")
        self.rest = self.score = None
        if self.gram is not None:
            self.cross = self.columns @ self.response

    def sweep(self, rng, w, inclusion, rest, noise, slab, log_odds, swaps):
        """Draw indicators and coefficients once, in place.

        Parameters
        ----------
        rng : numpy.random.Generator
        w : (p,) float64, changed in place
            Coefficients; those that are not zero are active.
        inclusion : (p,) float64, written
            Conditional inclusion probabilities.
        rest : float or (n,) array
            Sum of the other terms of the mean.
        noise : float or (n,) array
            Standard deviation; not used by a logistic regression.
        slab, log_odds : (p,) float64
            Variances of the slab, prior log odds of inclusion.
        swaps : int
            Maximum number of active predictors that are exchanged.
        """
        from bayesstruct.sparse.kernels import polya_gamma, spike_slab_regression
        from bayesstruct.sparse.kernels import required as required_moves

        prior = (slab, log_odds, swaps)
        required = np.isinf(log_odds).all() and len(log_odds) > 0
        if self.gram is not None and np.size(noise) == 1:
            score = self._score(np.asarray(rest, float))
            noise = float(np.ravel(noise)[0])
            if required:
                required_moves.required_sweep(
                    rng, w, inclusion, self.gram, score, noise, slab, log_odds
                )
                return
            spike_slab_regression.gaussian_sweep(
                rng, w, inclusion, self.gram, self.diagonal, score, noise, *prior
            )
            return
        self.square()
        n = len(self.response)
        rest = np.broadcast_to(rest, (n,)) * 1.0
        if self.logistic and required:
            required_moves.required_logistic_sweep(
                rng, w, inclusion, self.columns, self.response, rest, slab, log_odds
            )
            return
        if self.logistic:
            polya_gamma.logistic_sweep(
                rng, w, inclusion, self.columns, self.squares, self.response, rest, *prior
            )
            return
        weights = np.broadcast_to(np.square(1.0 / np.asarray(noise)), (n,)) * 1.0
        target = weights * (self.response - rest)
        spike_slab_regression.weighted_sweep(
            rng, w, inclusion, self.columns, self.squares, weights, target, *prior
        )

    def draw_deviations(
        self,
        rng: np.random.Generator,
        w: np.ndarray,
        rest: np.ndarray,
        scale: np.ndarray,
        freedom: np.ndarray,
    ) -> np.ndarray:
        r"""Draw the standard deviation of each response that has a t distribution.

        It is normal with variance :math:`\sigma^2 / \lambda`, :math:`\lambda \sim \mathrm{Gamma}(\nu / 2, \nu / 2)`, and given
        its residual r :math:`\lambda \sim \mathrm{Gamma}((\nu + 1) / 2, (\nu + r^2 / \sigma^2) / 2)`.

        Parameters
        ----------
        rng : numpy.random.Generator
        w : (p,) ndarray
            Coefficients.
        rest, scale, freedom : ndarray
            Other terms of the location, scale and degrees of freedom; one for all rows or one for each.
        """
        residual = (self.response - rest - w @ self.columns) / scale
        shape = np.broadcast_to(0.5 * (freedom + 1.0), residual.shape)
        precision = rng.standard_gamma(shape) / (0.5 * (freedom + np.square(residual)))
        return scale / np.sqrt(precision)

    def normal_rows(
        self,
        rng: np.random.Generator,
        w: np.ndarray,
        rest: np.ndarray,
        noise: np.ndarray,
        freedom: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Precisions of the rows, and what the coefficients explain, of a normal regression that has these responses.

        Auxiliary variables (Polya-Gamma of 0/1 responses, precisions of Student-t ones) are drawn given the coefficients.

        Parameters
        ----------
        rng : numpy.random.Generator
        w : (p,) ndarray
        rest, noise : ndarray
            Other terms of the mean, and scale; one for all rows or one for each.
        freedom : ndarray, optional
            Degrees of freedom of Student-t responses.
        """
        from bayesstruct.sparse.kernels.polya_gamma import draw_polya_gammas

        rest = np.broadcast_to(rest, self.response.shape) * 1.0
        if self.logistic:
            precision = np.empty(len(rest))
            draw_polya_gammas(rng, w @ self.columns + rest, precision)
            return precision, (self.response - 0.5) / precision - rest
        if freedom is not None:
            noise = self.draw_deviations(rng, w, rest, noise, freedom)
        return np.broadcast_to(1.0 / np.square(noise), rest.shape), self.response - rest

    def square(self) -> None:
        """Square the predictors for sweeps with unequal weights, unless it is done."""
        if self.squares is None:
            binary = ((self.columns == 0.0) | (self.columns == 1.0)).all()
            self.squares = self.columns if binary else np.square(self.columns)

    def _score(self, rest):
        """``X' (y - rest)``, computed again only when ``rest`` has changed."""
        if self.score is None or not np.array_equal(rest, self.rest):
            self.rest = rest.copy()
            if rest.size == 1:
                self.score = self.cross - float(rest.ravel()[0]) * self.total
            else:
                self.score = self.columns @ (self.response - rest)
        return self.score
