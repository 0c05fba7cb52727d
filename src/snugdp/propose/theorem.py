"""The theorems that plans rest on, by ids that never change: files, keys and reports name a theorem by its id.

The path of the proof and the heading in it are for readers alone, and may move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Theorem:
    """A theorem: its ``id``, a short ``title``, the file with its ``proof`` and the ``anchor`` of its heading there."""

    id: str
    title: str
    proof: str
    anchor: str

    @property
    def link(self) -> str:
        """Where to read it."""
        return f"{self.proof}#{self.anchor}"


_TABLE = (
    ("release/1", "A private mechanism", "release/spine", "theorem-a0"),
    ("test-and-release/1", "Propose, test, release", "release/spine", "theorem-a1"),
    ("persons/1", "Persons with several rows", "release/persons", "theorem-1"),
    ("person-totals/1", "Totals of persons", "mechanisms/persons/persons", "theorem-3"),
    ("person-ranks/1", "Ranks of persons", "mechanisms/persons/persons", "theorem-4"),
    ("person-keys/1", "Keys of persons", "mechanisms/persons/persons", "theorem-5"),
    ("persons/2", "Persons whose rows have weights", "release/persons", "theorem-2"),
    ("person-weight/1", "A weight of persons found in private", "mechanisms/persons/weight_choice", "theorem-2"),
    ("recipe/1", "Your own mechanism", "recipe", "theorem-1"),
    ("median/1", "Median", "mechanisms/order_statistics/median", "theorem-1"),
    ("quantile/1", "Quantile", "mechanisms/order_statistics/quantile", "theorem-1"),
    ("rank-draw/1", "Rank draw", "mechanisms/order_statistics/rank_draw", "theorem-1"),
    ("several-quantiles/1", "Several quantiles", "mechanisms/order_statistics/several", "theorem-1"),
    ("bounded-range/1", "Draws of bounded range", "accounting/bounded_range", "theorem-1"),
    ("trimmed-mean/1", "Trimmed mean", "mechanisms/order_statistics/trimmed_mean", "theorem-1"),
    ("discrete-laplace/1", "Discrete Laplace mechanism", "mechanisms/order_statistics/stable", "lemma-1"),
    ("mode/1", "Mode", "mechanisms/votes/mode", "theorem-1"),
    ("vote/1", "Noisy maximum", "mechanisms/votes/vote", "theorem-5"),
    ("vote-tested/1", "Tested vote", "mechanisms/votes/vote", "theorem-4"),
    ("counts/1", "Counts and sums", "mechanisms/statistics/joint", "theorem-2"),
    ("histogram/1", "Histogram", "mechanisms/statistics/joint", "theorem-3"),
    ("moments/1", "Moments", "mechanisms/statistics/moments", "theorem-1"),
    ("clipped-mean/1", "Clipped statistics", "mechanisms/statistics/clipping", "theorem-2"),
    ("quantile-interval/1", "Quantile interval", "mechanisms/order_statistics/interval", "theorem-1"),
    ("quantile-table/1", "Quantile table", "mechanisms/statistics/quantile_table", "theorem-1"),
    ("describe/1", "All columns of a table", "mechanisms/statistics/described", "theorem-2"),
    ("describe-found/1", "Columns found, then described", "mechanisms/statistics/described", "theorem-3"),
    ("bounds/1", "Private bounds", "mechanisms/bounds/exponential_grid", "theorem-1"),
    ("found-bounds/1", "Bounds found in private", "mechanisms/bounds/preparation", "theorem-2"),
    ("preparation/1", "Preparation of columns", "mechanisms/bounds/preparation", "theorem-3"),
    ("looks/1", "Looks at columns", "mechanisms/bounds/looks/looks", "theorem-2"),
    ("column-looks/1", "Bounds found, then a query", "mechanisms/bounds/looks/columns", "theorem-2"),
    ("keys/1", "Keys that are not listed", "mechanisms/keys/optimal", "theorem-2"),
    ("keys-gaussian/1", "Several keys a row", "mechanisms/keys/threshold", "theorem-2"),
    ("group-by/1", "Statistics of groups", "mechanisms/keys/grouped", "theorem-2"),
    ("linear-adaptive/1", "Linear regression (adaptive)", "mechanisms/objective/adaptive", "theorem-1"),
    ("linear-inference/1", "Linear regression (with intervals)", "mechanisms/inference/whitened", "theorem-1"),
    ("linear-whitened/1", "Linear regression (whitened rows)", "mechanisms/inference/whitened", "theorem-3"),
    ("linear-mean/1", "Linear regression (conditional mean)", "mechanisms/inference/mean", "theorem-1"),
    ("glm-inference/1", "Generalised linear model (with intervals)", "mechanisms/inference/whitened", "theorem-2"),
    ("linear-objective/1", "Linear regression (objective)", "mechanisms/objective/robust", "theorem-2"),
    ("linear-adassp/1", "Linear regression (AdaSSP)", "mechanisms/linear/sufficient", "theorem-1"),
    ("linear-statistics/1", "Linear regression (sufficient statistics)", "mechanisms/linear/sufficient", "theorem-2"),
    ("linear-descent/1", "Linear regression (descent)", "mechanisms/linear/descent", "theorem-1"),
    ("linear-output/1", "Linear regression (output)", "mechanisms/linear/output", "theorem-1"),
    ("linear-posterior/1", "Linear regression (posterior)", "mechanisms/linear/posterior", "theorem-1"),
    ("glm-objective/1", "Generalised linear model (objective)", "mechanisms/objective/glm", "theorem-2"),
    ("glm-adaptive/1", "Generalised linear model (adaptive)", "mechanisms/objective/glm_adaptive", "theorem-1"),
    ("glm-standardised/1", "Generalised linear model (standardised)", "mechanisms/objective/glm_adaptive", "theorem-2"),
    ("found-classes/1", "Model of classes found in private", "mechanisms/objective/glm_adaptive", "theorem-3"),
    ("glm-output/1", "Generalised linear model (output)", "mechanisms/output/glm", "theorem-1"),
    ("one-versus-rest/1", "One model for each class", "mechanisms/objective/one_versus_rest", "theorem-1"),
    ("softmax/1", "Softmax regression", "mechanisms/objective/softmax", "theorem-2"),
    ("sparse/1", "Sparse model", "mechanisms/support/sparse", "theorem-1"),
    ("pca-gauss/1", "PCA (Analyze Gauss)", "mechanisms/components/base", "theorem-1"),
    ("pca-staged/1", "PCA (staged Gaussian)", "mechanisms/components/base", "theorem-2"),
    ("pca-projector/1", "PCA (tested projector)", "mechanisms/components/projector", "theorem-2"),
    ("pca-dual/1", "PCA (matrix and projector)", "mechanisms/components/projector", "theorem-3"),
    ("select/1", "Best of a random number of runs", "mechanisms/selection/select", "theorem-1"),
    ("select-all/1", "Best of all proposals", "mechanisms/selection/select", "theorem-2"),
    (
        "select-tested/1",
        "Best of several runs after one test",
        "mechanisms/selection/select",
        "theorem-3-one-test-before-all-runs",
    ),
    ("scores/1", "Scores of a model", "mechanisms/scores/scores", "theorem-1"),
    ("rare-scores/1", "ROC area of a rare class", "mechanisms/scores/scores", "theorem-2"),
    ("holdout/1", "A fit, and its score on other rows", "scores/holdout", "theorem-1"),
    ("labels/1", "Noisy labels", "mechanisms/teachers/labels", "theorem-1"),
    ("labels-confident/1", "Noisy labels with a threshold", "mechanisms/teachers/labels", "theorem-2"),
    ("labels-distance/1", "Labels behind a test by distance", "mechanisms/teachers/distance_test", "theorem-2"),
    ("labels-smooth/1", "Labels behind a smooth test", "mechanisms/teachers/smooth_test", "theorem-1"),
    ("labels-renyi/1", "Renyi loss of labels", "mechanisms/teachers/renyi", "theorem-1"),
    ("pate/1", "A student of private teachers", "estimators/pate/classifier", "theorem-1"),
)

THEOREMS: Mapping[str, Theorem] = MappingProxyType(
    {name: Theorem(name, title, f"{proof}.proof.md", anchor) for name, title, proof, anchor in _TABLE}
)


def theorem(name: str) -> Theorem:
    """The registered theorem of this id.

    >>> theorem("median/1").link
    'mechanisms/order_statistics/median.proof.md#theorem-1'
    """
    try:
        return THEOREMS[name]
    except KeyError:
        raise ValueError(f"no theorem has the id {name!r}") from None
