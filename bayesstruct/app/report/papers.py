"""Papers that reports cite, by key: the one list of references of the command line."""

__all__ = ["PAPERS", "cited", "reference"]

#: How a paper is cited in a sentence, and its reference.
PAPERS: dict[str, tuple[str, str]] = {
    "pymc": (
        "Abril-Pla et al. 2023",
        "Abril-Pla, O., Andreani, V., Carroll, C., Dong, L., Fonnesbeck, C. J., Kochurov, M., Kumar, R., Lao, J., Luhmann, C. C., Martin, O. A., "
        "Osthege, M., Vieira, R., Wiecki, T. and Zinkov, R. (2023). PyMC: a modern, and comprehensive probabilistic programming framework in Python. "
        "PeerJ Computer Science 9, e1516.",
    ),
    "vehtari": (
        "Vehtari et al. 2021",
        "Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021). Rank-normalization, folding, and localization: an improved "
        "R-hat for assessing convergence of MCMC. Bayesian Analysis 16(2), 667-718.",
    ),
    "gelman": (
        "Gelman, Meng and Stern 1996",
        "Gelman, A., Meng, X.-L. and Stern, H. (1996). Posterior predictive assessment of model fitness via realized discrepancies. Statistica Sinica 6, 733-760.",
    ),
    "dawid": (
        "Dawid and Lauritzen 1993",
        "Dawid, A. P. and Lauritzen, S. L. (1993). Hyper Markov laws in the statistical analysis of decomposable graphical models. Annals of Statistics "
        "21(3), 1272-1317.",
    ),
    "shimizu2006": (
        "Shimizu et al. 2006",
        "Shimizu, S., Hoyer, P. O., Hyvärinen, A. and Kerminen, A. (2006). A linear non-Gaussian acyclic model for causal discovery. Journal of Machine "
        "Learning Research 7, 2003-2030.",
    ),
    "peters2014": (
        "Peters and Bühlmann 2014",
        "Peters, J. and Bühlmann, P. (2014). Identifiability of Gaussian structural equation models with equal error variances. Biometrika 101(1), 219-228.",
    ),
    "loh2014": (
        "Loh and Bühlmann 2014",
        "Loh, P.-L. and Bühlmann, P. (2014). High-dimensional learning of linear causal networks via inverse covariance estimation. Journal of Machine "
        "Learning Research 15, 3065-3105.",
    ),
    "wang2015": (
        "Wang 2015",
        "Wang, H. (2015). Scaling it up: stochastic search structure learning in graphical models. Bayesian Analysis 10(2), 351-377.",
    ),
    "wang2012": (
        "Wang 2012",
        "Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation. Bayesian Analysis 7(4), 867-886.",
    ),
    "li": (
        "Li, Craig and Bhadra 2019",
        "Li, Y., Craig, B. A. and Bhadra, A. (2019). The graphical horseshoe estimator for inverse covariance matrices. Journal of Computational and "
        "Graphical Statistics 28(3), 747-757.",
    ),
    "boom": (
        "van den Boom, Beskos and De Iorio 2022",
        "van den Boom, W., Beskos, A. and De Iorio, M. (2022). The G-Wishart weighted proposal algorithm: efficient posterior computation for Gaussian "
        "graphical models. Journal of Computational and Graphical Statistics 31, 1215-1224.",
    ),
    "leppa": (
        "Leppä-aho et al. 2017",
        "Leppä-aho, J., Pensar, J., Roos, T. and Corander, J. (2017). Learning Gaussian graphical models with fractional marginal pseudo-likelihood. "
        "International Journal of Approximate Reasoning 83, 21-42.",
    ),
    "finegold": (
        "Finegold and Drton 2011",
        "Finegold, M. and Drton, M. (2011). Robust graphical modeling of gene networks using classical and alternative t-distributions. Annals of "
        "Applied Statistics 5(2A), 1057-1080.",
    ),
    "imai": (
        "Imai and van Dyk 2005",
        "Imai, K. and van Dyk, D. A. (2005). A Bayesian analysis of the multinomial probit model using marginal data augmentation. Journal of "
        "Econometrics 124(2), 311-334.",
    ),
    "hoff": (
        "Hoff 2007",
        "Hoff, P. D. (2007). Extending the rank likelihood for semiparametric copula estimation. Annals of Applied Statistics 1(1), 265-283.",
    ),
    "honorio2009": (
        "Honorio et al. 2009",
        "Honorio, J., Ortiz, L., Samaras, D., Paragios, N. and Goldstein, R. (2009). Sparse and locally constant Gaussian graphical models. NIPS 22.",
    ),
    "honorio2012": (
        "Honorio et al. 2012",
        "Honorio, J., Samaras, D., Rish, I. and Cecchi, G. (2012). Variable selection for Gaussian graphical models. AISTATS, 538-546.",
    ),
    "schmidt": (
        "Schmidt 2010",
        "Schmidt, M. (2010). Graphical model structure learning with l1-regularization. PhD thesis, University of British Columbia.",
    ),
    "marsman_groups": (
        "Marsman et al. 2025",
        "Marsman, M., Waldorp, L. J., Sekulovski, N. and Haslbeck, J. M. B. (2025). Bayes factor tests for group differences in ordinal and binary "
        "graphical models. Psychometrika 90(5), 1809-1842.",
    ),
    "peterson": (
        "Peterson, Stingo and Vannucci 2015",
        "Peterson, C., Stingo, F. C. and Vannucci, M. (2015). Bayesian inference of multiple Gaussian graphical models. Journal of the American "
        "Statistical Association 110, 159-174.",
    ),
    "meinshausen": (
        "Meinshausen and Bühlmann 2006",
        "Meinshausen, N. and Bühlmann, P. (2006). High-dimensional graphs and variable selection with the lasso. Annals of Statistics 34(3), 1436-1462.",
    ),
    "heckerman2000": (
        "Heckerman et al. 2000",
        "Heckerman, D., Chickering, D. M., Meek, C., Rounthwaite, R. and Kadie, C. (2000). Dependency networks for inference, collaborative filtering, "
        "and data visualization. JMLR 1, 49-75.",
    ),
    "ravikumar": (
        "Ravikumar, Wainwright and Lafferty 2010",
        "Ravikumar, P., Wainwright, M. J. and Lafferty, J. D. (2010). High-dimensional Ising model selection using l1-regularized logistic regression. "
        "Annals of Statistics 38(3), 1287-1319.",
    ),
    "besag": (
        "Besag 1975",
        "Besag, J. (1975). Statistical analysis of non-lattice data. The Statistician 24, 179-195.",
    ),
    "marsman2022": (
        "Marsman et al. 2022",
        "Marsman, M., Huth, K., Waldorp, L. J. and Ntzoufras, I. (2022). Objective Bayesian edge screening and structure selection for Ising networks. "
        "Psychometrika 87, 47-82.",
    ),
    "marsman_ordinal": (
        "Marsman, van den Bergh and Haslbeck 2025",
        "Marsman, M., van den Bergh, D. and Haslbeck, J. M. B. (2025). Bayesian analysis of the ordinal Markov random field. Psychometrika 90, 146-182.",
    ),
    "geiger": (
        "Geiger and Heckerman 2002",
        "Geiger, D. and Heckerman, D. (2002). Parameter priors for directed acyclic graphical models and the characterization of several probability "
        "distributions. Annals of Statistics 30, 1412-1440.",
    ),
    "kuipers2014": (
        "Kuipers, Moffa and Heckerman 2014",
        "Kuipers, J., Moffa, G. and Heckerman, D. (2014). Addendum on the scoring of Gaussian directed acyclic graphical models. Annals of Statistics 42, "
        "1689-1691.",
    ),
    "heckerman1995": (
        "Heckerman, Geiger and Chickering 1995",
        "Heckerman, D., Geiger, D. and Chickering, D. M. (1995). Learning Bayesian networks: the combination of knowledge and statistical data. Machine "
        "Learning 20, 197-243.",
    ),
    "friedman": (
        "Friedman, Geiger and Goldszmidt 1997",
        "Friedman, N., Geiger, D. and Goldszmidt, M. (1997). Bayesian network classifiers. Machine Learning 29, 131-163.",
    ),
    "choi": (
        "Choi et al. 2011",
        "Choi, M. J., Tan, V. Y. F., Anandkumar, A. and Willsky, A. S. (2011). Learning latent tree graphical models. Journal of Machine Learning "
        "Research 12, 1771-1812.",
    ),
    "green": (
        "Green 1995",
        "Green, P. J. (1995). Reversible jump Markov chain Monte Carlo computation and Bayesian model determination. Biometrika 82, 711-732.",
    ),
    "meila": (
        "Meilă and Jaakkola 2006",
        "Meilă, M. and Jaakkola, T. (2006). Tractable Bayesian learning of tree belief networks. Statistics and Computing 16, 77-92.",
    ),
    "carvalho": (
        "Carvalho et al. 2011",
        "Carvalho, A. M., Roos, T., Oliveira, A. L. and Myllymäki, P. (2011). Discriminative learning of Bayesian networks via factorized conditional "
        "log-likelihood. Journal of Machine Learning Research 12, 2181-2210.",
    ),
    "kuipers2017": (
        "Kuipers and Moffa 2017",
        "Kuipers, J. and Moffa, G. (2017). Partition MCMC for inference on acyclic digraphs. JASA 112, 282-299.",
    ),
    "cooper": (
        "Cooper and Yoo 1999",
        "Cooper, G. F. and Yoo, C. (1999). Causal discovery from a mixture of experimental and observational data. UAI 15, 116-125.",
    ),
    "griffiths": (
        "Griffiths and Ghahramani 2011",
        "Griffiths, T. L. and Ghahramani, Z. (2011). The Indian buffet process: an introduction and review. JMLR 12, 1185-1224.",
    ),
    "miller": (
        "Miller, Griffiths and Jordan 2009",
        "Miller, K., Griffiths, T. and Jordan, M. (2009). Nonparametric latent feature models for link prediction. NIPS 22.",
    ),
    "meeds": (
        "Meeds et al. 2007",
        "Meeds, E., Ghahramani, Z., Neal, R. and Roweis, S. (2007). Modeling dyadic data with binary latent factors. NIPS 19.",
    ),
    "navarro": (
        "Navarro and Griffiths 2007",
        "Navarro, D. J. and Griffiths, T. L. (2007). A nonparametric Bayesian method for inferring features from similarity judgments. NIPS 19.",
    ),
    "chu": (
        "Chu et al. 2006",
        "Chu, W., Ghahramani, Z., Krause, R. and Wild, D. L. (2006). Identifying protein complexes in high-throughput protein interaction screens using "
        "an infinite latent feature model. Pacific Symposium on Biocomputing 11.",
    ),
    "wood": (
        "Wood, Griffiths and Ghahramani 2006",
        "Wood, F., Griffiths, T. L. and Ghahramani, Z. (2006). A non-parametric Bayesian method for inferring hidden causes. UAI 22, 536-543.",
    ),
    "knowles": (
        "Knowles and Ghahramani 2007",
        "Knowles, D. and Ghahramani, Z. (2007). Infinite sparse factor analysis and infinite independent components analysis. ICA 2007, 381-388.",
    ),
    "tversky": (
        "Tversky 1972",
        "Tversky, A. (1972). Elimination by aspects: a theory of choice. Psychological Review 79, 281-299.",
    ),
    "gorur": (
        "Görür, Jäkel and Rasmussen 2006",
        "Görür, D., Jäkel, F. and Rasmussen, C. E. (2006). A choice model with infinitely many latent features. ICML 23, 361-368.",
    ),
    "fox": (
        "Fox et al. 2009",
        "Fox, E. B., Sudderth, E. B., Jordan, M. I. and Willsky, A. S. (2009). Sharing features among dynamical systems with beta processes. NIPS 22, "
        "549-557.",
    ),
    "hannah": (
        "Hannah, Blei and Powell 2011",
        "Hannah, L. A., Blei, D. M. and Powell, W. B. (2011). Dirichlet process mixtures of generalized linear models. JMLR 12, 1923-1953.",
    ),
    "sachs": (
        "Sachs et al. 2005",
        "Sachs, K., Perez, O., Pe'er, D., Lauffenburger, D. A. and Nolan, G. P. (2005). Causal protein-signaling networks derived from multiparameter "
        "single-cell data. Science 308, 523-529.",
    ),
}


def cited(*keys: str) -> str:
    """Write citations as in a sentence.

    Examples
    --------
    >>> cited("wang2015", "besag")
    '(Wang 2015; Besag 1975)'
    """
    return "(" + "; ".join(PAPERS[key][0] for key in keys) + ")"


def reference(key: str) -> str:
    """Return the reference of a paper."""
    return PAPERS[key][1]
