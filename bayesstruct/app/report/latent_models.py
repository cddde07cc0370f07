"""What each model of hidden structure says of a table and which priors it has, in the sentences of a methods section."""

from collections.abc import Callable

from bayesstruct.app.report.options import Options

__all__ = ["LATENT_MODELS"]

_ROOT = "half-normal with the root mean square of the observed values as scale"


def _buffet(o: Options, what: str, of: str, default: str = "Gamma(1, 1)") -> str:
    alpha = o.scaled(
        "alpha",
        f"with the prior {default} for the expected number of {what} of {of}",
        "with {} " + f"expected {what} of {of}",
    )
    extra = [
        f"{name} {o.number(name)}"
        for name, plain in (("concentration", 1.0), ("discount", 0.0))
        if o.get(name, plain) != plain
    ]
    return f"an Indian buffet process {o.cite('griffiths')} {alpha}{' (' + ', '.join(extra) + ')' if extra else ''}"


def _latent_features(o: Options):
    return "which hidden binary features are behind the table, and how many?", [
        "A latent feature model was used: each row has any number of binary features, and its values are normal around the sum of the loadings of its "
        f"features (baseline {o.number('baseline')}).",
        f"The features had as prior {_buffet(o, 'features', 'a row')}.",
        f"The standard deviation of the noise {o.had('noise', _ROOT)}; loadings were normal with a standard deviation that "
        f"{o.had('loading_scale', _ROOT)}.",
    ]


def _factors(o: Options, scores: str, what: str):
    return f"which {what} do only some rows have, and how many are there?", [
        f"A sparse factor model was used {o.cite('knowles')}: each row has any number of {what} with {scores} scores, and its values are normal around "
        "the sum of scores times loadings. Columns were standardised.",
        f"Which rows have which {what} had as prior {_buffet(o, what, 'a row')}.",
        f"The standard deviation of the noise of each column {o.had('noise', 'half-normal(1)')}; loadings were normal with a standard deviation that "
        f"{o.had('loading_scale', 'half-normal(1)')}.",
    ]


def _hidden_causes(o: Options):
    return "which hidden causes make binary variables occur together?", [
        f"A noisy-or model of hidden causes was used {o.cite('wood')}: each variable has any number of binary causes, each of which brings it about "
        "with the same probability where it is active.",
        f"Which variables have which causes had as prior {_buffet(o, 'causes', 'a variable')}.",
        f"The probability that an active cause brings about a variable {o.had('strength', 'Beta(4, 2)')}, that of an occurrence without a cause "
        f"{o.had('leak', 'Beta(1, 9)')}, and that of an active cause {o.had('base_rate', 'Beta(1, 2)')}.",
    ]


def _link_prediction(o: Options):
    probit = o.get("link") == "probit"
    return "which links are missing, and which features of the objects explain them?", [
        f"A latent feature model of links was used {o.cite('miller')}: objects have any number of binary features, and the {o.get('link')} of the "
        "probability of a link is a bias plus a weight for each pair of features.",
        f"The features had as prior {_buffet(o, 'features', 'an object', 'Gamma(2, 2)')}.",
        f"Weights were normal with a standard deviation that {o.had('weight_scale', f'half-normal({1.2 if probit else 2})')}, and the bias "
        f"normal with standard deviation {o.number('bias_scale', 2.4 if probit else 4)}.",
    ]


def _factorization(o: Options):
    return "which hidden features of rows and columns explain the ratings?", [
        f"A binary matrix factorisation was used {o.cite('meeds')}: rows and columns have any number of binary features, and a rating is normal around a "
        "bias plus a weight for each pair of features.",
        f"The features had as priors {_buffet(o, 'features', 'a row', 'Gamma(2, 2)')}, and likewise for the columns.",
        f"The standard deviation of the noise {o.had('noise', 'half-normal with the standard deviation of the ratings as scale')}; weights were normal "
        f"with a standard deviation that {o.had('weight_scale', 'half-normal with twice the standard deviation of the ratings as scale')}.",
    ]


def _clustering(o: Options):
    return "which overlapping groups explain the similarities of the objects?", [
        f"Additive clustering was used {o.cite('navarro')}: objects are in any number of groups, and a similarity is normal around a bias plus the "
        "weights of all groups that two objects share.",
        f"The groups had as prior {_buffet(o, 'groups', 'an object', 'Gamma(2, 2)')}.",
        f"The standard deviation of the noise {o.had('noise', 'half-normal with the standard deviation of the similarities as scale')}; weights were "
        f"half-normal with a scale that {o.had('weight_scale', 'half-normal with twice that standard deviation as scale')}.",
    ]


def _complexes(o: Options):
    return "which overlapping groups make their members linked?", [
        f"A model of overlapping complexes was used {o.cite('chu')}: objects are in any number of complexes, and each complex that two objects share links "
        "them with a probability of its own, 1 - exp(-w).",
        f"The complexes had as prior {_buffet(o, 'complexes', 'an object', 'Gamma(2, 2)')}.",
        f"The weights w were half-normal with a scale that {o.had('weight_scale', 'half-normal(2)')}, and the bias was half-normal with scale "
        f"{o.number('leak_scale')}.",
    ]


def _aspects(o: Options):
    return "which hidden aspects of the options explain the choices between them?", [
        f"Elimination by aspects {o.cite('tversky', 'gorur')} was used: options have any number of binary aspects with weights, and of two options one "
        f"is chosen by the aspects that the other does not have, or at random with probability {o.number('lapse')}.",
        f"The aspects had as prior {_buffet(o, 'aspects', 'an option', 'Gamma(2, 2)')}.",
    ]


def _transitions(o: Options):
    return "which behaviours do the series switch among, and which do they share?", [
        f"A hidden Markov model with shared behaviours was used {o.cite('fox')}: each series switches among a set of behaviours of its own, in each of "
        "which the columns are normal. Columns were standardised over all series.",
        f"Which series have which behaviours had as prior {_buffet(o, 'behaviours', 'a series')}.",
        f"Transition probabilities had Dirichlet priors with concentration {o.number('transition_concentration')} and {o.number('stickiness')} more for "
        f"staying; means of behaviours were normal with standard deviation {o.number('mean_scale')} and variances inverse-gamma"
        f"({o.number('variance_shape')}, {o.number('variance_rate')}).",
    ]


def _mixture(o: Options):
    family = o.get("family")
    kinds = {"gaussian": "linear", "logistic": "logistic", "poisson": "Poisson"}
    return (
        "in which clusters of rows does the response depend on its predictors in different ways?",
        [
            f"A Dirichlet process mixture of {kinds[family]} regressions was used {o.cite('hannah')}: rows belong to clusters, each with normal predictors and "
            "coefficients of its own.",
            f"The partition had a Chinese restaurant process as prior, whose mass {o.had('alpha', 'Gamma(1, 1)')}.",
            f"Variances within clusters had inverse-gamma priors with shape 2 and a mean of {o.number('within')} times the variance in the table; the prior "
            f"of the means counted as {o.number('mean_strength')} rows, and coefficients had the prior standard deviation "
            f"{o.number('coefficient_scale', 0.5 if family == 'poisson' else 2)} on standardised columns.",
        ],
    )


_NORMAL_NODES = (
    "All nodes are jointly normal, and the correlation of two columns is the product of the correlations along the path between them. Columns were "
    "standardised; means and standard deviations were learned."
)


def _latent_tree(o: Options):
    most = o.given.get("max_hidden")
    limit = "" if most is None else f", with at most {most} hidden nodes"
    weight = float(o.given.get("hidden_weight") or 1.0)
    prior = "the same prior probability"
    if weight != 1.0:
        prior = f"prior probabilities in proportion to {o.number('hidden_weight', 1)} to the power of the number of hidden nodes"
    if o.get("score") == "bdeu":
        count = o.given.get("hidden_states")
        states = "as many states as each column, or two" if count is None else f"{count} states"
        nodes, gone = [f"All nodes have states, hidden ones {states}."], "Hidden states"
        own = (
            "Probabilities of the states of a node given its neighbour had Dirichlet priors, the same whatever node is the root, worth "
            f"{o.number('equivalent_sample_size', 4)} rows."
        )
    else:
        nodes, gone = [_NORMAL_NODES], "Hidden values and means"
        own = f"The correlation along an edge had a prior density in proportion to (1 - r^2)^(a - 1) with a = {o.number('correlation_shape', 1)}."
    return (
        "do the columns depend on each other because they share something that was not observed?",
        [
            f"The columns and any number of hidden nodes are joined by a tree, in which each hidden node has three neighbours or more{limit} {o.cite('choi')}.",
            *nodes,
            f"Trees had {prior}. {own}",
            f"{gone} were integrated out. Branches of the tree were cut off and joined again elsewhere, with or without a new hidden node, by reversible "
            f"jumps {o.cite('green')}.",
            "Hidden nodes have no names: results are the splits, the ways in which edges divide the columns.",
            "An edge between two columns says that they are neighbours in the tree: columns without one may depend on each other strongly, by way of hidden nodes.",
        ],
    )


LATENT_MODELS: dict[str, Callable[[Options], tuple[str, list[str]]]] = {
    "latent_tree": _latent_tree,
    "latent_features": _latent_features,
    "link_prediction": _link_prediction,
    "binary_matrix_factorization": _factorization,
    "additive_clustering": _clustering,
    "protein_complexes": _complexes,
    "hidden_causes": _hidden_causes,
    "sparse_factor_analysis": lambda o: _factors(o, "normal", "factors"),
    "infinite_ica": lambda o: _factors(o, "Laplace-distributed", "components"),
    "elimination_by_aspects": _aspects,
    "markov_transitions": _transitions,
    "dp_glm": _mixture,
}
