"""The options of each model as the command line takes them: kind of value, meaning, default.

They are written down here so that `bayesstruct learn --help` need not load the models. A new argument of a model
is one more record, or one more name in `PYTHON_ONLY`, with the reason.
"""

from dataclasses import dataclass
from typing import Any

from bayesstruct.models.catalogue import MODELS

__all__ = ["ELSEWHERE", "OPTIONS", "PYTHON_ONLY", "Option"]


@dataclass(frozen=True)
class Option:
    """An option of a model.

    Attributes
    ----------
    name : str
        Of the argument of the model.
    kind : {"number", "whole", "choice", "truth", "two numbers", "text", "columns", "pairs", "tiers", "blocks", "neighbours", "set"}
        Of value. ``"truth"`` is yes or no, or one of `choices`; ``"text"`` is the name of a column; ``"columns"`` are several;
        ``"pairs"`` are pairs of columns or objects; ``"set"`` says which values were set from outside.
    help : str
        What it means, in one line.
    default : object, optional
        That of the model; None if the model works it out.
    choices : tuple of str
        Words that are accepted: all values of a choice, others beside numbers and truth values.
    above, least, below, most : float, optional
        Bounds of numbers: exclusive lower one, inclusive lower one, exclusive upper one, inclusive upper one.
    required : bool
        Whether the model cannot do without it.
    """

    name: str
    kind: str
    help: str
    default: Any = None
    choices: tuple[str, ...] = ()
    above: float | None = None
    least: float | None = None
    below: float | None = None
    most: float | None = None
    required: bool = False

    @property
    def flag(self) -> str:
        """The option on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def several(self) -> bool:
        """Whether it may be given several times."""
        return self.kind == "pairs"


def _number(name, meaning, default=None, *, above=None, least=None, below=None, words=()):
    return Option(name, "number", meaning, default, tuple(words), above, least, below)


def _positive(name, meaning, default=None, *, words=()):
    return _number(name, meaning, default, above=0, words=words)


def _choice(name, meaning, default, *choices):
    return Option(name, "choice", meaning, default, choices)


def _whole(name, meaning, default=None, *, least=1):
    return Option(name, "whole", meaning, default, least=least)


def _prior(model):
    return _choice("prior", "Prior.", MODELS[model].priors[0], *MODELS[model].priors)


def _chance(name, meaning, default=None, *words):
    return _number(name, meaning, default, above=0, below=1, words=words)


BETA, GAMMA, STOCHASTIC_BLOCK = "beta:A,B", "gamma:A,B", "blocks"
_ROW_COUNTS = Option("row_counts", "text", "Column that says how often each row was observed.")
_N = _whole("n", "Number of rows that the matrix was computed from (with --cov).", least=2)
_REQUIRED = Option("required", "pairs", "Edge known to be there.", ())
_FORBIDDEN = Option("forbidden", "pairs", "Edge known to be absent.", ())
_GROUP = Option(
    "group", "text", "Column with the group of each row; learns which dependences differ."
)
_COVARIATES = Option(
    "covariates", "columns", "Columns that act on the means of the others, and are no variables."
)
_STANDARDIZE = Option("standardize", "truth", "Standardise the columns first.", True)
_SPIKE = _positive(
    "spike_scale", "Standard deviation of a precision element without an edge.", 0.02
)
_SLAB = _positive("slab_scale", "Standard deviation of a precision element with an edge.", 1.0)
_RATE = _positive("rate", "Laplace rate of the elements.", 1.0, words=[GAMMA])
_DIAGONAL = _positive("diagonal_rate", "Exponential rate of the diagonal elements.")
_NEGLIGIBLE = _positive(
    "negligible", "Absolute partial correlation up to which a pair is not connected.", 0.1
)
_EDGE = "Prior probability of an edge."
_ALPHA = _positive("alpha", "Mean number of features of a row; has a prior by default.")
_NOISE = _positive("noise", "Standard deviation of the noise; has a prior by default.")
_LOADINGS = _positive(
    "loading_scale", "Standard deviation of the loadings; has a prior by default."
)
_WEIGHTS = _positive("weight_scale", "Scale of the weights; has a prior by default.")
_MAX = _whole("max_features", "Maximum number of features; a chain that needs more stops.")
_CONCENTRATION = _positive("concentration", "Second parameter of the process.", 1.0)
_NORMAL = Option(
    "normal_probability",
    "number",
    "Of exactly normal noise in a column, with noise mixture; learned from all columns by default.",
    least=0,
    most=1,
)
_DISCOUNT = _number("discount", "Third parameter of the process.", 0.0, least=0, below=1)
_UNOBSERVED = Option(
    "unobserved", "pairs", "Pair of which it is not known whether it is linked.", ()
)
_PROCESS = (_CONCENTRATION, _DISCOUNT, _MAX)

_GAUSSIAN_TABLE = (_COVARIATES, _STANDARDIZE, _ROW_COUNTS, _N)
_NEIGHBOURHOOD = (
    _positive("expected_neighbours", "Prior expected number of predictors of a column."),
    _chance("inclusion", "Instead of it, the prior probability of an arc.", None, BETA),
    _choice("slab", "Distribution of a coefficient that is not zero.", None, "normal", "laplace"),
    _positive("slab_scale", "Scale of a coefficient that is not zero."),
    _positive("rate", "Rate of the Laplace prior."),
    _positive("negligible", "Absolute coefficient up to which there is no arc (not spike_slab)."),
)
_FIELD = (
    _choice("likelihood", "Exact, or a product of conditionals.", "pseudo", "pseudo", "exact"),
    Option("graph", "pairs", "Edge that may be there; no others then."),
    _chance("edge_probability", f"{_EDGE[:-1]}, 0.5 by default.", None, BETA, STOCHASTIC_BLOCK),
    Option("required", "pairs", "Edge known to be there."),
    Option("forbidden", "pairs", "Edge known to be absent."),
    _choice(
        "slab", "Distribution of a weight that is not zero.", None, "normal", "laplace", "cauchy"
    ),
    _positive("slab_scale", "Scale of a weight that is not zero."),
    _positive("rate", "Rate of the Laplace prior."),
    _positive("negligible", "Absolute weight up to which there is no edge (not spike_slab)."),
    _positive("bias_scale", "Standard deviation of the biases.", 5.0),
    _ROW_COUNTS,
    _GROUP,
    _chance("difference_probability", "Prior probability that an edge differs.", None, BETA),
    _positive("difference_scale", "Standard deviation of differences between groups."),
)

#: Options that the models of linear structural equations share.
_EQUATIONS = (
    _positive("scale", "Of the weights, in units of the noise."),
    _choice("graph_prior", "Of graphs.", "uniform", "uniform", "edge", "fair"),
    _chance("edge_probability", "Of the graph prior edge."),
    _whole("max_parents", "Maximum number of parents of a column."),
    Option("required", "pairs", "Arc (from, to) known to be there.", ()),
    Option("forbidden", "pairs", "Arc (from, to) known to be absent.", ()),
    Option("tiers", "tiers", "Groups of columns, the earliest first; no arc points back."),
    Option("interventions", "set", "Which values were set from outside."),
    _positive("equivalent_sample_size", "Rows that the prior is worth.", 1.0),
    _ROW_COUNTS,
)

#: Options of each model, by its name, as the command line takes them.
OPTIONS: dict[str, tuple[Option, ...]] = {
    "gaussian_graphical": (
        _prior("gaussian_graphical"),
        _chance("edge_probability", _EDGE, 0.5, BETA, STOCHASTIC_BLOCK),
        _REQUIRED,
        _FORBIDDEN,
        _choice(
            "marginals", "Distribution of the columns.", "gaussian",
            "gaussian", "student", "alternative_student", "rank", "mixed",
        ),
        _positive("degrees", "Degrees of freedom of the t distributions; learned by default.", words=[GAMMA]),
        _SPIKE,
        _SLAB,
        _RATE,
        _positive("global_scale", "Scale of the elements (horseshoe); learned by default."),
        _DIAGONAL,
        _number("degrees_of_freedom", "b of the G-Wishart distribution.", 3.0, above=2),
        _NEGLIGIBLE,
        _COVARIATES,
        Option("standardize", "truth", "Standardise the columns first.", None, ("conditional",)),
        _ROW_COUNTS,
        _N,
    ),
    "locally_constant_gaussian_graphical": (
        Option("neighbours", "neighbours", "Columns that are next to each other.", "chain"),
        _RATE,
        _number("smoothness", "Rate of differences between neighbours, in multiples of the rate.", 1.0, least=0),
        _DIAGONAL,
        _NEGLIGIBLE,
        *_GAUSSIAN_TABLE,
    ),
    "blockwise_gaussian_graphical": (
        Option("blocks", "blocks", "Blocks of columns; learned by default."),
        _RATE,
        _positive("block_rate", "Rate of the elements between blocks, in multiples of the rate.", 1.0),
        _choice("norm", "Of the elements between two blocks.", "l2", "l2", "linf", "nuclear"),
        _NEGLIGIBLE,
        _whole("max_blocks", "Maximum number of unknown blocks.", 5, least=2),
        Option("within", "two numbers", "Beta prior of the edge probability within blocks.", (2.0, 2.0)),
        Option("between", "two numbers", "Beta prior of the edge probability between blocks.", (1.0, 9.0)),
        _positive("concentration", "Of the shares of unknown blocks.", 1.0),
        _SPIKE,
        _SLAB,
        _DIAGONAL,
        *_GAUSSIAN_TABLE,
    ),
    "node_selection_gaussian_graphical": (
        _prior("node_selection_gaussian_graphical"),
        _chance("node_probability", "Prior probability that a column takes part.", 0.5),
        _chance("edge_probability", "Prior probability of an edge between two that do.", 0.5),
        _SPIKE,
        _SLAB,
        _RATE,
        _positive("node_rate", "Rate of the norm of each row, in multiples of the rate.", 1.0),
        _choice("norm", "Of a row.", "l2", "l2", "linf"),
        _DIAGONAL,
        _NEGLIGIBLE,
        *_GAUSSIAN_TABLE,
    ),
    "grouped_gaussian_graphical": (
        Option("group", "text", "Column with the group of each row.", required=True),
        _chance("edge_probability", "Prior probability that a pair is connected.", 0.5, BETA),
        _chance("difference_probability", "Prior probability that a connected pair differs.", 0.5, BETA),
        _REQUIRED,
        _FORBIDDEN,
        _choice("differences", "What differs: strengths, or which edges there are.", "contrasts", "contrasts", "indicators"),
        _SPIKE,
        _SLAB,
        _positive("equal_scale", "Standard deviation of a contrast without a difference, 0.02 by default."),
        _positive("difference_scale", "Standard deviation of a contrast with a difference, 1 by default."),
        _positive("diagonal_rate", "Exponential rate of the diagonal elements.", 0.5),
        Option("standardize", "truth", "Standardise the columns first.", True, ("group",)),
        _ROW_COUNTS,
    ),
    "gaussian_neighbourhoods": (
        _prior("gaussian_neighbourhoods"),
        *_NEIGHBOURHOOD,
        Option("noise_prior", "two numbers", "Shape and scale of the noise variances.", (2.0, 1.0)),
        _ROW_COUNTS,
    ),
    "ising_neighbourhoods": (
        _prior("ising_neighbourhoods"),
        *_NEIGHBOURHOOD,
        _positive("intercept_scale", "Standard deviation of the intercepts.", 2.5),
        _ROW_COUNTS,
    ),
    "ising": (
        _prior("ising"),
        _choice("coding", "Values of the two states in the model.", "01", "01", "pm"),
        *_FIELD,
        _positive("expected_edges", "Prior expected number of edges (horseshoe)."),
    ),
    "pairwise_mrf": (
        _choice(
            "potentials", "How the states of two columns act.", "full",
            "full", "ising", "generalized_ising", "ordinal", "blume_capel",
        ),
        _prior("pairwise_mrf"),
        *_FIELD,
        _choice("norm", "Of the weights of a pair (group_laplace).", None, "2", "inf", "nuclear", "1"),
        _whole("reference", "State, from 0, from which blume_capel measures.", 0, least=0),
    ),
    "tree": (
        _choice(
            "score", "What columns are: numbers (bge), states (bdeu) or both (mixed).", "bge",
            "bge", "bdeu", "mixed",
        ),
        _chance("edge_probability", "Of each edge, before the graph is known to be a tree.", 0.5),
        _FORBIDDEN,
        _positive("equivalent_sample_size", "Rows that the prior is worth.", 1.0),
        _ROW_COUNTS,
    ),
    "forest": (
        _choice("score", "What columns are: numbers (bge) or states (bdeu).", "bge", "bge", "bdeu"),
        _FORBIDDEN,
        _positive("equivalent_sample_size", "Rows that the prior is worth.", 1.0),
        _ROW_COUNTS,
    ),
    "latent_tree": (
        _choice("score", "What columns are: numbers (bge) or states (bdeu).", "bge", "bge", "bdeu"),
        _positive("hidden_weight", "Prior odds that a hidden node adds to a tree.", 1.0),
        _whole("max_hidden", "Maximum number of hidden nodes; by default two fewer than columns.", least=0),
        _positive("correlation_shape", "Of the prior of correlations along edges of numbers; by default 1: uniform."),
        _whole("hidden_states", "How many states a hidden node has beside columns of states.", least=2),
        _positive("equivalent_sample_size", "Rows that the prior of states is worth; 4 by default."),
        _ROW_COUNTS,
    ),
    "bayesian_network": (
        _choice(
            "score", "Marginal likelihood.", "bge",
            "bge", "bdeu", "bde", "bic", "gaussian", "multinomial", "logistic", "mixed",
        ),
        _prior("bayesian_network"),
        _choice("weights", "Of parent sets (prior order).", None, "uniform", "edge", "fair"),
        _chance("edge_probability", "Of the prior edge."),
        _whole("max_parents", "Maximum number of parents of a column."),
        Option("required", "pairs", "Arc (from, to) known to be there.", ()),
        Option("forbidden", "pairs", "Arc (from, to) known to be absent.", ()),
        Option("tiers", "tiers", "Groups of columns, the earliest first; no arc points back."),
        Option("interventions", "set", "Which values were set from outside."),
        _positive("equivalent_sample_size", "Rows that the prior is worth, 1 by default."),
        _positive("pseudo_count", "Prior weight of each cell (bde), 1 by default."),
        _positive("coefficient_scale", "Standard deviation of coefficients (mixed), 1.41 by default."),
        _ROW_COUNTS,
        _N,
    ),
    "linear_sem": (
        _choice(
            "noise", "Distribution of the noise.", "gaussian",
            "gaussian", "laplace", "student", "mixture",
        ),
        _NORMAL,
        _choice("variances", "Of the noise; known ones are for Python only.", "free", "free", "equal"),
        _prior("linear_sem"),
        *_EQUATIONS,
    ),
    "lingam": (
        _choice(
            "noise", "Distribution of the noise.", "mixture", "mixture", "laplace", "student",
        ),
        _NORMAL,
        _prior("lingam"),
        *_EQUATIONS,
    ),
    "network_classifier": (
        Option("target", "text", "Column of the class, which the others predict.", required=True),
        _choice("structure", "A tree joins the features, none does, or hill climbing.", "tan", "tan", "naive", "ghc2"),
        _choice("score", "Of structures; bdeu for tan, fcll for ghc2.", None, "bdeu", "fcll", "log_likelihood", "mdl", "acll"),
        _positive("equivalent_sample_size", "Rows that the prior is worth (tan by bdeu), 10 by default."),
        _positive("pseudo_count", "Otherwise the prior weight of each cell, 0.5 by default."),
        _choice("incomplete_rows", "Leave out rows with missing values, or refuse them.", "drop", "drop", "error"),
        _ROW_COUNTS,
    ),
    "latent_features": (
        _positive("alpha", _ALPHA.help, words=[GAMMA]),
        _choice("sampler", "How features are drawn.", "gibbs", "gibbs", "accelerated", "slice"),
        _NOISE,
        _LOADINGS,
        _number("baseline", "Mean of a row without features.", 0.0),
        *_PROCESS,
    ),
    "link_prediction": (
        _choice("link", "Probability as a function of the weights.", "logistic", "logistic", "probit"),
        Option("directed", "truth", "Whether links have a direction; an edge list has none by default."),
        _UNOBSERVED,
        _ALPHA,
        _WEIGHTS,
        _positive("bias_scale", "Prior standard deviation of the bias."),
        *_PROCESS,
    ),
    "binary_matrix_factorization": (
        _ALPHA,
        _positive("column_alpha", "Mean number of features of a column."),
        _NOISE,
        _WEIGHTS,
        _CONCENTRATION,
        _positive("column_concentration", "Second parameter of the process of the columns.", 1.0),
        _MAX,
    ),
    "additive_clustering": (_ALPHA, _NOISE, _WEIGHTS, _MAX),
    "protein_complexes": (
        _UNOBSERVED,
        _ALPHA,
        _WEIGHTS,
        _positive("leak_scale", "Scale of the bias.", 0.1),
        _MAX,
    ),
    "hidden_causes": (
        _ALPHA,
        _chance("strength", "Probability that an active cause acts; has a prior by default."),
        _chance("leak", "Probability of an occurrence without a cause; has a prior by default."),
        _chance("base_rate", "Probability that a cause is active; has a prior by default."),
        *_PROCESS,
        _ROW_COUNTS,
    ),
    "sparse_factor_analysis": (_ALPHA, _NOISE, _LOADINGS, *_PROCESS),
    "infinite_ica": (_ALPHA, _NOISE, _LOADINGS, *_PROCESS),
    "elimination_by_aspects": (
        _ALPHA,
        _chance("lapse", "Probability of a choice at random.", 0.01),
        _MAX,
    ),
    "markov_transitions": (
        Option("series", "text", "Column that names the series; without it the table is one series."),
        _positive("alpha", "Mean number of behaviours of a series; has a prior by default."),
        _positive("transition_concentration", "Of the transitions.", 1.0),
        _number("stickiness", "How long a series is expected to stay.", 10.0, least=0),
        _positive("mean_scale", "Standard deviation of the means of behaviours.", 1.0),
        _positive("variance_shape", "Of the variances of behaviours.", 2.0),
        _positive("variance_rate", "Of the variances of behaviours.", 0.2),
        *_PROCESS,
    ),
    "dp_glm": (
        Option("response", "text", "Column that the others predict.", required=True),
        _choice("family", "Distribution of the response.", "gaussian", "gaussian", "logistic", "poisson"),
        _positive("alpha", "Mass of the process; has a prior by default."),
        _positive("within", "Prior variance within a cluster, as a share.", 0.5),
        _positive("mean_strength", "Rows that the prior of a mean counts as.", 0.25),
        _positive("coefficient_scale", "Prior standard deviation of the coefficients."),
        _whole("max_clusters", "Maximum number of clusters.", 50),
    ),
}  # fmt: skip

#: Arguments of models that the command line takes as what all models have in common.
ELSEWHERE = {
    "data": "TABLE",
    "graph": "TABLE",  # of models of links; in fields it is an option
    "ratings": "TABLE",
    "similarities": "TABLE",
    "wins": "TABLE",
    "cov": "--cov",
    "missing_codes": "--missing",
    "states": "--states",
}

#: Arguments that the command line does not have, with the reason.
PYTHON_ONLY = {
    ("bayesian_network", "kinds"): "there is one family for each of some columns",
    (
        "forest",
        "edge_probability",
    ): "one number for all edges makes no difference, and a matrix is no option",
    ("forest", "edge_share"): "it is two numbers",
    ("tree", "kinds"): "there is one kind for each of some columns",
    ("tree", "edge_covariates"): "there is a matrix for each covariate",
    ("tree", "coefficient_scale"): "it belongs to edge_covariates",
    ("linear_sem", "known_variances"): "there is one number for each column",
    ("grouped_gaussian_graphical", "cov"): "there is one matrix for each group",
    ("grouped_gaussian_graphical", "n"): "there is one number for each group",
}
