"""The paragraph for the methods section of a paper, with the numbers of a run and its references."""

from typing import TYPE_CHECKING

import numpy as np

from bayesstruct.app.intake import SQUARES, apart
from bayesstruct.app.report.options import Described, model_options
from bayesstruct.app.report.papers import cited, reference
from bayesstruct.app.report.text import Block, Bullets, Paragraph, plain
from bayesstruct.data.errors import count
from bayesstruct.graphs.evidence import EXCLUDED, FIXED, INCLUDED, STRONG, UNDECIDED
from bayesstruct.models.catalogue import MODELS

if TYPE_CHECKING:
    from bayesstruct.app.report.fit import Fit
    from bayesstruct.app.report.parts import Finding, Result

__all__ = ["SACHS", "data_sentence", "methods", "missing_values"]

#: Beginning of the source of the bundled table.
SACHS = "sachs ("


def methods(
    result: "Result", described: Described, findings: "list[Finding]", fit: "Fit"
) -> list[Block]:
    """Write the paragraph and its references.

    Parameters
    ----------
    result : Result
    described : Described
        The model in words.
    findings : list of Finding
    fit : Fit

    Returns
    -------
    list of Block
    """
    compared = np.isfinite(fit.share)
    sentences = [
        f"The data were {data_sentence(result)}.",
        *described.sentences,
        _sampling(result),
        _convergence(result),
        *_rule(findings),
        *(
            [
                f"The fit was judged by posterior predictive checks {cited('gelman')}: {' '.join(fit.sentences)}"
            ]
            if compared
            else []
        ),
    ]
    keys = [*described.papers, "pymc", "vehtari", *(["gelman"] if compared else [])]
    if result.job.options["source"].startswith(SACHS):
        keys.append("sachs")
    return [
        Paragraph(plain(" ".join(s[0].upper() + s[1:] for s in sentences if s))),
        Bullets([plain(reference(key)) for key in dict.fromkeys(keys)]),
    ]


def data_sentence(result: "Result") -> str:
    """Say how large the table is, and what is missing in it."""
    frame, model = result.job.frame, result.job.options["model"]
    n, p = frame.shape
    if result.job.options.get("cov"):
        rows = model_options(result.job.options).get("n")
        return f"the covariance (or correlation) matrix of {rows} observations of {count(p, 'variable')}"
    if MODELS[model].table in SQUARES:
        size = f"a matrix of {count(n, 'object')}"
    elif model == "binary_matrix_factorization":
        size = f"a table of {count(n, 'row')} and {count(p, 'column')}"
    elif model == "markov_transitions":
        series = result.idata["posterior"].sizes["observation"]
        variables = result.idata["posterior"].sizes["node"]
        size = f"{series} series with {count(n, 'row')} in total, of {count(variables, 'variable')}"
    elif "groups" in _groups(result):
        size = f"{count(n, 'observation')} of {count(_variables(result), 'variable')} in {_groups(result)}"
    else:
        size = f"{count(n, 'observation')} of {count(_variables(result), 'variable')}"
    logs = ", logarithms taken" if result.job.options.get("log") else ""
    return f"{size}{logs}, {missing_values(result)}"


def _variables(result: "Result") -> int:
    others = {own for own in apart(model_options(result.job.options)) if isinstance(own, str)}
    return sum(name not in others for name in result.job.frame.columns)


def _groups(result: "Result") -> str:
    posterior = result.idata["posterior"]
    if "difference" not in posterior or "group" not in posterior.sizes:
        return ""
    from bayesstruct.graphs.records import RowGroups

    if not RowGroups.is_in(result.idata):
        return f"{posterior.sizes['group']} groups"
    rows = np.bincount(RowGroups.read(result.idata).index, minlength=posterior.sizes["group"])
    named = ", ".join(f"{g}: {n}" for g, n in zip(posterior["group"].values, rows, strict=True))
    return f"{posterior.sizes['group']} groups ({named})"


def missing_values(result: "Result") -> str:
    """Say how many values are missing."""
    empty = result.job.frame.isna().to_numpy()
    if MODELS[result.job.options["model"]].table in SQUARES:  # nothing is paired with itself
        empty = empty[~np.eye(len(empty), dtype=bool)]
    missing = int(empty.sum())
    if not missing:
        return "without missing values"
    share = f"with {count(missing, 'missing value')} ({missing / empty.size:.1%})"
    return f"{share}, {_treated(result)}"


def _treated(result: "Result") -> str:
    model = result.job.options["model"]
    if model in (
        "link_prediction",
        "protein_complexes",
        "additive_clustering",
        "binary_matrix_factorization",
    ):
        return "which were not observed and are predicted"
    if model == "elimination_by_aspects":
        return "which were not compared"
    if model == "network_classifier":
        return "whose rows were left out"
    if model in ("sparse_factor_analysis", "infinite_ica", "hidden_causes", "markov_transitions"):
        return "summed out in the likelihood"
    if model_options(result.job.options).get("prior") == "pseudo_likelihood":
        return "imputed ten times before the graphs were drawn"
    return "imputed inside the model"


#: Packages whose names are written in another way than in a list of packages.
_WRITTEN = {"python": "Python", "pytensor": "PyTensor", "numba": "Numba", "numpy": "NumPy"}


def _sampling(result: "Result") -> str:
    options = result.job.options
    versions = options["versions"]
    others = ", ".join(
        f"{_WRITTEN.get(name, name)} {number}"
        for name, number in versions.items()
        if name not in ("bayesstruct", "pymc")
    )
    return (
        f"The posterior was sampled with bayesstruct {versions['bayesstruct']} and PyMC {versions['pymc']} {cited('pymc')} ({others}): "
        f"{count(result.sizes['chain'], 'chain')} of {result.sizes['draw']:,} draws each, after {count(options['tune'], 'warm-up iteration')} "
        f"(seed {options['seed']})."
    )


def _convergence(result: "Result") -> str:
    rows = result.check.rows
    r_hat = np.array([row.r_hat for row in rows], float)
    bulk = np.array([row.ess_bulk for row in rows], float)
    r_hat, bulk = r_hat[~np.isnan(r_hat)], bulk[np.isfinite(bulk)]
    worst = f"the largest R-hat was {r_hat.max():.3f}" if len(r_hat) else "R-hat is not defined"
    least = (
        f"the smallest effective sample size was {bulk.min():,.0f}"
        if len(bulk)
        else "effective sample sizes are not defined"
    )
    bad = sum(not row.ok for row in rows)
    verdict = (
        f"all {len(rows)} quantities that were monitored had converged"
        if not bad
        else f"{bad} of the {len(rows)} quantities that were monitored had not converged, or had too few draws to tell"
    )
    return f"Convergence was judged by rank-normalised R-hat and effective sample sizes {cited('vehtari')}: {verdict}; {worst}, and {least}."


def _rule(findings: "list[Finding]") -> list[str]:
    """Say what counted as found, and how much was."""
    counted = [f for f in findings if f.part.noun]
    if not counted:
        return [line for f in findings[:1] for line in f.part.headlines(f.table)]
    return [
        f"A Bayes factor (posterior over prior odds) of at least {STRONG:g} counted as evidence for what was tested, and one of at most 1/{STRONG:g} as evidence against it.",
        *map(_counted, counted),
    ]


def _counted(finding: "Finding") -> str:
    """Say how many rows of a table have such evidence, in a sentence."""
    kinds = finding.table["verdict" if "verdict" in finding.table else "evidence"]
    number = [int(kinds.isin(names).sum()) for names in _KINDS]
    verbs = _DIFFERENT if "verdict" in finding.table else _PRESENT.get(finding.part.noun, _FOUND)
    parts = [
        f"{n or 'none'} {verb.replace('were', 'was', 1) if n == 1 else verb}"
        for n, verb in zip(number, verbs, strict=True)
        if n or verb != verbs[3]
    ]
    counted = (
        f"Of {len(kinds)} possible {finding.part.noun}, {', '.join(parts[:-1])} and {parts[-1]}."
    )
    if "direction" not in finding.table:
        return counted
    decided = finding.table["direction"][kinds == INCLUDED] == "decided"
    if not len(decided):
        return counted
    return f"{counted} For {int(decided.sum()) or 'none'} of those found, one direction was at least ten times as probable as the other."


_KINDS = ((INCLUDED, "differs"), (EXCLUDED, "is equal"), (UNDECIDED,), (FIXED,))
_FOUND = ("were found", "were excluded", "were left undecided", "had been fixed beforehand")
_PRESENT = {"variables": ("were found to take part", *_FOUND[1:])}
_DIFFERENT = ("were found to differ between groups", "to be equal", "were left undecided", "")
