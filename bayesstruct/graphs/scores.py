"""Scores of probabilities against 0/1 labels."""

import numpy as np


def auc(label: np.ndarray, score: np.ndarray) -> float:
    """Area under the ROC curve; ties count half. NaN when all labels are equal."""
    from scipy.stats import rankdata

    positive, negative = label.sum(), (~label).sum()
    if not positive or not negative:
        return float("nan")
    ranks = rankdata(score)  # mean ranks: Mann-Whitney with ties
    return float((ranks[label].sum() - positive * (positive + 1) / 2) / (positive * negative))


def average_precision(label: np.ndarray, score: np.ndarray) -> float:
    """Sum over distinct scores of precision times gain in recall. NaN without positives."""
    if not label.any():
        return float("nan")
    order = np.argsort(-score, kind="stable")
    found = np.cumsum(label[order])
    last_of_tie = np.append(np.diff(score[order]) != 0, True)
    found, taken = found[last_of_tie], np.flatnonzero(last_of_tie) + 1
    return float((found / taken * np.diff(found, prepend=0)).sum() / label.sum())


def brier(label: np.ndarray, probability: np.ndarray) -> float:
    """Mean squared distance between probability and label."""
    return float(np.square(probability - label).mean())


def confusion(label: np.ndarray, chosen: np.ndarray) -> tuple[int, int, int, int]:
    """Count true positives, false positives, false negatives, true negatives."""
    return (
        int((label & chosen).sum()),
        int((~label & chosen).sum()),
        int((label & ~chosen).sum()),
        int((~label & ~chosen).sum()),
    )


def ratio(part: float, whole: float) -> float:
    """Ratio, 0 if the denominator is 0 (as scikit-learn)."""
    return part / whole if whole else 0.0


def matthews(tp: int, fp: int, fn: int, tn: int) -> float:
    """Matthews correlation; 0 when a margin is empty."""
    margins = float(tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return ratio(tp * tn - fp * fn, margins**0.5)


def mean(values: np.ndarray) -> float:
    """Mean, NaN of nothing."""
    return float(values.mean()) if len(values) else float("nan")
