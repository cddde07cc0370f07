"""Make the figures of the README: `uv run python docs/make_figures.py`."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

import bayesstruct as bs

IMAGES = Path(__file__).parent / "images"


def sachs_posterior():
    """Draw from the posterior of the graph of the bundled cells."""
    cells = np.log(bs.load_dataset("sachs"))
    return bs.sample(random_seed=1, progressbar=False, model=bs.models.gaussian_graphical(cells))


def draw(idata, path):
    """Draw the network, the evidence for each edge, and the strongest edges."""
    import matplotlib.pyplot as plt

    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(16, 5.6), layout="constrained", width_ratios=[1, 1, 0.9]
    )
    bs.plot_graph(idata, ax=left)
    left.set_title("What is connected, how strongly")
    bs.plot_evidence(idata, ax=middle)
    middle.set_title("Present, absent, or undecided")
    bs.plot_edges(idata, ax=right)
    right.set_title("The most probable edges")
    figure.savefig(path, dpi=75)


if __name__ == "__main__":
    mpl.use("Agg")
    IMAGES.mkdir(exist_ok=True)
    draw(sachs_posterior(), IMAGES / "sachs.png")
