"""What each model of graphs says of a table and which priors it has, in the sentences of a methods section."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from bayesstruct.app.report.latent_models import LATENT_MODELS
from bayesstruct.app.report.options import Described, Options
from bayesstruct.app.report.tree_models import TREE_MODELS
from bayesstruct.classifiers.kernels.scores import SAMPLE_SIZE

if TYPE_CHECKING:
    from bayesstruct.app.report.parts import Result

__all__ = ["describe"]


def describe(result: "Result") -> Described:
    """Describe the model of a result with its priors.

    Parameters
    ----------
    result : Result

    Returns
    -------
    Described
    """
    options = Options(result)
    question, sentences = _MODELS[result.job.options["model"]](options)
    return Described(question, tuple(s for s in sentences if s), tuple(options.used))


# ---- Gaussian graphical models ---------------------------------------------------------------

_GAUSSIAN = (
    "A Gaussian graphical model was used: rows are independent draws from a multivariate normal distribution, and two variables are connected if "
    "their partial correlation given all others is not negligible."
)
_ASKED = "which variables depend on each other, given all others?"


def _gaussian_graphical(o: Options):
    prior = o.get("prior")
    return _ASKED, [_rows(o), _standardised(o), *_ELEMENTS[prior](o), _learned(o)]


def _rows(o: Options) -> str:
    kinds = {
        "gaussian": _GAUSSIAN,
        "student": _GAUSSIAN.replace("multivariate normal", "multivariate t")
        + f" Its degrees of freedom had the prior {o.scaled('degrees', 'Gamma(2, 0.1)')}.",
        "alternative_student": "A graphical model of rows with an alternative t distribution was used, in which each value has a weight of its own "
        f"{o.cite('finegold') if o.get('marginals') == 'alternative_student' else ''}; the degrees of freedom had the prior "
        f"{o.scaled('degrees', 'Gamma(2, 0.1)')}.",
        "rank": "A Gaussian copula graphical model was used: only the order of the values of each column enters the likelihood"
        f"{' ' + o.cite('hoff') if o.get('marginals') == 'rank' else ''}, and edges join the normal values behind the columns.",
        "mixed": "A graphical model of mixed columns was used: columns of numbers are normal, ordered ones enter by their order, and states without an "
        f"order by a multinomial probit model{' ' + o.cite('hoff', 'imai') if o.get('marginals') == 'mixed' else ''}; edges join the normal values "
        "behind the columns.",
    }
    return kinds[o.get("marginals", "gaussian")]


def _standardised(o: Options) -> str:
    if o.get("marginals") == "rank":
        return ""  # their values do not matter
    value = o.get("standardize", "conditional" if _has_conditional_units(o) else True)
    how = {
        "conditional": "Columns were divided by their standard deviations given all other columns.",
        "group": "Columns were standardised within each group.",
    }
    return how.get(
        value, "Columns were standardised." if value else "Columns were not standardised."
    )


def _has_conditional_units(o: Options) -> bool:
    """Whether the scales of a result are other multiples of the standard deviations in each column: the model chose so."""
    constants, frame = o.result.idata.children.get("constant_data"), o.result.job.frame
    if constants is None or "scale" not in constants or constants["scale"].dims != ("node",):
        return False
    scale = constants["scale"].to_series()
    if not {*scale.index} <= {*frame.columns}:
        return False
    ratio = scale / frame[[*scale.index]].std()
    return bool(ratio.max() > 1.1 * ratio.min())


def _spike_slab_elements(o: Options):
    return [
        f"Off-diagonal elements of the precision matrix had a normal spike-and-slab prior {o.cite('wang2015')} with standard deviations "
        f"{o.number('spike_scale')} without and {o.number('slab_scale')} with an edge, diagonal elements an exponential prior with rate "
        f"{o.number('diagonal_rate', 0.5)}, and {o.edges('nominal ')}; since precision matrices are positive definite, the prior probability of an "
        f"edge is then {o.implied}."
    ]


def _laplace_elements(o: Options, *more: str):
    rate = o.get("rate")
    diagonal = o.get("diagonal_rate", rate / 2 if isinstance(rate, int | float) else "half of that")
    written = f"{diagonal:g}" if isinstance(diagonal, int | float) else diagonal
    return [
        f"Off-diagonal elements of the precision matrix had a Laplace prior with rate {o.number('rate')} {o.cite('wang2012')}, and diagonal elements "
        f"an exponential prior with rate {written}.",
        *more,
        _beyond(o),
    ]


def _beyond(o: Options) -> str:
    return (
        f"A pair counted as connected if its absolute partial correlation was larger than {o.number('negligible')}, which has the prior probability "
        f"{o.implied}."
    )


def _horseshoe_elements(o: Options):
    return [
        f"Off-diagonal elements of the precision matrix had a graphical horseshoe prior {o.cite('li')} with the global scale "
        f"{o.scaled('global_scale', 'half-Cauchy(0, 1)')}, and diagonal elements an exponential prior with rate {o.number('diagonal_rate', 0.5)}.",
        _beyond(o),
    ]


def _g_wishart_elements(o: Options):
    return [
        f"Given the graph, the precision matrix had a G-Wishart({o.number('degrees_of_freedom')}, I) prior {o.cite('boom')}; {o.edges()}."
    ]


def _pseudo_elements(o: Options):
    return [
        "The likelihood was approximated by the root of the product of the marginal densities of each column given its neighbours, as if columns had "
        f"a Wishart(3, I) precision matrix (in the manner of {_bare(o, 'leppa')}); {o.edges()}."
    ]


def _bare(o: Options, key: str) -> str:
    return o.cite(key)[1:-1]


_ELEMENTS: dict[str, Callable[[Options], list[str]]] = {
    "spike_slab": _spike_slab_elements,
    "laplace": _laplace_elements,
    "horseshoe": _horseshoe_elements,
    "g_wishart": _g_wishart_elements,
    "pseudo_likelihood": _pseudo_elements,
}


def _learned(o: Options) -> str:
    if "edge_probability" not in o.result.drawn or o.is_said:
        return ""
    return "The edge probability was a parameter with that prior."


def _locally_constant(o: Options):
    return (
        "which variables depend on each other, if neighbouring ones have similar dependences?",
        [
            _GAUSSIAN,
            _standardised(o),
            *_laplace_elements(
                o,
                f"Differences of elements between neighbouring columns ({_neighbours(o)}) had Laplace priors with {o.number('smoothness')} times that "
                f"rate {o.cite('honorio2009')}.",
            ),
        ],
    )


def _neighbours(o: Options) -> str:
    value = o.get("neighbours")
    if value == "chain":
        return "in the order of the table"
    return "on a grid" if _is_shape(value) else "as given"


def _is_shape(value) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, int) for v in value)


def _blockwise(o: Options):
    question = "which kinds of variables depend on each other, and which variables?"
    if o.get("blocks") is None:
        a, b = o.get("within"), o.get("between")
        return question, [
            _GAUSSIAN,
            _standardised(o),
            f"Variables belong to unknown blocks, at most {o.number('max_blocks')} (Dirichlet concentration {o.number('concentration')}); the "
            f"probability of an edge had the prior Beta({a[0]:g}, {a[1]:g}) within a block and Beta({b[0]:g}, {b[1]:g}) between two blocks.",
            f"Off-diagonal elements of the precision matrix had a normal spike-and-slab prior {o.cite('wang2015')} with standard deviations "
            f"{o.number('spike_scale')} without and {o.number('slab_scale')} with an edge, and diagonal elements an exponential prior with rate "
            f"{o.number('diagonal_rate', 0.5)}.",
        ]
    norms = {"l2": "Euclidean", "linf": "largest absolute value", "nuclear": "nuclear"}
    return question, [
        _GAUSSIAN,
        _standardised(o),
        *_laplace_elements(
            o,
            f"The elements between two known blocks of variables were shrunk together, by a prior on their norm ({norms[o.get('norm')]}; rate "
            f"{o.number('block_rate')} in multiples of that rate, growing with the size of the blocks; {_bare(o, 'schmidt')}).",
        ),
    ]


def _node_selection(o: Options):
    question = (
        "which variables take part in the graph at all, and which of them depend on each other?"
    )
    if o.get("prior") == "laplace":
        more = (
            f"The row of each variable was shrunk together, by a prior on its norm with {o.number('node_rate')} times that rate "
            f"{o.cite('honorio2012')}."
        )
        return question, [_GAUSSIAN, _standardised(o), *_laplace_elements(o, more)]
    return question, [
        _GAUSSIAN,
        _standardised(o),
        f"Each variable takes part in the graph with the nominal prior probability {o.number('node_probability')}; edges join variables that do.",
        *_spike_slab_elements(o),
    ]


def _grouped(o: Options):
    contrasts = o.get("differences") == "contrasts"
    differ = (
        f"Contrasts between groups had the standard deviations {o.number('equal_scale', 0.02)} without and "
        f"{o.number('difference_scale', 1)} with a difference {o.cite('marsman_groups')}; a connected pair differs between "
        f"groups with the nominal prior probability {o.number('difference_probability')}."
        if contrasts
        else "Each group had edges of its own, which are more probable where other groups have them "
        f"{o.cite('peterson')}; a connected pair is not connected in all groups with the nominal prior probability "
        f"{o.number('difference_probability')}."
    )
    return "which dependences differ between the groups?", [
        "A Gaussian graphical model was used for each group of rows, in which a pair of variables is connected in no group, connected alike in all, or "
        "differs between groups.",
        _standardised(o),
        f"Elements of the precision matrices had normal spike-and-slab priors {o.cite('wang2015')} with standard deviations "
        f"{o.number('spike_scale')} without and {o.number('slab_scale')} with an edge, diagonal elements exponential priors with rate "
        f"{o.number('diagonal_rate')}; {o.edges('nominal ')}.",
        differ,
    ]


# ---- neighbourhoods --------------------------------------------------------------------------


def _neighbourhoods(o: Options, kind: str, scales: tuple, noise: str, papers: tuple[str, ...]):
    slab, negligible, rate = scales
    prior = o.get("prior")
    p = o.result.job.frame.shape[1]
    expected = o.number("expected_neighbours", min(3.0, (p - 1) / 2))
    arcs = (
        f"prior inclusion probabilities {o.number('inclusion')}"
        if o.get("inclusion") is not None
        else f"an expected number of {expected} predictors"
    )
    priors = {
        "spike_slab": f"Coefficients had spike-and-slab priors: zero, or {o.get('slab', 'normal')} with scale {o.number('slab_scale', slab)}, with "
        f"{arcs}.",
        "laplace": f"Coefficients had Laplace priors with rate {o.number('rate', rate)}; those beyond {o.number('negligible', negligible)} counted as "
        "present.",
        "horseshoe": f"Coefficients had a regularised horseshoe prior with {arcs}; those beyond {o.number('negligible', negligible)} counted as "
        "present.",
    }
    return "which variables predict each of them?", [
        f"Each column was regressed on all others by a {kind} regression of its own {o.cite(*papers)}: a dependency network and no joint "
        "distribution. An edge is a pair of which each predicts the other; its probability is the product of the two.",
        priors[prior],
        noise,
    ]


def _gaussian_neighbourhoods(o: Options):
    a, b = o.get("noise_prior")
    return _neighbourhoods(
        o,
        "linear",
        (0.5, 0.1, 5.0),
        f"Columns were standardised; intercepts had Normal(0, 1) and noise variances inverse-gamma({a:g}, {b:g}) priors.",
        ("meinshausen", "heckerman2000"),
    )


def _ising_neighbourhoods(o: Options):
    return _neighbourhoods(
        o,
        "logistic",
        (1.0, 0.2, 1.0),
        f"Intercepts had normal priors with standard deviation {o.number('intercept_scale')}.",
        ("ravikumar", "heckerman2000"),
    )


# ---- Markov random fields --------------------------------------------------------------------


def _ising(o: Options):
    unit = 0.25 if o.get("coding") == "pm" else 1.0
    values = "-1 and 1" if o.get("coding") == "pm" else "0 and 1"
    weights = {
        "spike_slab": _slab(
            o, unit, o.cite("marsman2022") if o.get("prior") == "spike_slab" else ""
        ),
        "laplace": f"Weights had Laplace priors with rate {o.number('rate', 1 / unit)}; {_weights_beyond(o, 0.2 * unit)}",
        "horseshoe": f"Weights had a regularised horseshoe prior; {_weights_beyond(o, 0.2 * unit)}",
    }
    return _ASKED, [
        f"An Ising model of the two states of each column (coded {values}) was used: the log odds of each value are linear in the other values of its "
        "row, and two variables are connected if the weight between them is not zero.",
        _field_likelihood(o),
        weights[o.get("prior")],
        f"Biases had normal priors with standard deviation {o.number('bias_scale')}.",
        *_field_groups(o, unit),
    ]


def _slab(o: Options, unit: float, citation: str) -> str:
    return (
        f"Weights had spike-and-slab priors: zero without an edge, {o.get('slab', 'normal')} with scale {o.number('slab_scale', unit)} with an "
        f"edge{' ' + citation if citation else ''}; {o.edges(default=0.5)}."
    )


def _weights_beyond(o: Options, default: float) -> str:
    return (
        f"a pair counted as connected if its absolute weight was larger than {o.number('negligible', default)}, which has the prior probability "
        f"{o.implied}."
    )


def _field_likelihood(o: Options) -> str:
    if o.get("likelihood") == "exact":
        return "The likelihood was exact."
    return (
        f"The likelihood was replaced by the pseudo-likelihood, the product of the conditional probabilities of all values {o.cite('besag')}; "
        "it overstates the evidence for edges somewhat."
    )


def _field_groups(o: Options, unit: float) -> list[str]:
    if o.get("group") is None:
        return []
    return [
        f"Groups of rows had weights of their own: contrasts between groups are zero or normal with scale {o.number('difference_scale', unit)} "
        f"{o.cite('marsman_groups')}, and a connected pair differs with the prior probability {o.number('difference_probability', 0.5)}."
    ]


_POTENTIALS = {
    "full": "a weight for each pair of states",
    "ising": "one weight for equal states",
    "generalized_ising": "one weight for each state that the two have in common",
    "ordinal": "one weight, which multiplies the product of their states, counted from 0",
    "blume_capel": "one weight, which multiplies the product of their states, counted from 0 (with Blume-Capel biases)",
}


def _pairwise_mrf(o: Options):
    ordinal = o.get("potentials") in ("ordinal", "blume_capel")
    source = "marsman_ordinal" if ordinal else "schmidt"
    if o.get("prior") == "group_laplace":
        weights = (
            f"The weights of each pair had a group-Laplace prior with rate {o.number('rate', 1)}; a pair counted as connected if the strength of its "
            f"interaction was larger than {o.number('negligible', 0.2)}."
        )
    else:
        weights = _slab(o, 1.0, "")
        if ordinal:
            weights += " The scale is that of two binary columns; pairs with more states have proportionally smaller ones."
    return _ASKED, [
        f"A pairwise Markov random field was used {o.cite(source)}: each pair of columns has {_POTENTIALS[o.get('potentials')]}, and two variables "
        "are connected if this interaction is not zero.",
        _field_likelihood(o),
        weights,
        f"Biases had normal priors with standard deviation {o.number('bias_scale')}.",
        *_field_groups(o, 1.0),
    ]


# ---- Bayesian networks -----------------------------------------------------------------------


def _bayesian_network(o: Options):
    score = o.get("score")
    sample_size = o.number("equivalent_sample_size", 1)
    likelihoods = {
        "bge": lambda: (
            "each column, standardised, follows a linear regression on its parents with normal noise. Graphs were weighed by the marginal likelihood "
            f"BGe {o.cite('geiger', 'kuipers2014')}, with a prior of the means that is worth {sample_size} row{'s' * (sample_size != '1')}"
        ),
        "bdeu": lambda: (
            "each column has a distribution of its own for each configuration of its parents. Graphs were weighed by the marginal likelihood BDeu "
            f"{o.cite('heckerman1995')} with equivalent sample size {sample_size}"
        ),
        "bde": lambda: (
            "each column has a distribution of its own for each configuration of its parents, with a Dirichlet prior of "
            f"{o.number('pseudo_count', 1)} for each state. Graphs were weighed by their marginal likelihood {o.cite('heckerman1995')}"
        ),
        "mixed": lambda: (
            "columns of numbers, standardised, follow linear regressions on their parents with normal noise, columns of two states logistic regressions, "
            "ordered categories cumulative logistic regressions and other states multinomial logistic regressions. Coefficients had normal priors "
            f"with standard deviation {o.number('coefficient_scale', 1.41)} (of numbers relative to their noise)"
        ),
    }
    described = likelihoods.get(
        score,
        lambda: (
            "each column has a distribution given its parents, a regression or a table. Graphs were weighed by exp(-BIC / 2)"
        ),
    )()
    return "which directed acyclic graphs explain the table, and which effects do they imply?", [
        f"Bayesian networks, which are directed acyclic graphs, were compared: {described}.",
        _graph_prior(o, o.get("prior")),
        _constraints(o),
        _interventions(o),
        f"Graphs were drawn from their posterior {o.cite('kuipers2017')}, and parameters given each graph.",
    ]


def _graph_prior(o: Options, prior: str) -> str:
    priors = {
        "uniform": "All graphs had the same prior probability",
        "edge": "Each arc was present with the prior probability "
        f"{o.scaled('edge_probability', 'that gives each variable about three neighbours')}, given that there is no cycle",
        "fair": "Parent sets of each size had the same prior weight in total",
        "order": "All orders of the variables had the same prior probability",
    }
    limit = o.get("max_parents")
    parents = f", with at most {limit} parents of a column" if limit is not None else ""
    return f"{priors[prior]}{parents}."


def _interventions(o: Options) -> str:
    if o.get("interventions") is None:
        return ""
    return f"Values that were set by an intervention carried no information about their own column {o.cite('cooper')}."


_NOISES = {
    "gaussian": "normal noise",
    "laplace": "Laplace noise",
    "student": "t noise, whose degrees of freedom were two plus a Gamma(2, 0.1) variable for each column",
    "mixture": "noise that is a mixture of six normal components with fixed means and widths and unknown weights",
}
_SLABS = {
    "spike_slab": "normal",
    "laplace": "Laplace",
    "horseshoe": "normal, with a half-Cauchy scale of its own for each arc",
}


_SEM_QUESTION = "which columns act on which, and how strongly?"


def _linear_sem(o: Options):
    variances = o.get("variances")
    directions = "Each column had a noise variance of its own"
    if variances == "equal":
        directions = f"The noise of all columns had the same variance, which tells directions {o.cite('peters2014')}"
    elif variances == "known":
        directions = f"The noise variances were known up to a factor, which tells directions {o.cite('loh2014')}"
    told = (
        f" Noise that is not normal tells directions {o.cite('shimizu2006')}."
        if o.get("noise") != "gaussian"
        else ""
    )
    return _SEM_QUESTION, _sem_sentences(o, directions, told)


def _lingam(o: Options):
    told = f" Noise that is not normal tells directions {o.cite('shimizu2006')}."
    return _SEM_QUESTION, _sem_sentences(o, "Each column had a noise variance of its own", told)


def _sem_noise(o: Options) -> str:
    """Name the noise, and how probable it is that it is exactly normal in place of a mixture."""
    from bayesstruct.sem.kernels.settings import known_share

    noise = o.get("noise")
    share = known_share(noise, o.get("variances") or "free", o.get("normal_probability"))
    if share is None:
        return f"{_NOISES[noise]} or, in a share of the columns that was learned (prior Beta(1, 1)), exactly normal"
    if not share:
        return _NOISES[noise]
    return f"{_NOISES[noise]} or, with prior probability {share:g} for each column, exactly normal"


def _sem_sentences(o: Options, variances: str, told: str) -> list[str]:
    size = float(o.get("equivalent_sample_size", 1.0))
    width = float(o.get("scale") or (size + 1.0) ** 0.5 / size)
    return [
        "Linear structural equations were learned: each column follows a linear regression on its parents in a directed acyclic graph, with "
        f"{_sem_noise(o)}. {variances}.{told}",
        f"The prior of the weight of an arc that is there was {_SLABS[o.get('prior')]}, with scale {width:.3g} in units of the noise of the child; "
        f"means and scales had the priors of the score BGe {o.cite('geiger')}, worth {size:g} row{'s' * (size != 1)}.",
        _graph_prior(o, o.get("graph_prior")),
        _constraints(o),
        _interventions(o),
        "Graphs and parameters were drawn together from their posterior.",
    ]


def _network_classifier(o: Options):
    kind, given = o.get("structure"), o.get("target")
    target = "the class" if given is None else f"{given!r}"
    score = o.get("score") or ("bdeu" if kind == "tan" else "fcll")
    bdeu = kind == "tan" and score == "bdeu"
    name, paper = _SCORES[score]
    scored = f"{name}{f' {o.cite(paper)}' if paper else ''}"
    joined = {
        "naive": "Features were independent given the class (naive Bayes).",
        "ghc2": "Each feature had at most two feature parents beside the class; the structure was found by greedy hill climbing and then "
        f"fixed, by {scored}.",
        "tan": "A tree joined the features (tree-augmented naive Bayes); "
        + (
            "all trees had the same prior probability, and their posterior was that of the marginal likelihood BDeu "
            f"{o.cite('heckerman1995')}."
            if bdeu
            else f"trees had weights in proportion to the exponential of {scored}, which are no posterior probabilities."
        ),
    }[kind]
    prior = (
        f"The tables of probabilities had Dirichlet priors with equivalent sample size {o.number('equivalent_sample_size', SAMPLE_SIZE)}."
        if bdeu
        else f"The tables of probabilities had Dirichlet priors of {o.number('pseudo_count', 0.5)} for each state."
    )
    drawn = "Trees and tables were independent draws; all trees are summed over exactly"
    return (
        f"which value of {target} does a row have, given its features, and how do these depend on each other?",
        [
            f"A Bayesian-network classifier was used {o.cite('friedman')}: the target, {target}, is a parent of each feature.",
            joined,
            prior,
            f"{drawn} {o.cite('meila')}." if kind == "tan" else "Tables were independent draws.",
        ],
    )


_SCORES = {
    "bdeu": ("the marginal likelihood BDeu", "heckerman1995"),
    "fcll": ("the factorized conditional log-likelihood", "carvalho"),
    "acll": ("the approximate conditional log-likelihood", "carvalho"),
    "log_likelihood": ("the log likelihood", ""),
    "mdl": (
        "the log likelihood less half the logarithm of the number of rows for each parameter",
        "",
    ),
}


def _constraints(o: Options) -> str:
    names = [n for n in ("required", "forbidden", "tiers") if o.given.get(n)]
    return f"Known constraints on the arcs were imposed ({', '.join(names)})." if names else ""


_MODELS: dict[str, Callable[[Options], tuple[str, list[str]]]] = {
    "gaussian_graphical": _gaussian_graphical,
    "locally_constant_gaussian_graphical": _locally_constant,
    "blockwise_gaussian_graphical": _blockwise,
    "node_selection_gaussian_graphical": _node_selection,
    "grouped_gaussian_graphical": _grouped,
    "gaussian_neighbourhoods": _gaussian_neighbourhoods,
    "ising_neighbourhoods": _ising_neighbourhoods,
    "ising": _ising,
    "pairwise_mrf": _pairwise_mrf,
    "bayesian_network": _bayesian_network,
    "linear_sem": _linear_sem,
    "lingam": _lingam,
    "network_classifier": _network_classifier,
    **TREE_MODELS,
    **LATENT_MODELS,
}
