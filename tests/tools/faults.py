"""Seeded faults: one wrong line each, and the tests that must notice it.

    python tests/tools/faults.py                    # all faults, by the tests as they are
    python tests/tools/faults.py bge nuclear        # faults whose names begin so
    python tests/tools/faults.py --tests COMMIT     # all faults, by the tests of another commit
    python tests/tools/faults.py --lane ""          # by all tests, not only those of `.ci/run`

A fault is put into a copy of the repository, and the test files that belong to it run there until one
test fails. The copy is kept between faults, so that machine code of what did not change is reused.
"""

import argparse
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LANES = "not slow"  # what `.ci/run` runs
NO_END = "NO END: the tests ran out of time, which shows nothing"
COPIED = ("bayesstruct", "models", "tests", "docs", "README.md")
COPIED += ("pyproject.toml", "setup.py", "uv.lock", ".python-version")


@dataclass(frozen=True)
class Fault:
    """One line of a file made wrong.

    Attributes
    ----------
    name : str
        First word: what is wrong.
    file : str
        Below the root of the repository.
    old, new : str
        A fragment that occurs once in the file, and the wrong one.
    tests : str
        Test files or folders below ``tests``, the likeliest first, separated by blanks.
    """

    name: str
    file: str
    old: str
    new: str
    tests: str


FAULTS = [
    # classifiers
    Fault(
        "ways: trees through a node count twice",
        "bayesstruct/graphs/spanning_trees/elimination.py",
        "way = scaled[v, i] * x * _factor(units, v, j, i, base)",
        "way = scaled[v, i] * x * _factor(units, v, j, i, base) * 2.0",
        "graphs/spanning_trees classifiers",
    ),
    Fault(
        "nats: information of numbers without the half",
        "bayesstruct/trees/kernels/information.py",
        "nats = np.maximum(-0.5 * np.log(left), 0.0)",
        "nats = np.maximum(-1.0 * np.log(left), 0.0)",
        "trees/solvers/test_forests.py",
    ),
    Fault(
        "contracted: a number is joined to the wrong column of states",
        "bayesstruct/trees/kernels/forests.py",
        "best = place[weights[np.ix_(place, number)].argmax(axis=0)]",
        "best = place[weights[np.ix_(place, number)].argmin(axis=0)]",
        "trees/solvers/test_forests.py",
    ),
    Fault(
        "theta: each wrong state as probable as all of them",
        "bayesstruct/trees/kernels/distances.py",
        "theta = (1.0 - same / len(codes)) / (k - 1)",
        "theta = 1.0 - same / len(codes)",
        "trees/solvers/test_latent_trees.py",
    ),
    Fault(
        "lengths: hidden nodes are as far from others as a column beyond them",
        "bayesstruct/trees/kernels/chow_liu_grouping.py",
        "values = away - length[across, h][:, None]",
        "values = away - 0.0 * length[across, h][:, None]",
        "trees/kernels/test_grouping.py",
    ),
    Fault(
        "parent: half of the distance to a sibling is that to the parent",
        "bayesstruct/trees/kernels/grouping.py",
        "twice = near + difference[np.ix_(family, family)]",
        "twice = near + 0.0 * difference[np.ix_(family, family)]",
        "trees/kernels/test_grouping.py",
    ),
    Fault(
        "message: what a child says counts twice",
        "bayesstruct/trees/kernels/discrete_em.py",
        "outside = belief[parent, s] / (message[child, s] * scale[child])",
        "outside = belief[parent, s] / scale[child]",
        "trees/kernels/test_latent_em.py",
    ),
    Fault(
        "moments: hidden normal nodes without their conditional variance",
        "bayesstruct/trees/kernels/gaussian_em.py",
        "out[m:, m:] = full[m:, m:] - slope @ full[:m, m:] + slope @ s @ slope.T",
        "out[m:, m:] = slope @ s @ slope.T",
        "trees/kernels/test_latent_em.py",
    ),
    Fault(
        "hidden trees: a split edge without its Jacobian",
        "bayesstruct/trees/kernels/hidden_places.py",
        "return own + jacobian + log(2.0)",
        "return own + log(2.0)",
        "trees/test_hidden_trees.py",
    ),
    Fault(
        "hidden trees of states: a replaced table is not counted",
        "bayesstruct/trees/kernels/hidden_states/moves.py",
        "value += prior.log_tree[hidden + (k >= count)] + places.given[k]",
        "value += prior.log_tree[hidden + (k >= count)]",
        "trees/test_hidden_states.py",
    ),
    Fault(
        "margins: weights of a tree's edges lack one",
        "bayesstruct/trees/exact.py",
        "return table, alone, pairs - alone[:, None]",
        "return table, alone, pairs",
        "trees",
    ),
    Fault(
        "new rows of numbers: a pair of columns has the tails of one",
        "bayesstruct/trees/kernels/predictive.py",
        "- (half + 0.5) * both",
        "- half * both",
        "trees/test_predictive.py",
    ),
    Fault(
        "new rows of states: ratios lack the probability of one column",
        "bayesstruct/trees/kernels/predictive.py",
        "- self._log_rows - own[:, None] - own",
        "- self._log_rows - own",
        "trees/test_predictive.py",
    ),
    Fault(
        "an empty number: widths of the change of variable are left out",
        "bayesstruct/trees/kernels/densities.py",
        "return self._log_density(x) + np.log(self._scale * np.cosh(u))",
        "return self._log_density(x) + np.log(self._scale)",
        "trees/test_predictive.py",
    ),
    Fault(
        "new rows of numbers and states: means in states are taken as known",
        "bayesstruct/trees/kernels/predictive.py",
        "np.sqrt(left * (known + 1.0) / known)",
        "np.sqrt(left)",
        "trees/test_predictive_kinds.py",
    ),
    Fault(
        "new rows over forests: one term too few",
        "bayesstruct/graphs/spanning_trees/forests.py",
        "roots_jacobi((self.n + 1) // 2,",
        "roots_jacobi(self.n // 2,",
        "trees/test_predictive_kinds.py",
    ),
    Fault(
        "an empty number with empty states: spread between completions is left out",
        "bayesstruct/trees/kernels/densities.py",
        "weight @ (deviations**2 + (means - self.mean) ** 2)",
        "weight @ deviations**2",
        "trees/test_predictive_kinds.py",
    ),
    Fault(
        "mixed trees: rows of all states count as one state",
        "bayesstruct/trees/kernels/mixed.py",
        "(sums**2 / (self.size + rows)[:, None]).sum(axis=0)",
        "(sums**2 / (self.size + self.n)).sum(axis=0)",
        "trees/test_mixed.py",
    ),
    Fault(
        "lines of two kinds: those between the kinds count once",
        "bayesstruct/graphs/spanning_trees/two_kinds.py",
        "gathered = (join or log_sums)(",
        "gathered = (join or np.max)(",
        "graphs/spanning_trees/test_two_kinds.py",
    ),
    Fault(
        "forests: the prior has the sum of the posterior",
        "bayesstruct/graphs/spanning_trees/forests.py",
        "return self._log_root(t) + (self.n - 1) *",
        "return (self.n - 1) *",
        "trees/test_forest.py",
    ),
    Fault(
        "forest mode: the number of rooted forests is left out",
        "bayesstruct/trees/modes.py",
        " - k * np.log(p)",
        " - k * 0.0",
        "trees/test_modes.py",
    ),
    Fault(
        "tree density: the constant is left out",
        "bayesstruct/trees/priors/spanning_tree.py",
        "total - log_tree_normaliser(log_weights)",
        "total",
        "trees/test_spanning_tree.py",
    ),
    Fault(
        "tree covariances: of edges with the wrong sign",
        "bayesstruct/trees/ops/spanning_trees.py",
        "outputs[0] * g - weights",
        "outputs[0] * g + weights",
        "trees/test_spanning_tree.py",
    ),
    Fault(
        "tree matrix: children have the degrees of freedom of the root",
        "bayesstruct/trees/kernels/gaussian.py",
        "shape[child] += 0.5",
        "shape[child] += 0.0",
        "trees/test_models.py",
    ),
    Fault(
        "tree weights: edges have the degrees of freedom of columns",
        "bayesstruct/trees/kernels/gaussian.py",
        "- 0.5 * (b + 1.0) * log_left",
        "- 0.5 * b * log_left",
        "trees/test_models.py",
    ),
    Fault(
        "pseudo-counts: pairs of states have those of single ones",
        "bayesstruct/networks/kernels/scores/pair_counts.py",
        "cell = size / np.multiply.outer(own, states[owner])",
        "cell = size / np.multiply.outer(own, np.ones(len(owner)))",
        "trees",
    ),
    Fault(
        "fcll: shares of the state are those given the class",
        "bayesstruct/classifiers/kernels/scores.py",
        "class_given = _log_ratio(counts, counts, counts.sum(axis=1, keepdims=True))",
        "class_given = _log_ratio(counts, counts, counts.sum(axis=2, keepdims=True))",
        "classifiers/test_scores.py",
    ),
    Fault(
        "classes: a message takes its parent to stand before the target",
        "bayesstruct/classifiers/kernels/predictions.py",
        "return s + states[j] * c if j < target else c + states[target] * s",
        "return s + states[j] * c",
        "classifiers/test_solvers.py",
    ),
    # core and data
    Fault(
        "column-rank: a column is not counted among those that are equal to it",
        "bayesstruct/features/kernels/column_pattern.py",
        "for b in range(a):",
        "for b in range(1, a):",
        "features/ops/test_columns.py features/priors",
    ),
    Fault(
        "cluster-order: a label may skip one",
        "bayesstruct/mixtures/kernels/clusters.py",
        "if c > used:",
        "if c > used + 1:",
        "mixtures/test_ops.py mixtures/priors",
    ),
    Fault(
        "packed-diagonal: the diagonal is not a logarithm",
        "bayesstruct/precision/kernels/cholesky.py",
        "lower[i, i] = math.exp(packed[at])",
        "lower[i, i] = packed[at]",
        "precision/ops/test_packed_cholesky.py precision/priors",
    ),
    Fault(
        "python-graph: every graph runs the first one",
        "bayesstruct/core/interpreted.py",
        "    found = _GRAPHS[int(number)](*inputs)",
        "    found = _GRAPHS[min(_GRAPHS)](*inputs)",
        "core/test_interpreted.py",
    ),
    Fault(
        "stale-symbol: old code on the disk calls what has its name now",
        "bayesstruct/core/machine_code/linking.py",
        "if symbol not in _SYMBOLS:",
        "if not needed:",
        "core/machine_code/test_linking.py",
    ),
    Fault(
        "slab-odds: the variances of spike and slab exchanged",
        "bayesstruct/core/odds.py",
        "(1.0 / (spike * spike) - 1.0 / (slab * slab))",
        "(1.0 / (slab * slab) - 1.0 / (spike * spike))",
        "core/test_special.py precision/kernels/test_gibbs.py precision/steps/test_exact.py",
    ),
    Fault(
        "stale-code: machine code is not renewed when an imported file changes",
        "bayesstruct/core/jit.py",
        "new += _imports(file)",
        "new += ()",
        "core/test_jit.py",
    ),
    Fault(
        "stale-value: a shared variable is read once",
        "bayesstruct/core/expressions.py",
        "out[i] = variable.get_value()",
        "out[i] = self.__dict__.setdefault(f'_{i}', variable.get_value())",
        "core sparse/steps/test_spike_slab_regression.py",
    ),
    Fault(
        "bootstrap: the scatter of a start is that of one row",
        "bayesstruct/core/starts.py",
        "return n * (centred.T * weights) @ centred",
        "return (centred.T * weights) @ centred",
        "core precision/ops precision/priors/test_precision.py models/test_gaussian_graphical.py",
    ),
    Fault(
        "mode-order: a solver stands right before the one it must follow",
        "bayesstruct/core/modes.py",
        "max((kinds.index(other) + 1 for other in earlier), default=place)",
        "max((kinds.index(other) for other in earlier), default=place)",
        "core/test_modes.py",
    ),
    Fault(
        "block-prior: probability that two nodes have the same label",
        "bayesstruct/data/edge_priors.py",
        "same = (self.concentration + 1.0) / (",
        "same = self.concentration / (",
        "data/test_edge_priors.py fields/steps/test_spike_slab.py models/test_random_fields.py",
    ),
    Fault(
        "missing-code: missing values get the first state",
        "bayesstruct/data/states.py",
        "codes = np.full(len(values), -1, np.int64)",
        "codes = np.full(len(values), 0, np.int64)",
        "data/test_states.py",
    ),
    Fault(
        "covariates: divided by the variance",
        "bayesstruct/data/covariates.py",
        "scale), (values - location) / scale",
        "scale), (values - location) / scale**2",
        "data neighbourhoods models/test_neighbourhoods.py",
    ),
    Fault(
        "new-columns: new rows are taken in the order of their own columns",
        "bayesstruct/data/coding.py",
        "values[:, known] = intake.values[:, place[known]]",
        "values[:, known] = intake.values[:, known]",
        "core/test_rows.py",
    ),
    Fault(
        "new-states: states of new rows have the numbers of their own table",
        "bayesstruct/data/coding.py",
        "codes[seen >= 0] = own[seen[seen >= 0]]",
        "codes[seen >= 0] = seen[seen >= 0]",
        "core/test_rows.py",
    ),
    Fault(
        "predictions: the interval of the mean, without the spread between draws",
        "bayesstruct/core/tables/predictions.py",
        "weight @ (deviation**2 + (mean - center) ** 2)",
        "weight @ deviation**2",
        "modes/test_predict.py",
    ),
    Fault(
        "cov-scatter: sums of products of n rows instead of n - 1",
        "bayesstruct/data/covariance.py",
        "return (self.rows - 1) * self.covariance",
        "return self.rows * self.covariance",
        "data/test_labels.py",
    ),
    Fault(
        "cov-rank: a matrix may have a rank that its rows cannot have",
        "bayesstruct/data/covariance.py",
        "if rank > table.n - 1:",
        "if rank > table.n:",
        "data/test_labels.py",
    ),
    Fault(
        "wishart: one degree of freedom too many",
        "bayesstruct/core/tensors.py",
        "degrees = n - 1.0 - pt.arange(p)",
        "degrees = n - pt.arange(p)",
        "models/test_covariance.py",
    ),
    Fault(
        "new-units: new rows are standardised by their own means",
        "bayesstruct/data/coding.py",
        "Table(_rows(values), self.names, self.location, self.scale)",
        "Table(_rows(values), self.names, values.mean(axis=0), self.scale)",
        "core/test_rows.py",
    ),
    Fault(
        "declared-states: a declared state that never occurs is left out",
        "bayesstruct/data/states.py",
        "return _coded(values, labels, True, _level_problems(labels if seen else []), declared=True)",
        "return _coded(values, [v for v in labels if v in values], True, [], declared=seen)",
        "data/test_states.py",
    ),
    Fault(
        "declared-order: states of an Enum are sorted by name",
        "bayesstruct/data/states.py",
        "return list(series.dtype.categories), True",
        "return sorted(series.dtype.categories), True",
        "data/test_states.py",
    ),
    Fault(
        "conditional: the variance of one value given all others, also if several are empty",
        "bayesstruct/core/tables/predictions.py",
        "variance = np.diagonal(np.linalg.inv(block), axis1=1, axis2=2)",
        "variance = 1.0 / np.diagonal(block, axis1=1, axis2=2)",
        "modes/test_predict.py",
    ),
    # sparse
    Fault(
        "occam: half the exponent of the determinant in a spike-and-slab regression",
        "bayesstruct/sparse/kernels/spike_slab_regression.py",
        "0.5 * (math.log(ridge / total) + r * r / (total * variance))",
        "0.5 * (0.5 * math.log(ridge / total) + r * r / (total * variance))",
        "sparse/kernels/test_spike_slab_regression.py sparse/steps/test_spike_slab_regression.py",
    ),
    Fault(
        "scale-mixture: the variance of a Laplace slab has half its mean",
        "bayesstruct/sparse/kernels/spike_slab_regression.py",
        "value = 2.0 * s * s * rng.standard_exponential()",
        "value = s * s * rng.standard_exponential()",
        "sparse/kernels/test_spike_slab_regression.py sparse/steps/test_spike_slab_regression.py",
    ),
    Fault(
        "polya-gamma: scaled as the Jacobi variable",
        "bayesstruct/sparse/kernels/polya_gamma.py",
        "return 0.25 * x",
        "return 0.5 * x",
        "sparse/kernels/test_polya_gamma.py sparse/steps/test_spike_slab_regression.py",
    ),
    Fault(
        "pseudo-response: without one half",
        "bayesstruct/sparse/kernels/polya_gamma.py",
        "response[i] - 0.5 - weights[i] * offset[i]",
        "response[i] - weights[i] * offset[i]",
        "sparse/kernels/test_polya_gamma.py sparse/steps/test_spike_slab_regression.py",
    ),
    Fault(
        "predictor-weight: the probability of proposing a group in is not counted",
        "bayesstruct/sparse/kernels/linear_predictor.py",
        "inside, outside = log_odds - math.log(chance), -math.log1p(-chance)",
        "inside, outside = log_odds, -math.log1p(-chance)",
        "sparse/steps/test_predictor.py",
    ),
    Fault(
        "predictor-swap: the probability of choosing the group that enters is not counted",
        "bayesstruct/sparse/kernels/linear_predictor.py",
        "new) + log_odds[h] - scores[h]",
        "new) + log_odds[h]",
        "sparse/steps/test_predictor.py",
    ),
    Fault(
        "exchange: candidates are judged by one Newton step from zero",
        "bayesstruct/sparse/kernels/linear_predictor.py",
        "for _ in range(_REFINED):",
        "for _ in range(0):",
        "sparse/steps/test_predictor.py",
    ),
    Fault(
        "response-nodes: a response does not tell about an empty predictor",
        "bayesstruct/mixtures/reading/rows.py",
        "logs += 0.5 * (nodes**2 / (1.0 - _WIDTH**2) - step**2 / spread[:, None])",
        "logs += 0.5 * nodes**2 / (1.0 - _WIDTH**2) + 0.0 * spread[:, None]",
        "mixtures/reading/test_rows.py",
    ),
    Fault(
        "joint-prior: edges are counted among all matrices, positive definite or not",
        "bayesstruct/precision/priors/implied.py",
        "return with_fixed(counts[upper] / counts[0, 0], present, absent, _LEAST)",
        "return with_fixed(counts[upper] / (tries * len(nominal)), present, absent, _LEAST)",
        "precision/steps/test_edge_parameters.py",
    ),
    Fault(
        "soft-threshold: of another sign below zero",
        "bayesstruct/sparse/kernels/proximal.py",
        "x - t if x > t else (x + t if x < -t else 0.0)",
        "x - t if x > t else (x - t if x < -t else 0.0)",
        "sparse/kernels/test_proximal.py sparse/penalties/test_penalties.py",
    ),
    Fault(
        "spike-density: no atom at zero",
        "bayesstruct/sparse/priors/spike_and_slab.py",
        "pt.switch(zero, log_probability(1.0 - inclusion), log_probability(inclusion) + log_slab)",
        "pt.switch(zero, log_probability(inclusion), log_probability(inclusion) + log_slab)",
        "sparse/priors/test_spike_and_slab.py sparse/steps/test_spike_slab_regression.py",
    ),
    Fault(
        "group-jacobian: one power of the rate less",
        "bayesstruct/sparse/priors/group_laplace.py",
        "pt.sum(sizes * pt.log(rates) - rates * group_norms, axis=-1) - constant",
        "pt.sum((sizes - 1) * pt.log(rates) - rates * group_norms, axis=-1) - constant",
        "sparse/priors/test_group_laplace.py sparse/priors/test_nuclear_laplace.py",
    ),
    Fault(
        "group-radius: gamma with one degree of freedom less",
        "bayesstruct/sparse/kernels/norm_priors.py",
        "factor = rng.standard_gamma(float(d)) / (rates[g] * math.sqrt(square))",
        "factor = rng.standard_gamma(float(max(d - 1, 1))) / (rates[g] * math.sqrt(square))",
        "sparse/priors/test_group_laplace.py",
    ),
    Fault(
        "tree-constant: the measure of the exponential scale is missing",
        "bayesstruct/sparse/priors/tree_constants.py",
        "density = np.log(a) + between - a * np.exp(between)",
        "density = np.log(a) - a * np.exp(between)",
        "sparse/priors/test_tree_laplace.py",
    ),
    Fault(
        "horseshoe: the slab has its scale instead of its variance",
        "bayesstruct/sparse/priors/horseshoe.py",
        "half * pt.square(slab_scale)",
        "half * slab_scale",
        "sparse/priors/test_horseshoe.py",
    ),
    Fault(
        "poisson: the gradient has the responses with another sign",
        "bayesstruct/sparse/solvers/losses.py",
        "return np.exp(z) - self.y",
        "return np.exp(z) + self.y",
        "sparse/solvers/test_sparse.py",
    ),
    Fault(
        "rate-max: without the rate",
        "bayesstruct/sparse/penalties/base.py",
        'return self.rate * self.dual_norm(-self._vector("g", g), ignore_unpenalised=True)',
        'return self.dual_norm(-self._vector("g", g), ignore_unpenalised=True)',
        "sparse/penalties/test_penalties.py sparse/solvers/test_sparse.py",
    ),
    Fault(
        "group-occam: without the volume of the slab",
        "bayesstruct/sparse/kernels/group_regression.py",
        "- 0.5 * np.log(slab[at]).sum()",
        "- 0.0",
        "sparse/steps/test_group_regression.py",
    ),
    Fault(
        "group-draw: half of the posterior deviation",
        "bayesstruct/sparse/kernels/group_regression.py",
        "+ rng.standard_normal(len(at))",
        "+ 0.5 * rng.standard_normal(len(at))",
        "sparse/steps/test_group_regression.py",
    ),
    Fault(
        "group-rest: other terms of a logistic mean are forgotten",
        "bayesstruct/sparse/steps/regression_data.py",
        "return precision, (self.response - 0.5) / precision - rest",
        "return precision, (self.response - 0.5) / precision",
        "sparse/steps/test_group_regression.py",
    ),
    Fault(
        "group-scan: each sweep begins without groups",
        "bayesstruct/sparse/kernels/group_regression.py",
        "on = np.bincount(labels, w != 0, groups) > 0",
        "on = np.zeros(groups, bool)",
        "sparse/steps/test_group_regression.py",
    ),
    # linear structural equations
    Fault(
        "clime-leaving: a row that leaves the basis keeps its sign",
        "bayesstruct/precision/kernels/clime.py",
        "rate = -basis.signs[r] * turn[r]",
        "rate = basis.signs[r] * turn[r]",
        "precision/solvers/test_clime.py",
    ),
    Fault(
        "clime-pair: of two elements the larger is kept",
        "bayesstruct/precision/solvers/clime.py",
        "np.where(abs(columns) <= abs(columns.T), columns, columns.T)",
        "np.where(abs(columns) > abs(columns.T), columns, columns.T)",
        "precision/solvers/test_clime.py",
    ),
    Fault(
        "clime-default: the smallest penalty that one column can meet is taken for all",
        "bayesstruct/precision/solvers/clime.py",
        "max(smallest, column.smallest)",
        "column.smallest or smallest",
        "precision/solvers/test_clime.py",
    ),
    Fault(
        "kernel-order: columns without a path to a column count against it",
        "bayesstruct/sem/solvers/causal_order.py",
        "free = ~(no_path.T | np.eye",
        "free = ~(no_path | np.eye",
        "sem/solvers/test_direct_lingam.py",
    ),
    Fault(
        "sink-neighbours: neighbours of a removed column are left out of the supports",
        "bayesstruct/sem/solvers/sink_removal.py",
        "inside = (abs(precision[j]) > support) | near",
        "inside = abs(precision[j]) > support",
        "sem/solvers/test_sink_removal.py",
    ),
    Fault(
        "sink-margin: the errors of two diagonal elements count once",
        "bayesstruct/sem/exact/identifiability.py",
        "/ (d[~sinks, None] + d[sinks])",
        "/ d[~sinks, None]",
        "sem/exact/test_identifiability.py",
    ),
    Fault(
        "order-scale: coefficients under Laplace priors are not counted with the rows",
        "bayesstruct/sem/solvers/given_order.py",
        'len(p) * (problem.prior != "flat")',
        'len(p) * (problem.prior == "normal")',
        "sem/solvers/test_given_order.py",
    ),
    # precision
    Fault(
        "schur: a chi-square variable with two degrees of freedom less",
        "bayesstruct/precision/kernels/gibbs.py",
        "rng.standard_gamma(0.5 * n + 1.0) * 2.0 / rate",
        "rng.standard_gamma(0.5 * n) * 2.0 / rate",
        "precision/kernels/test_gibbs.py precision/steps/test_exact.py precision/steps/test_geweke.py",
    ),
    Fault(
        "column-odds: data against an edge count for it",
        "bayesstruct/precision/kernels/gibbs.py",
        "odds = log_odds[j, i] + marginal_log_odds(b, h, t0, t1)",
        "odds = log_odds[j, i] - marginal_log_odds(b, h, t0, t1)",
        "precision/kernels/test_gibbs.py precision/steps/test_exact.py precision/steps/test_geweke.py",
    ),
    Fault(
        "diagonal-rate: half of what the prior says",
        "bayesstruct/precision/kernels/gibbs.py",
        "a = scatter[j, j] + 2.0 * diagonal_rate",
        "a = scatter[j, j] + diagonal_rate",
        "precision/kernels/test_gibbs.py precision/steps/test_exact.py precision/steps/test_geweke.py",
    ),
    Fault(
        "horseshoe-element: likelihood of an element over its prior",
        "bayesstruct/precision/kernels/horseshoe/sweep.py",
        "return t * (t * b / h + rng.standard_normal() / math.sqrt(h))",
        "return t * (b / h + rng.standard_normal() / math.sqrt(h))",
        "precision/kernels/test_horseshoe.py precision/steps/test_geweke.py",
    ),
    Fault(
        "horseshoe-rescaling: elements that are held count twice",
        "bayesstruct/precision/kernels/horseshoe/sweep.py",
        "- held * x - quadratic",
        "- 2.0 * held * x - quadratic",
        "precision/kernels/test_horseshoe.py precision/steps/test_geweke.py",
    ),
    Fault(
        "ebic: edges count half",
        "bayesstruct/modes/tune.py",
        "weight = np.log(n) + 4.0 * gamma * np.log(p)",
        "weight = np.log(n) + 2.0 * gamma * np.log(p)",
        "modes/test_tune.py",
    ),
    Fault(
        "contrasts: the shared part of the elements is their sum instead of their mean",
        "bayesstruct/precision/kernels/row_groups/sweep.py",
        "return 0.5 * (quadratic - logs - math.log(factor * ratio / (groups * s / t)))",
        "return 0.5 * (quadratic - logs - math.log(ratio / (s / t)))",
        "precision/kernels/test_groups.py precision/steps/test_groups.py",
    ),
    Fault(
        "group-patterns: a pattern of edges over groups may be the same in all of them",
        "bayesstruct/precision/kernels/row_groups/sweep.py",
        "mixed += all_absent * one + all_present * none",
        "mixed += all_absent + all_present * none",
        "precision/kernels/test_groups.py precision/steps/test_groups.py",
    ),
    Fault(
        "group-shares: differences are counted among all pairs and not among edges",
        "bayesstruct/precision/kernels/row_groups/shares.py",
        "if own != ABSENT and 0.0 < difference[i, j] < 1.0:",
        "if 0.0 < difference[i, j] < 1.0:",
        "precision/steps/test_group_probabilities.py",
    ),
    Fault(
        "group-scatter: each covariance matrix has as many rows as the first",
        "bayesstruct/precision/recognition/groups.py",
        "for own in zip(values, scale, n, strict=True)]",
        "for own in zip(values, scale, 0 * n + n[0], strict=True)]",
        "models/test_grouped_gaussian_tables.py",
    ),
    Fault(
        "group-edges-mode: climbing starts at no pattern of edges",
        "bayesstruct/precision/kernels/row_groups/edges_mode.py",
        "for start in range(-1, groups + 1):",
        "for start in range(-1, 0):",
        "precision/test_group_modes.py",
    ),
    Fault(
        "group-rows: each group has as many rows as the first",
        "bayesstruct/precision/kernels/row_groups/sweep.py",
        "v = rng.standard_gamma(0.5 * n[g] + 1.0) * 2.0 / slope[g]",
        "v = rng.standard_gamma(0.5 * n[0] + 1.0) * 2.0 / slope[g]",
        "precision/kernels/test_groups.py precision/steps/test_groups.py",
    ),
    Fault(
        "group-places: missing values of one group go to another",
        "bayesstruct/precision/recognition/groups.py",
        "self.places.append(np.flatnonzero(owner == g))",
        "self.places.append(np.sort(np.flatnonzero(owner == g))[::-1])",
        "precision/steps/test_groups.py",
    ),
    Fault(
        "jump-rate: a rate that breaks detailed balance",
        "bayesstruct/precision/kernels/graph_jumps.py",
        "pair[_RATE] = 1.0 / (1.0 + math.exp(odds if edge else -odds))",
        "pair[_RATE] = 1.0 / (1.0 + math.exp(0.5 * odds if edge else -odds))",
        "precision/kernels/test_nodewise.py precision/steps/test_graph_jumps.py",
    ),
    Fault(
        "stale-gains: the gains of the other end are those before the flip",
        "bayesstruct/precision/kernels/nodewise.py",
        "    node_gains(j, graph, target, gains[j], work)",
        "    node_gains(i, graph, target, gains[i], work)",
        "precision/kernels/test_nodewise.py precision/steps/test_graph_jumps.py",
    ),
    Fault(
        "moved-end: the unequal chances of proposals are left out",
        "bayesstruct/precision/kernels/graph_jumps.py",
        "ratio += math.log(partners[j, p - 1] / partners[k, p - 1])",
        "ratio += 0.0 * math.log(partners[j, p - 1] / partners[k, p - 1])",
        "precision/kernels/test_nodewise.py",
    ),
    Fault(
        "imputed-value: a power of the regressions of other columns on it",
        "bayesstruct/precision/kernels/rows/column_imputation.py",
        "count = _add_set(left, powers[q] - 0.5, count, sets)",
        "count = _add_set(left, powers[q] + 0.5, count, sets)",
        "precision/kernels/test_column_imputation.py",
    ),
    Fault(
        "imputed-table: all graphs are drawn given the first completed table",
        "bayesstruct/precision/steps/graph_sampler.py",
        "self.target, self.partners = self.tables[at or 0]",
        "self.target, self.partners = self.tables[0]",
        "precision/steps/test_imputed_graphs.py",
    ),
    Fault(
        "fused-neighbours: the neighbours of one of the two columns alone",
        "bayesstruct/precision/kernels/fused.py",
        "points[count], weights[count] = precision[j, other], differences[i, other]",
        "points[count], weights[count] = precision[j, other], 0.0",
        "precision/steps/test_penalised.py",
    ),
    Fault(
        "piece-slope: a piece has the slope of the one before it",
        "bayesstruct/precision/kernels/piecewise.py",
        "slope += weights[m] if m >= piece else -weights[m]",
        "slope += weights[m] if m >= piece - 1 else -weights[m]",
        "precision/kernels/test_piecewise.py precision/steps/test_penalised.py",
    ),
    Fault(
        "group-variance: the wrong one of two roots",
        "bayesstruct/precision/kernels/group_lasso.py",
        "return mean / root if rng.random() * (1.0 + 1.0 / root) < 1.0 else mean * root",
        "return mean / root",
        "precision/steps/test_penalised.py",
    ),
    Fault(
        "group-largest: an element meets its own old value among the others of its group",
        "bayesstruct/precision/kernels/group_lasso.py",
        "level[g] = _largest_other(precision, members, g, at)",
        "level[g] = _largest_other(precision, members, g, -1)",
        "precision/steps/test_penalised.py",
    ),
    Fault(
        "norm-tangents: a proposal below the norm of a block is never refused",
        "bayesstruct/precision/kernels/nuclear.py",
        "math.exp(min(_bound(tangents, count, u) - value, 0.0))",
        "math.exp(0.0 * min(_bound(tangents, count, u) - value, 0.0))",
        "precision/kernels/test_nuclear.py precision/steps/test_penalised.py",
    ),
    Fault(
        "norm-tangents-end: the slope between the first and the last tangent is left out",
        "bayesstruct/precision/kernels/nuclear.py",
        "rng, b - middle, h, knots[0]",
        "rng, b, h, knots[0]",
        "precision/kernels/test_nuclear.py precision/steps/test_penalised.py",
    ),
    Fault(
        "node-neighbours: a node counts edges to nodes that are not included",
        "bayesstruct/precision/kernels/node_inclusion.py",
        "        if j != i and included[j]:",
        "        if j != i:",
        "precision/steps/test_node_inclusion.py",
    ),
    Fault(
        "block-shares: absent edges say nothing about the probability of one",
        "bayesstruct/precision/kernels/blocks.py",
        "rng.standard_gamma(beta[kind] + absent[kind])",
        "rng.standard_gamma(beta[kind])",
        "precision/steps/test_blocks.py",
    ),
    Fault(
        "node-gain: absent edges between included nodes are no evidence",
        "bayesstruct/precision/kernels/node_inclusion.py",
        "_softplus(odds + ratio) - _softplus(odds)",
        "_softplus(odds + ratio)",
        "precision/steps/test_node_inclusion.py",
    ),
    Fault(
        "node-switch: the evidence of elements without an edge counts for it",
        "bayesstruct/precision/kernels/node_inclusion.py",
        "total += -gain if included[i] else gain",
        "total += gain",
        "precision/steps/test_node_inclusion.py",
    ),
    Fault(
        "block-sizes: large blocks are as probable as small ones",
        "bayesstruct/precision/kernels/blocks.py",
        "weights[labels[j]] += 1.0",
        "weights[labels[j]] += 0.0",
        "precision/steps/test_blocks.py",
    ),
    Fault(
        "diagonal-multiplier: the penalty of the diagonal counts once for each row",
        "bayesstruct/precision/kernels/multi_task.py",
        "v[k] = 1.0 / (S[k, j, j] + r[k] / T[k])",
        "v[k] = 1.0 / (S[k, j, j] + r[k])",
        "precision/solvers/test_multi_task.py",
    ),
    Fault(
        "face-bend: the curvature of matrices of one rank with the wrong sign",
        "bayesstruct/precision/solvers/faces.py",
        "left_new = (rate * left + normal @ right.T) / values",
        "left_new = (rate * left - normal @ right.T) / values",
        "precision/ops/test_structured.py",
    ),
    Fault(
        "face-ties: elements that share a largest absolute value move alone",
        "bayesstruct/precision/solvers/faces.py",
        "            labels = tied_elements(len(K), groups, tied)",
        "            labels = None",
        "precision/ops/test_structured.py",
    ),
    Fault(
        "g-wishart: one degree of freedom less",
        "bayesstruct/precision/kernels/g_wishart/draws.py",
        "w = rng.chisquare(degrees_of_freedom + size) / root[size, size] ** 2",
        "w = rng.chisquare(degrees_of_freedom + size - 1) / root[size, size] ** 2",
        "precision/test_simulate.py precision",
    ),
    Fault(
        "graph-jacobian: an element of the Cholesky factor in the place of one of the matrix",
        "bayesstruct/precision/kernels/g_wishart/graph_sweep.py",
        "log_density = math.log(phi) + 0.5",
        "log_density = 0.5",
        "precision/steps/test_g_wishart.py",
    ),
    Fault(
        "graph-exchange: the auxiliary density lacks its Jacobian",
        "bayesstruct/precision/kernels/g_wishart/graph_sweep.py",
        "return math.log(root) + 0.5",
        "return 0.5",
        "precision/steps/test_g_wishart.py",
    ),
    Fault(
        "g-wishart-rows: a refused row is drawn anew without its subtree",
        "bayesstruct/precision/kernels/g_wishart/constant_ratios.py",
        "k = k + 1 if _row(rng, b, k, m, rows, codes, whole) else whole[FIRST, k]",
        "k = k + 1 if _row(rng, b, k, m, rows, codes, whole) else k",
        "precision/priors/test_g_wishart.py precision/steps/test_g_wishart.py",
    ),
    Fault(
        "graph-scores: graphs are compared without the constants of their priors",
        "bayesstruct/precision/solvers/graph_search.py",
        "self.prior.log_probability(adjacency) + after - float(before)",
        "self.prior.log_probability(adjacency) + after",
        "precision/solvers/test_covariance_selection.py",
    ),
    Fault(
        "laplace-constant: an element of a pair counts once in the second derivatives",
        "bayesstruct/precision/solvers/covariance_selection.py",
        "np.full(len(i) - p, 2.0)",
        "np.full(len(i) - p, 1.0)",
        "precision/solvers/test_covariance_selection.py",
    ),
    Fault(
        "share: the prior of the edge probability counts the absent edges as present",
        "bayesstruct/precision/kernels/prior.py",
        "x = rng.standard_gamma(alpha + present)",
        "x = rng.standard_gamma(alpha + absent)",
        "precision/priors/test_edges.py precision/priors precision/steps/test_geweke.py",
    ),
    Fault(
        "order-shift: all latent values of a column move too far",
        "bayesstruct/precision/kernels/rows/ranks.py",
        "shift = total / n + spread",
        "shift = total / n + 3.0 * spread",
        "precision/steps/test_marginals_geweke.py precision/kernels/test_ranks.py",
    ),
    Fault(
        "order-unit: the unit of a column has a power too much",
        "bayesstruct/precision/kernels/rows/ranks.py",
        "s = math.sqrt(rng.standard_gamma(shapes[j]) / total)",
        "s = math.sqrt(rng.standard_gamma(shapes[j] + 1.0) / total)",
        "precision/steps/test_marginals_geweke.py precision/kernels/test_ranks.py",
    ),
    Fault(
        "t-degrees: the logarithm of the degrees of freedom without its Jacobian",
        "bayesstruct/precision/kernels/rows/degrees.py",
        "return total + shape * t - rate * degrees",
        "return total + (shape - 1.0) * t - rate * degrees",
        "precision/steps/test_marginals_geweke.py precision/steps/test_marginals_nuts.py",
    ),
    Fault(
        "t-weights: the weight of a row has the degrees of freedom of its prior",
        "bayesstruct/precision/kernels/rows/tables.py",
        "shape = 0.5 * (degrees + self.complete.shape[1])",
        "shape = 0.5 * degrees",
        "precision/steps/test_marginals_geweke.py",
    ),
    Fault(
        "value-weights: the rest of the row counts twice",
        "bayesstruct/precision/kernels/rows/value_weights.py",
        "c = r * (total - precision[j, j] * e[j])",
        "c = 2.0 * r * (total - precision[j, j] * e[j])",
        "precision/steps/test_marginals_geweke.py",
    ),
    Fault(
        "value-degrees: the weights move along with the degrees of freedom without their change of volume",
        "bayesstruct/precision/kernels/rows/value_weights.py",
        "return fit + n * p * math.log(power) + _log_prior",
        "return fit + _log_prior",
        "precision/kernels/test_value_weights.py precision/steps/test_marginals_geweke.py",
    ),
    Fault(
        "state-threshold: the reference state has another threshold than zero",
        "bayesstruct/precision/kernels/rows/choices.py",
        "    best = 0.0",
        "    best = 0.5",
        "precision/steps/test_choices.py",
    ),
    Fault(
        "state-units: the unit of a state has the prior of another power",
        "bayesstruct/precision/kernels/rows/choices.py",
        "known = (root, 2.0 * shapes[j], linear",
        "known = (root, 4.0 * shapes[j], linear",
        "precision/steps/test_marginals_geweke.py precision/steps/test_choices.py",
    ),
    Fault(
        "cov-rows: the sampler sees the scatter of n rows instead of n - 1",
        "bayesstruct/precision/kernels/rows/tables.py",
        "self.cross = (n - 1) * covariance",
        "self.cross = n * covariance",
        "models/test_covariance.py",
    ),
    Fault(
        "cov-mean: the means count once, not for each row",
        "bayesstruct/precision/priors/sample_covariance.py",
        "+ n * mean @ precision @ mean",
        "+ mean @ precision @ mean",
        "models/test_covariance.py",
    ),
    Fault(
        "cov-units: the density is that of standardised rows",
        "bayesstruct/precision/priors/sample_covariance.py",
        "* _LOG_2PI + pt.log(scale).sum())",
        "* _LOG_2PI)",
        "models/test_covariance.py",
    ),
    Fault(
        "cov-divisor: draws are divided by the number of rows",
        "bayesstruct/precision/priors/sample_covariance.py",
        "return rng, scatter / (n - 1.0) * pt.outer(scale, scale)",
        "return rng, scatter / n * pt.outer(scale, scale)",
        "models/test_covariance.py",
    ),
    # graphs
    Fault(
        "paths-equal: paths that differ by rounding are not equally long",
        "bayesstruct/graphs/nodes/paths.py",
        "_EQUAL = 1e-12",
        "_EQUAL = 0.0",
        "graphs/nodes/test_centrality.py",
    ),
    Fault(
        "paths-share: shares are not divided among equally short paths",
        "bayesstruct/graphs/nodes/paths.py",
        "paths[v] / paths[w] * (1.0 + share[w])",
        "(1.0 + share[w])",
        "graphs/nodes/test_centrality.py",
    ),
    Fault(
        "closeness-component: nodes that cannot be reached do not count",
        "bayesstruct/graphs/nodes/measures.py",
        "return inverse * near / max(self.graphs.p - 1, 1)",
        "return inverse",
        "graphs/nodes/test_centrality.py",
    ),
    Fault(
        "modularity-signed: negative weights count as a whole",
        "bayesstruct/graphs/nodes/communities.py",
        "share = more.sum() / (more.sum() + less.sum() or 1.0)",
        "share = 0.5",
        "graphs/nodes/test_communities.py",
    ),
    Fault(
        "communities-leave: a node does not leave a community for an empty one",
        "bayesstruct/graphs/nodes/modularity.py",
        "(members[part] > 0 or members[own] > 1)",
        "members[part] > 0",
        "graphs/nodes/test_communities.py",
    ),
    Fault(
        "consensus-gain: an arc gains its probability, whatever that of no arc is",
        "bayesstruct/graphs/sets/consensus.py",
        "gain = probability - absent",
        "gain = probability - 0.5",
        "graphs/sets/test_consensus.py",
    ),
    Fault(
        "acyclic-bound: the bound leaves out arcs between components",
        "bayesstruct/graphs/sets/acyclic.py",
        "float(gain[component[:, None] != component].sum())",
        "0.0",
        "graphs/sets/test_consensus.py",
    ),
    Fault(
        "weights-class: draws keep the positions of unsorted classes",
        "bayesstruct/graphs/sets/weights.py",
        "np.argsort(order)[found.index], found.count[order]",
        "found.index, found.count[order]",
        "graphs/sets/test_weights.py networks/test_effects_by_graph.py",
    ),
    Fault(
        "basis-given: the parents of the later column alone are given",
        "bayesstruct/graphs/sets/separations.py",
        "given = graph[:, later].T | graph[:, earlier].T",
        "given = graph[:, earlier].T",
        "networks/test_independence.py",
    ),
    Fault(
        "expected-shd: the product counted once",
        "bayesstruct/graphs/distances.py",
        "return float((p + q - 2 * p * q).sum())",
        "return float((p + q - p * q).sum())",
        "graphs/test_comparison.py graphs/test_two_results.py",
    ),
    Fault(
        "two results: ties count for the first",
        "bayesstruct/graphs/comparisons/results.py",
        "(apart > 0).mean(axis=0)",
        "(apart >= 0).mean(axis=0)",
        "graphs/test_two_results.py",
    ),
    Fault(
        "bootstrap-support: arcs that may be reversed count in both directions",
        "bayesstruct/graphs/comparisons/bootstrap.py",
        "share = share - 0.5 * (samples & samples.swapaxes(1, 2)).mean(axis=0)",
        "share = share - 0.0 * (samples & samples.swapaxes(1, 2)).mean(axis=0)",
        "modes/test_bootstrap.py",
    ),
    Fault(
        "shd: a reversed arc counts twice",
        "bayesstruct/graphs/distances.py",
        "return apart.sum(axis=(-2, -1)) // 2",
        "return apart.sum(axis=(-2, -1))",
        "graphs/test_directed.py graphs/test_comparison.py",
    ),
    Fault(
        "orders: chances of a relation without the added draws",
        "bayesstruct/networks/exact/posterior.py",
        "near = seen / draws, (seen + 1) / (draws + 2)",
        "near = seen / draws, (seen + 1) / draws",
        "networks/exact/test_posterior.py",
    ),
    # what tables say
    Fault(
        "predictability: the variance of a column given all others is not inverted",
        "bayesstruct/precision/reading/predictability.py",
        "return 1.0 - 1.0 / (whole * own)",
        "return 1.0 - own / whole",
        "modes/test_predictability.py",
    ),
    Fault(
        "limits: the prior odds that a model implies are left out",
        "bayesstruct/core/evidence_limits.py",
        "factor = present / absent * (1.0 - prior) / prior",
        "factor = present / absent",
        "modes/test_evidence_limits.py",
    ),
    Fault(
        "limits-of-factors: the prior's constant of a G-Wishart matrix is left out",
        "bayesstruct/core/evidence_limits.py",
        "ratio = _log_gamma_step(shape + rows) - _log_gamma_step(shape)",
        "ratio = _log_gamma_step(shape + rows)",
        "modes/test_evidence_limits.py",
    ),
    # neighbourhoods
    Fault(
        "or-rule: the product is added",
        "bayesstruct/neighbourhoods/reading/symmetrize.py",
        "return one + other - one * other, (1 - one) * (1 - other)",
        "return one + other + one * other, (1 - one) * (1 - other)",
        "neighbourhoods/test_reading.py",
    ),
    Fault(
        "partial-correlation: the ratio of the noises upside down",
        "bayesstruct/neighbourhoods/reading/symmetrize.py",
        "ratio = root[..., i[at]] / root[..., j[at]]",
        "ratio = root[..., j[at]] / root[..., i[at]]",
        "neighbourhoods/test_reading.py",
    ),
    # fields
    Fault(
        "pseudo: the gradient of a pair without what is observed",
        "bayesstruct/fields/kernels/pseudo.py",
        "fields[m, i] = expected - count * scores[first + codes[m, i]]",
        "fields[m, i] = expected",
        "fields/ops/test_log_partition.py fields/solvers/test_modes.py fields/priors/test_random_fields.py",
    ),
    Fault(
        "reversible-jump: the chance of proposing a full block is left out",
        "bayesstruct/fields/kernels/spike_slab.py",
        "log_ratio -= math.log(chance) + log_proposal(work, slab, work.value)",
        "log_ratio -= log_proposal(work, slab, work.value)",
        "fields/steps/test_spike_slab.py fields/steps/test_geweke.py",
    ),
    Fault(
        "group-relations: the chance of proposing a relation is left out",
        "bayesstruct/fields/kernels/groups.py",
        "target = pool.log_odds[relation] - math.log(pool.chance[relation])",
        "target = pool.log_odds[relation]",
        "fields/steps/test_groups.py",
    ),
    Fault(
        "group-contrasts: present contrasts are read in the unit of the shared part",
        "bayesstruct/fields/kernels/groups.py",
        "size = groups * pool.scale[0, k] if c == 0 else pool.scale[1, k]",
        "size = groups * pool.scale[0, k] if c == 0 else pool.scale[0, k]",
        "fields/steps/test_groups.py",
    ),
    Fault(
        "slab: a Laplace slab with the constant of another scale",
        "bayesstruct/fields/kernels/slab.py",
        "return -math.sqrt(square) / scale - math.log(2.0 * scale)",
        "return -math.sqrt(square) / scale - math.log(scale)",
        "fields/steps/test_spike_slab.py fields/steps/test_geweke.py",
    ),
    Fault(
        "coupling: an edge enters an Ising conditional twice",
        "bayesstruct/fields/kernels/ising.py",
        "log_odds += couplings[k] * x[neighbours[k]]",
        "log_odds += 2.0 * couplings[k] * x[neighbours[k]]",
        "fields/simulate/test_ising.py fields/simulate",
    ),
    Fault(
        "missing-states: rows and columns of a table exchanged",
        "bayesstruct/fields/kernels/missing.py",
        "cell = s * states[j] + x[j] if i < j else x[j] * states[i] + s",
        "cell = s * states[j] + x[j] if i > j else x[j] * states[i] + s",
        "fields/steps/test_missing.py",
    ),
    Fault(
        "label-prior: the second parameter of the beta prior is the first one",
        "bayesstruct/fields/solvers/edge_priors.py",
        "out = betaln(present + self.alpha, absent + self.beta)",
        "out = betaln(present + self.alpha, absent + self.alpha)",
        "fields/solvers/test_search.py",
    ),
    Fault(
        "predict-field: pairs of an empty and a filled column are left out",
        "bayesstruct/fields/reading/predictions.py",
        "if varies[i] or varies[j]:",
        "if varies[i] and varies[j]:",
        "modes/test_predict.py",
    ),
    # sem
    Fault(
        "sem-weights: graphs accepted by their scores, whatever the parameters weigh",
        "bayesstruct/sem/kernels/chain.py",
        "return _log_mean(then) - new.score - _log_mean(now) + old.score",
        "return 0.0 * _log_mean(then)",
        "sem/kernels/test_chain.py",
    ),
    Fault(
        "sem-normal: normal noise and a mixture weighed alike, whatever the prior probability",
        "bayesstruct/sem/kernels/families.py",
        "return _log(p) - _log(self.chance)",
        "return _log(1.0 - p) - _log(self.chance)",
        "sem/kernels/test_families.py",
    ),
    Fault(
        "sem-share: the share of normal noise does not know how many columns have a mixture",
        "bayesstruct/sem/kernels/shares.py",
        "return settings.share_alpha + k, settings.share_beta + d - k",
        "return settings.share_alpha + k, settings.share_beta",
        "sem/kernels/test_shares.py",
    ),
    Fault(
        "sem: the log scale has the density of the scale",
        "bayesstruct/sem/kernels/fits.py",
        "out -= (2.0 * settings.shape + p - 1) * tau",
        "out -= (2.0 * settings.shape + p) * tau",
        "sem/kernels/test_fits.py",
    ),
    Fault(
        "noise-check: p-values of single columns, not adjusted for their number",
        "bayesstruct/sem/reading/noise_check.py",
        "beyond = farthest[1].max(axis=-1)[..., None] >= farthest[0]",
        "beyond = farthest[1] >= farthest[0]",
        "sem/reading/test_noise_check.py",
    ),
    Fault(
        "sem-conditionals: children that were set tell of their parents",
        "bayesstruct/sem/reading/conditionals.py",
        "counts = free[:, factors]",
        "counts = np.ones_like(free[:, factors])",
        "sem/reading/test_conditionals.py",
    ),
    # networks
    Fault(
        "bge: the weight of the prior mean off by one row",
        "bayesstruct/networks/kernels/scores/gaussian.py",
        "n * self.alpha_mu / (n + self.alpha_mu) * np.outer(shift, shift)",
        "n * self.alpha_mu / (n + self.alpha_mu + 1) * np.outer(shift, shift)",
        "networks/kernels/test_scores.py",
    ),
    Fault(
        "bdeu: the sample size is not shared by the configurations",
        "bayesstruct/networks/kernels/scores/expected.py",
        "out[mask] = _dirichlet(cells, r, sample_size / (q * r))",
        "out[mask] = _dirichlet(cells, r, sample_size / r)",
        "networks/modes/test_incomplete.py networks/kernels/test_scores.py networks",
    ),
    Fault(
        "fair: sizes of parent sets off by one",
        "bayesstruct/networks/kernels/dag_priors.py",
        "out = gammaln(size + 1) + gammaln(self.d - size) - gammaln(self.d)",
        "out = gammaln(size + 1) + gammaln(self.d - size + 1) - gammaln(self.d + 1)",
        "networks/kernels/test_dag_priors.py networks/kernels/test_scores.py",
    ),
    Fault(
        "hastings: the numbers of arcs exchanged",
        "bayesstruct/networks/kernels/samplers/structure_mcmc.py",
        "return math.log(arcs_now / arcs_then) + gained - lost",
        "return math.log(arcs_then / arcs_now) + gained - lost",
        "networks/kernels/test_dag_samplers.py",
    ),
    Fault(
        "relocation: a variable is before the wrong place",
        "bayesstruct/networks/kernels/samplers/order_mcmc.py",
        "total += before[order[k - 1]] if k > 0 else 0.0",
        "total += before[order[k]] if k > 0 else 0.0",
        "networks/kernels/test_dag_samplers.py",
    ),
    Fault(
        "variance-draw: the residual sum without one half",
        "bayesstruct/networks/kernels/parameters.py",
        "variance[child] = 0.5 * left / rng.standard_gamma(shape)",
        "variance[child] = left / rng.standard_gamma(shape)",
        "networks/priors/test_networks.py networks/steps/test_complete.py",
    ),
    Fault(
        "dirichlet-draw: a cell without its own log",
        "bayesstruct/networks/kernels/parameters.py",
        "rng.standard_gamma(x[s] + 1.0)) - rng.standard_exponential() / x[s]",
        "rng.standard_gamma(x[s] + 1.0)) - rng.standard_exponential()",
        "networks/priors/test_networks.py networks/steps/test_complete.py",
    ),
    Fault(
        "mixed-accept: new parameters without the weights of the old ones",
        "bayesstruct/networks/steps/mixed_chain.py",
        "sum(weight) - sum(self.weight[i] for i in columns)",
        "sum(weight)",
        "networks/steps/test_mixed.py",
    ),
    Fault(
        "mixed-guided: the scores of the guide are not taken away",
        "bayesstruct/networks/steps/mixed_moves.py",
        "- (after[i] - before[i])",
        "- 0.0 * (after[i] - before[i])",
        "networks/steps/test_mixed_moves.py",
    ),
    Fault(
        "mixed-cells: values that were set say something about their parents",
        "bayesstruct/networks/kernels/mixed_cells.py",
        "out += np.where(self.free[:, i], terms, 0.0)",
        "out += terms",
        "networks/kernels/test_mixed_cells.py",
    ),
    Fault(
        "mixed-ordinal: the Jacobian of the steps between thresholds is left out",
        "bayesstruct/networks/kernels/scores/mixed_ordinal.py",
        "count[k] * math.log(short) + theta[q + k]",
        "count[k] * math.log(short)",
        "networks/kernels/test_mixed_scores.py",
    ),
    Fault(
        "network-cov: the intercepts count once, not for each row",
        "bayesstruct/networks/priors/sample_covariance.py",
        "+ n * intercept**2",
        "+ intercept**2",
        "models/test_covariance.py",
    ),
    Fault(
        "network-cov-draw: noise by its variance, not its deviation",
        "bayesstruct/networks/priors/sample_covariance.py",
        "pt.diag(pt.sqrt(variance)))",
        "pt.diag(variance))",
        "models/test_covariance.py",
    ),
    Fault(
        "new-settings: values of new rows that were set count as observed",
        "bayesstruct/networks/model_parts.py",
        "setting = np.where(was_set, table.values, np.nan)",
        "setting = np.where(was_set, np.nan, np.nan)",
        "core/test_rows.py",
    ),
    Fault(
        "predict-set: a set column still depends on its parents",
        "bayesstruct/networks/reading/effects.py",
        "free = ~np.isin(names, list(setting))",
        "free = np.isin(names, names)",
        "modes/test_predict.py",
    ),
    Fault(
        "effects-share: variance inside graphs counts as variance between them",
        "bayesstruct/networks/reading/effects_by_graph.py",
        "total - inside - (filled - 1) * inside / free",
        "total - inside",
        "networks/test_effects_by_graph.py",
    ),
    Fault(
        "independence-moments: the first term of the variance is left out",
        "bayesstruct/networks/kernels/independence.py",
        "np.maximum(first + n**2 / (n - 1) * w * w_, 0.0)",
        "np.maximum(n**2 / (n - 1) * w * w_, 0.0)",
        "networks/test_independence.py",
    ),
    Fault(
        "independence-nuisance: fitted coefficients count as known",
        "bayesstruct/networks/kernels/mixed_independence.py",
        "across @ np.linalg.pinv(nuisance, hermitian=True) @ across.T",
        "0.0 * own",
        "networks/test_mixed_independence.py",
    ),
    # features
    Fault(
        "buffet: a dish is taken with the chances of one customer later",
        "bayesstruct/features/kernels/indian_buffet.py",
        "chance = (taken[:dishes] - discount) / (i + concentration)",
        "chance = (taken[:dishes] - discount) / (i + 1 + concentration)",
        "features/kernels/test_indian_buffet.py",
    ),
    Fault(
        "buffet-density: the rates of new dishes are not scaled",
        "bayesstruct/features/kernels/indian_buffet.py",
        "- alpha * new_dish_rates(n, concentration, discount).sum()",
        "- new_dish_rates(n, concentration, discount).sum()",
        "features/kernels/test_indian_buffet.py",
    ),
    Fault(
        "stick: log odds of a feature without the log of the chance of its absence",
        "bayesstruct/features/kernels/stick_features.py",
        "log_odds += math.log(probability[a]) - math.log1p(-probability[a])",
        "log_odds += math.log(probability[a])",
        "features/kernels/test_stick_features.py",
    ),
    Fault(
        "score-scale: the Jacobian of a common factor is missing",
        "bayesstruct/features/kernels/factor_loadings.py",
        "change += (m - d) * step - 0.5",
        "change += -0.5",
        "features/steps/test_sparse_factors.py",
    ),
    Fault(
        "causes: the prior of an entry counts one variable too many",
        "bayesstruct/features/kernels/hidden_causes.py",
        "(sums[a] - discount) / (p - 1 - sums[a] + concentration + discount)",
        "(sums[a] - discount) / (p - sums[a] + concentration + discount)",
        "features/steps/test_hidden_causes.py models/test_hidden_causes_calibration.py",
    ),
    Fault(
        "aspects: a lapse counts in full",
        "bayesstruct/features/kernels/aspect_features.py",
        "value += wins * math.log((1.0 - lapse) * share + 0.5 * lapse)",
        "value += wins * math.log((1.0 - lapse) * share + lapse)",
        "features/steps/test_aspect_features.py",
    ),
    Fault(
        "aspect-moves: a split forgets that it was one of two kinds",
        "bayesstruct/features/kernels/aspect_moves.py",
        "ratio += math.log(4.0 * w) - moves.log_split[m, s]",
        "ratio += math.log(2.0 * w) - moves.log_split[m, s]",
        "features/steps/test_aspect_moves.py",
    ),
    Fault(
        "predict-features: a new row is counted among those that have a feature",
        "bayesstruct/features/reading/predictions.py",
        "/ (rows + numbers.concentration)",
        "/ (rows + 1 + numbers.concentration)",
        "modes/test_predict.py",
    ),
    Fault(
        "predict-causes: a leak that only acts without causes",
        "bayesstruct/features/reading/predictions.py",
        "absent = np.log1p(-leak) + active @ feature.T * np.log1p(-strength)",
        "absent = active @ feature.T * np.log1p(-strength) + np.log1p(-leak) * (active @ feature.T == 0)",
        "modes/test_predict.py",
    ),
    # mixtures and series
    Fault(
        "restaurant: the normalising constant of one object less",
        "bayesstruct/mixtures/kernels/chinese_restaurant.py",
        "gammaln(counts).sum() + gammaln(alpha) - gammaln(n + alpha)",
        "gammaln(counts).sum() + gammaln(alpha) - gammaln(n - 1 + alpha)",
        "mixtures/priors/test_chinese_restaurant.py",
    ),
    Fault(
        "student: the scale of a predictive density",
        "bayesstruct/mixtures/kernels/mixture_columns.py",
        "scale = (2.0 * columns.rate[j] + spread) * (weight + 1.0) / weight",
        "scale = (2.0 * columns.rate[j] + spread) / weight",
        "mixtures/kernels/test_mixture_regression.py mixtures/test_steps.py",
    ),
    Fault(
        "empty-clusters: all of them together have the weight of one",
        "bayesstruct/mixtures/kernels/mixture_glm.py",
        "share = log_alpha - math.log(size - max_clusters)",
        "share = log_alpha",
        "mixtures/kernels/test_mixture_glm.py",
    ),
    Fault(
        "emission: shape of the variance with all observations",
        "bayesstruct/series/kernels/states.py",
        "scale = rng.standard_gamma(shape + 0.5 * number)",
        "scale = rng.standard_gamma(shape + number)",
        "series/test_kernels.py series/test_steps.py",
    ),
    Fault(
        "backward: a transition from the next state to this one",
        "bayesstruct/series/kernels/states.py",
        "back[a] = filtered[t, a] * p[a, out[t + 1]]",
        "back[a] = filtered[t, a] * p[out[t + 1], a]",
        "series/test_kernels.py series/test_steps.py",
    ),
    # runs, modes, app
    Fault(
        "rows: a draw is stored in the row before its own",
        "bayesstruct/runs/chains.py",
        "store.record(done - tune, _project(plan, point), stats)",
        "store.record(max(done - tune - 1, 0), _project(plan, point), stats)",
        "runs/test_sample.py",
    ),
    Fault(
        "slots: a checkpoint overwrites the newest one",
        "bayesstruct/runs/checkpoint.py",
        "self._slot, self._dirty = 1 - self._slot, False",
        "self._slot, self._dirty = self._slot, False",
        "runs/test_sample.py runs/test_interrupted.py",
    ),
    Fault(
        "check-error: the standard error of a probability grows with the number of draws",
        "bayesstruct/modes/check.py",
        "np.sqrt(p * (1 - p) / np.nan_to_num(ess, nan=1.0))",
        "np.sqrt(p * (1 - p) * np.nan_to_num(ess, nan=1.0))",
        "modes/test_check.py modes/test_check_directed.py",
    ),
    Fault(
        "quantities: the entries that mix best are shown",
        "bayesstruct/modes/quantities.py",
        'worst = own[np.argsort(-_slowness(draws[..., own]), kind="stable")[:share]]',
        'worst = own[np.argsort(_slowness(draws[..., own]), kind="stable")[:share]]',
        "modes/test_quantities.py",
    ),
    Fault(
        "observed: missing values are among them",
        "bayesstruct/modes/observed.py",
        "shown = ~np.isnan(observed.values.astype(float))",
        "shown = np.ones(observed.shape, bool)",
        "modes/test_observed.py",
    ),
    Fault(
        "excluded: undecided edges are among them",
        "bayesstruct/graphs/evidence.py",
        "factor >= threshold, factor <= 1 / threshold]",
        "factor >= threshold, factor <= threshold]",
        "graphs/plots/test_evidence.py app/test_report.py",
    ),
    Fault(
        "digest: a folder of another table is continued",
        "bayesstruct/app/folder.py",
        'if old["digest"] != new["digest"]:',
        'if old["digest"] != old["digest"]:',
        "app/test_cli.py",
    ),
    # figures
    Fault(
        "figure-sign: edges of negative weight have the colour of positive ones",
        "bayesstruct/graphs/plots/evidence.py",
        "negative = included & (weight < 0)",
        "negative = included & (weight < -1)",
        "graphs/plots/test_evidence.py",
    ),
    Fault(
        "figure-order: rows of a matrix are reordered, and its columns are not",
        "bayesstruct/graphs/plots/evidence.py",
        "p, around = len(names), np.ix_(rows, rows)",
        "p, around = len(names), np.ix_(rows, np.arange(len(rows)))",
        "graphs/plots/test_evidence.py",
    ),
    Fault(
        "figure-scores: sum scores begin at the number of items",
        "bayesstruct/fields/reading/predictive.py",
        'summary.insert(0, "score", np.arange(low, high + 1, step))',
        'summary.insert(0, "score", np.arange(low, high + 1, step) - low + len(names))',
        "fields/reading/test_predictive.py",
    ),
    Fault(
        "figure-links: pairs without a direction are drawn once",
        "bayesstruct/features/reading/link_plots.py",
        "return np.where(links.counted.T, matrix.T, matrix)",
        "return np.where(links.counted, matrix.T, matrix)",
        "features/reading/test_link_plots.py",
    ),
]


def copy(to: Path, commit: str | None) -> None:
    """Copy what is needed to run tests; the tests may be those of another commit."""
    skipped = shutil.ignore_patterns("__pycache__")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=skipped, dirs_exist_ok=True)
        else:
            shutil.copy(source, to / name)
    if commit is not None:
        shutil.rmtree(to / "tests")
        archive = subprocess.run(
            ["git", "archive", commit, "tests"], cwd=ROOT, check=True, capture_output=True
        )
        tarfile.open(fileobj=io.BytesIO(archive.stdout)).extractall(to, filter="data")


def first_failure(folder: Path, tests: list[str], lane: str, seconds: float) -> str | None:
    """Run test files in turn; return the first test that fails, or None."""
    caches = {"NUMBA_CACHE_DIR": folder / "numba", "OPENBLAS_NUM_THREADS": 1}
    caches |= {"PYTENSOR_FLAGS": f"base_compiledir={folder / 'pytensor'}", "MPLBACKEND": "Agg"}
    command = ["uv", "run", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-n", "0", "-m", lane]
    try:
        run = subprocess.run(
            command + [f"tests/{name}" for name in tests],
            cwd=folder,
            env=os.environ | {name: str(value) for name, value in caches.items()},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return NO_END
    if run.returncode in (0, 5):
        return None
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else f"(status {run.returncode})"


def seed(folder: Path, fault: Fault) -> str:
    """Put a fault into a copy; returns the right text of the file."""
    path = folder / fault.file
    right = path.read_text(encoding="utf-8")
    if right.count(fault.old) != 1:
        raise ValueError(f"{fault.name}: the line occurs {right.count(fault.old)} times")
    path.write_text(right.replace(fault.old, fault.new), encoding="utf-8")
    return right


def noticed(folder: Path, fault: Fault, lane: str, seconds: float) -> str | None:
    """Return the test that notices a fault, or None."""
    right = seed(folder, fault)
    try:
        return first_failure(folder, fault.tests.split(), lane, seconds)
    finally:
        (folder / fault.file).write_text(right, encoding="utf-8")


def main() -> int:
    """Seed the faults that were asked for; the exit status is the number of those uncaught."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="first words of the names of faults; all by default"
    )
    parser.add_argument("--tests", metavar="COMMIT", help="take the tests from this commit")
    parser.add_argument("--lane", default=LANES, help=f"expression of marks (default: {LANES!r})")
    parser.add_argument(
        "--folder", type=Path, help="where the copy is kept (default: a temporary one)"
    )
    parser.add_argument("--seconds", type=float, default=600.0, help="limit for one fault")
    options = parser.parse_args()
    chosen = [f for f in FAULTS if not options.names or f.name.startswith(tuple(options.names))]
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        copy(folder, options.tests)
        caught = 0
        for fault in chosen:
            began = time.perf_counter()
            by = noticed(folder, fault, options.lane, options.seconds)
            caught += by not in (None, NO_END)
            took = f"{time.perf_counter() - began:4.0f} s"
            sys.stdout.write(f"{took}  {fault.name}\n        {by or 'NOT CAUGHT'}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{caught} of {len(chosen)} faults caught\n")
    return len(chosen) - caught


if __name__ == "__main__":
    sys.exit(main())
