"""Names of the files that reports consist of; without the report itself, which loads heavy packages."""

__all__ = ["RESULTS"]

#: All files that the report on any model may have; they are deleted with an earlier run.
RESULTS = (
    "posterior.nc",
    "edges.csv",
    "splits.csv",
    "connections.csv",
    "arcs.csv",
    "effects.csv",
    "predictability.csv",
    "centrality.csv",
    "differences.csv",
    "nodes.csv",
    "blocks.csv",
    "links.csv",
    "behaviours.csv",
    "behaviour_values.csv",
    "clusters.csv",
    "coefficients.csv",
    "co_clustering.csv",
    "features.csv",
    "loadings.csv",
    "membership.csv",
    "graph.graphml",
    "graph.png",
    "directions.png",
    "evidence.png",
    "centrality.png",
    "differences.png",
    "figure.png",
    "features.png",
    "feature_count.png",
    "fit.png",
    "report.md",
    "report.html",
)
