"""Bayesian-network classifiers: accuracies and log scores of structures and of their average, beside scikit-learn.

    uv run --with scikit-learn python benchmarks/network_classifier.py [--sizes]

Five-fold cross-validation, the same folds for all methods. Tables: corral and mofn-3-7-10, artificial ones of the article that
can be generated (corral: 128 rows, class (A0 and A1) or (B0 and B1), one feature that agrees with the class in 75 % of the rows, one
without meaning; mofn: at least 3 of 7 of 10 features); iris, wine and breast cancer (of scikit-learn); `tan`, simulated from
a random tree, 12 features of 3 states, 3 classes, 400 rows. Numbers are cut by minimum description length (Fayyad and Irani 1993) within
the training rows of each fold. Parameters of single structures are frequencies with 1/2 added; `average` is the exact
average over all trees and parameters (BDeu). Last come the seconds for all folds.

With ``--sizes``: how many rows the prior of BDeu should be worth. Six tables and partitions of rows; means, and the difference from one
row with its standard error over these.
"""

import argparse
import os
import time
import warnings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import bayesstruct as bs

FOLDS = 5


def corral(rng):
    bits = rng.integers(0, 2, (128, 5))
    y = (bits[:, 0] & bits[:, 1]) | (bits[:, 2] & bits[:, 3])
    table = pd.DataFrame(bits, columns=["A0", "A1", "B0", "B1", "irrelevant"])
    table["correlated"] = np.where(rng.random(128) < 0.75, y, 1 - y)
    return table.assign(y=y)


def mofn(rng):
    bits = rng.integers(0, 2, (300, 10))
    table = pd.DataFrame(bits, columns=[f"b{j}" for j in range(10)])
    return table.assign(y=(bits[:, :7].sum(axis=1) >= 3) * 1)


def tan(rng, n=400, d=12, states=3, classes=3):
    y = rng.integers(0, classes, n)
    x = np.zeros((n, d), int)
    for j in range(d):
        parent = x[:, rng.integers(j)] if j else np.zeros(n, int)
        p = rng.dirichlet(np.full(states, 0.7), size=(classes, states))[y, parent]
        x[:, j] = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1).clip(0, states - 1)
    return pd.DataFrame(x, columns=[f"x{j}" for j in range(d)]).assign(y=y)


def shipped(name):
    from sklearn import datasets

    found = getattr(datasets, f"load_{name}")(as_frame=True)
    return found.data.assign(y=found.target)


def ours(structure, score):
    def fit(train, test):
        return bs.solvers.network_classifier(
            train, "y", structure=structure, score=score
        ).probabilities(test)

    return fit


def average(size):
    def fit(train, test):
        return bs.exact.averaged_tan(train, "y", equivalent_sample_size=size).probabilities(test)

    return fit


def codes(train, test):
    """Codes of features of both tables, with the states of the first."""
    both = []
    for name in train.columns.drop("y"):
        known = sorted(train[name].unique().tolist())
        both.append([pd.Categorical(t[name], known).codes for t in (train, test)])
    return [np.column_stack(own) for own in zip(*both, strict=True)]


def categorical_nb(train, test):
    from sklearn.naive_bayes import CategoricalNB

    a, b = codes(train, test)
    found = CategoricalNB(alpha=0.5, min_categories=a.max(axis=0) + 1).fit(a, train["y"])
    return pd.DataFrame(found.predict_proba(b), test.index, found.classes_)


def logistic(train, test):
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(drop="first")
    a, b = codes(train, test)
    found = LogisticRegression(C=1.0, max_iter=2000).fit(encoder.fit_transform(a), train["y"])
    return pd.DataFrame(found.predict_proba(encoder.transform(b)), test.index, found.classes_)


METHODS = {
    "naive": ours("naive", "log_likelihood"),
    "CategoricalNB": categorical_nb,
    "TAN LL": ours("tan", "log_likelihood"),
    "TAN MDL": ours("tan", "mdl"),
    "TAN BDeu": ours("tan", "bdeu"),
    "TAN fCLL": ours("tan", "fcll"),
    "TAN aCLL": ours("tan", "acll"),
    "GHC2 LL": ours("ghc2", "log_likelihood"),
    "GHC2 BDeu": ours("ghc2", "bdeu"),
    "GHC2 fCLL": ours("ghc2", "fcll"),
    "average, 1 row": average(1.0),
    "average, 3 rows": average(3.0),
    "average, 10 rows": average(10.0),
    "average, 30 rows": average(30.0),
    "logistic": logistic,
}


def folds(table, rng):
    """Pairs of training and test rows, all states in training."""
    place = rng.permutation(np.arange(len(table)) % FOLDS)
    for k in range(FOLDS):
        train, test = table[place != k], table[place == k]
        cut = bs.solvers.mdl_discretization(train, "y") if _has_numbers(table) else None
        yield (train, test) if cut is None else (cut.apply(train), cut.apply(test))


def _has_numbers(table):
    return any(kind.kind == "f" for kind in table.dtypes)


def all_tables(rng):
    """The six tables, by name."""
    tables = {"corral": corral(rng), "mofn": mofn(rng), "tan": tan(rng)}
    return tables | {name: shipped(name) for name in ("iris", "wine", "breast_cancer")}


def crossed(fit, parts):
    """Whether each class is the most probable one, and the log of its probability."""
    hits, logs = [], []
    for train, test in parts:
        p = fit(train, test)
        hits += (p.idxmax(axis=1) == test["y"]).tolist()
        at = p.columns.get_indexer(test["y"])
        logs += np.log(p.to_numpy()[np.arange(len(test)), at]).tolist()
    return np.mean(hits), np.mean(logs)


def sizes():
    """Compare prior sizes by the average over all trees."""
    warnings.simplefilter("ignore")
    rows = []
    for seed in range(2, 8):
        rng = np.random.default_rng(seed)
        for name, table in all_tables(rng).items():
            parts = list(folds(table, rng))
            for size in (1.0, 3.0, 10.0, 30.0):
                rows.append((seed, name, size, *crossed(average(size), parts)))
    found = pd.DataFrame(rows, columns=["seed", "table", "size", "accuracy", "log_score"])
    for measure in ("accuracy", "log_score"):
        mean = found.pivot_table(index="table", columns="size", values=measure)
        over = found.pivot_table(index="seed", columns="size", values=measure)
        gain = over.sub(over[1.0], axis=0)
        mean.loc["mean"] = over.mean()
        mean.loc["gain"], mean.loc["error"] = gain.mean(), gain.std() / np.sqrt(len(gain))
        print(f"{measure}\n{mean.round(4).to_string()}\n")


def main():
    """Print accuracies and log scores."""
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(1)
    tables = all_tables(rng)
    right = {method: {} for method in METHODS}
    scores, seconds = {m: {} for m in METHODS}, dict.fromkeys(METHODS, 0.0)
    for name, table in tables.items():
        parts = list(folds(table, rng))
        for method, fit in METHODS.items():
            fit(*parts[0])  # compiles
            start = time.process_time()
            right[method][name], scores[method][name] = crossed(fit, parts)
            seconds[method] += time.process_time() - start
    accuracy = pd.DataFrame(right).T.assign(mean=lambda t: t.mean(axis=1))
    print("accuracy\n" + accuracy.round(3).to_string())
    log_score = pd.DataFrame(scores).T.assign(mean=lambda t: t.mean(axis=1), seconds=seconds)
    print("\nmean log probability of the class\n" + log_score.round(3).to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", action="store_true")
    sizes() if parser.parse_args().sizes else main()
