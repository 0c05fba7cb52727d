"""Every mechanism, query, estimator method and proof of ours is a case, and the cases are what they should be."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snugdp
from snugdp.audit import registry
from snugdp.audit.finding import Case
from snugdp.audit.replay import path
from snugdp.core.guarantee import Cost
from snugdp.estimators.methods.glm import GLM_METHODS
from snugdp.estimators.methods.linear import METHODS
from snugdp.estimators.pca.pca import METHODS as PCA_METHODS
from snugdp.estimators.sparse.base import SELECTIONS
from snugdp.estimators.sparse.models import LABEL_METHODS
from snugdp.noise import Gaussian, Simulation
from snugdp.noise.recording import Witness
from snugdp_studies.audit import library
from snugdp_studies.audit.cases import fitting, tables
from tests.effort import sampled
from tests.plans import plan_of

ROOT = Path(snugdp.__file__).parent
GROUPS = library.GROUPS

# What releases nothing by itself: budgets, outcomes, tables, ledgers and noise, by the rooms that they live in; and
# what is a name for several things.
ROOMS_OF_WORDS = ("tables", "core", "ledger", "noise")
NOT_MECHANISMS = {
    "Advice",  # forecasts from what is public
    "advise",
    "EffectCurve",  # what additive models release
    "Explanation",  # what released models say of a row
    "check_pipeline",  # looks at the types of steps
    "load",  # reads and writes what was released
    "save",
    "Description",  # what a description is
    "EstimatedBounds",  # what bounds release
    "Estimate",  # what statistics release
    "HistogramCounts",
    "MetricEstimate",  # what scores release
    "Score",  # its laws over all neighbours are in tests/mechanisms/scores; its doors are audited
    "score",
    "ModelScores",
    "NotPrivateWarning",
    "NotReleased",
    "OneHotEncoder",  # looks alone, as Prepare and StandardScaler
    "Outcome",
    "Plan",
    "Prepare",
    "PrivacyWarning",
    "PrivateAlgorithm",  # what the recipes make: each of them is a case
    "Selected",
    "StandardScaler",
    "StatisticsTable",  # what groups release
}


# By which case what has a proof is run. A name is that of a case or its beginning.
PROOFS = {
    "release/persons": "persons",
    "mechanisms/objective/persons": "persons: linear, several rows",
    "mechanisms/persons/weight_choice": "persons: linear, private weight",
    "mechanisms/persons/persons": "persons: sum, private cap",
    "mechanisms/objective/adaptive": "linear: adaptive",
    "mechanisms/inference/whitened": "linear: intervals",
    "mechanisms/linear/least_squares": "linear: whitened, many rows",
    "mechanisms/linear/weighing": "additive: auto",
    "mechanisms/inference/mean": "linear: mean",
    "mechanisms/components/base": "pca: gauss, private centre",
    "mechanisms/linear/descent": "linear: descent",
    "mechanisms/bounds/exponential_grid": "bounds",
    "mechanisms/bounds/looks/looks": "looks",
    "mechanisms/bounds/looks/columns": "mean, no bounds",
    "mechanisms/keys/grouped": "group by: keys",
    "mechanisms/keys/optimal": "group by: keys alone",
    "mechanisms/keys/threshold": "group by: several keys",
    "mechanisms/objective/class_means": "logistic: softmax, auto",
    "mechanisms/objective/glm_adaptive": "logistic: auto",
    "mechanisms/objective/one_versus_rest": "logistic: one against the rest",
    "mechanisms/objective/glm": "logistic: objective",
    "mechanisms/output/glm": "logistic: output",
    "mechanisms/teachers/ball": "pate: distance",
    "mechanisms/teachers/confident": "pate: distance, only where sure",
    "mechanisms/teachers/smooth_test": "pate: smooth",
    "mechanisms/teachers/labels": "pate: plain",
    "mechanisms/teachers/loss": "pate: distance, only where sure",
    "mechanisms/teachers/pair": "pate: distance",
    "mechanisms/teachers/distance_test": "pate: distance",
    "mechanisms/teachers/smooth": "pate: smooth",
    "mechanisms/teachers/planning": "pate: distance",
    "mechanisms/teachers/table": "pate: distance, only where sure",
    "mechanisms/order_statistics/median": "median",
    "mechanisms/objective/minimiser": "linear: objective",
    "mechanisms/votes/mode": "mode",
    "mechanisms/objective/robust": "linear: objective",
    "mechanisms/linear/output": "linear: output",
    "mechanisms/linear/posterior": "linear: posterior",
    "mechanisms/components/projector": "pca: projector",
    "mechanisms/order_statistics/quantile": "quantile",
    "mechanisms/order_statistics/rank_draw": "median: drawn",
    "mechanisms/order_statistics/several": "quantiles",
    "mechanisms/order_statistics/interval": "quantile interval",
    "mechanisms/statistics/quantile_table": "quantile table",
    "mechanisms/objective/scale": "linear: objective, private scale",
    "mechanisms/objective/softmax": "logistic: softmax",
    "mechanisms/statistics/joint": "count",
    "mechanisms/statistics/moments": "variance",
    "mechanisms/statistics/clipping": "mean, clip auto",
    "mechanisms/support/sparse": "sparse linear: gumbel",
    "mechanisms/objective/spread": "logistic: auto",
    "mechanisms/order_statistics/stable": "median",
    "mechanisms/linear/sufficient": "linear: sufficient",
    "mechanisms/bounds/preparation": "linear: adassp, bounds found",
    "mechanisms/support/peeling": "sparse linear: gumbel",
    "mechanisms/support/block_votes": "sparse linear: votes",
    "mechanisms/statistics/described": "describe",
    "mechanisms/order_statistics/trimmed_mean": "trimmed mean",
    "mechanisms/votes/vote": "vote: tested",
    "certify/bound": "framework: statistics, epsilon",
    "certify/distance": "framework: distance, Gaussian",
    "certify/smooth": "framework: smooth bound",
    "certify/statistics": "framework: calibrated",
    "recipe": "framework: from_distance",
    "mechanisms/selection/select": "selection: geometric",
    "release/spine": "framework: calibrated",
    "release/stages": "sparse linear: gumbel",
    "estimators/pate/classifier": "PATEClassifier: distance",
    "estimators/additive/base": "additive: bounds found",
}
NO_CASE = {
    "release/parts": "which rows a release reads; the loss over all parts is in tests/release/test_parts.py",
    "mechanisms/scores/scores": "laws over all neighbours are in tests/mechanisms/scores; its doors are audited",
    "mechanisms/teachers/renyi": "a test that studies compare with: no release goes through it",
}


def test_every_public_name_is_a_case_or_no_mechanism() -> None:
    used = "\n".join(map(inspect.getsource, library.MODULES.values()))
    for name in sorted(set(snugdp.__all__) - NOT_MECHANISMS):
        room = str(getattr(getattr(snugdp, name), "__module__", "")).removeprefix("snugdp.").split(".")[0]
        if room in ROOMS_OF_WORDS:
            continue
        assert re.search(rf"\b{name}\b", used), f"{name} is in no case: add one to the studies, or say why not here"
    assert set(snugdp.__all__) >= NOT_MECHANISMS


def test_every_proof_has_a_case() -> None:
    proofs = {
        str(file.relative_to(ROOT)).removesuffix(".proof.md")
        for file in ROOT.rglob("*.proof.md")
        if file.relative_to(ROOT).parts[0] in ("mechanisms", "release", "certify", "estimators", "recipe.proof.md")
    }
    assert proofs == PROOFS.keys() | NO_CASE.keys()


@pytest.mark.slow  # as others below: to know their names, all cases are made
def test_every_case_of_a_proof_is_there() -> None:
    known = registry.names()
    for proof, name in PROOFS.items():
        assert any(one == name or one.startswith(f"{name},") or one.startswith(f"{name}:") for one in known), proof


def methods_run(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """The methods of every estimator of which a case is made, by its class."""
    found: dict[str, set[str]] = {}

    def made(name: str, model: type[Any], given: Any, **_: Any) -> Case[Any]:
        defaults = {name: p.default for name, p in inspect.signature(model).parameters.items()}
        kinds = {**defaults, **given}
        names = (kinds.get(kind) for kind in ("method", "selection", "test", "multi_class"))
        found.setdefault(model.__name__, set()).update(kind for kind in names if isinstance(kind, str))
        return own(name)

    from snugdp_studies.audit.cases import glm, linear, pate, pca, sparse

    for room in (linear, glm, pca, sparse, pate):
        monkeypatch.setattr(room, "fitting", made)
        list(pate._classifiers() if room is pate else room.cases())
    return found


def test_every_method_of_every_estimator_is_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    found = methods_run(monkeypatch)
    assert found["LinearRegression"] >= set(METHODS)
    assert found["LogisticRegression"] >= {*GLM_METHODS, "ovr"}
    assert found["PoissonRegression"] >= set(GLM_METHODS)
    assert found["GLM"] >= {"auto", "objective"}
    assert found["PCA"] >= set(PCA_METHODS)
    assert found["SparseLinearRegression"] >= set(SELECTIONS)
    assert found["SparseLogisticRegression"] >= set(LABEL_METHODS)
    assert found["PATEClassifier"] >= {"none", "distance"}
    assert found.keys() == {
        name
        for name in snugdp.__all__
        if inspect.isclass(made := getattr(snugdp, name)) and made.__module__.startswith("snugdp.estimators.")
    } - {
        "Advice",
        "EffectCurve",
        "Explanation",
        "NotPrivateWarning",
        "NotReleased",
        "PrivacyWarning",
        "Prepare",
        "StandardScaler",
        "OneHotEncoder",
    }


@pytest.mark.slow
def test_names_are_their_own_and_the_slow_ones_exist() -> None:
    names = registry.names()
    assert len(set(names)) == len(names)
    assert set(names) >= library.SLOW
    assert {case.group for case in registry.registered()} == set(GROUPS)


def test_importing_the_registry_makes_nothing() -> None:
    import subprocess
    import sys

    code = (
        "import sys, snugdp.audit.registry as r; "
        "assert not any(n.startswith('snugdp_studies.audit.cases') for n in sys.modules); "
        "assert r._built.cache_info().currsize == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@sampled(6)
@pytest.mark.parametrize("group", GROUPS)
def test_cases_are_bound_to_a_claim_that_can_be_seen(group: str) -> None:
    for case in registry.registered(group):
        assert case.delta_at(3.0) < 0.2 or case.cost.epsilon > 2, case.name
        assert case.delta_at(0.0) > 0.01, case.name  # no empty claim: something is released
        assert len(list(case.worst())) >= 1


@pytest.mark.slow
def test_runs_are_repeatable_and_leave_nothing_behind() -> None:
    for case in registry.registered("queries")[:4] + registry.registered("linear")[:2]:
        one, two = next(iter(case.worst()))
        before = case.run(one, Simulation(3)).value
        case.run(two, Simulation(4))
        after = case.run(one, Simulation(3)).value
        assert repr(before) == repr(after), case.name


def test_a_planned_estimator_is_the_estimator_itself() -> None:
    """The fit, the laws and the released numbers are those of the class that users have."""
    table = tables.spread_out(20, 2)
    given: dict[str, Any] = {"epsilon": 1, "delta": 0.05, "method": "adassp", "x_norm": 1, "y_bound": 1}
    made = fitting.fitting("planned", snugdp.LinearRegression, given, n_features=2, worst=list)
    direct = snugdp.LinearRegression(noise=Simulation(2), **given).fit(*table)
    for _ in range(2):
        again: Any = made.run(table, Simulation(2))
        assert again.value.theta.tolist() == direct.outcome_.value.theta.tolist()
    assert made.cost == direct.cost_


@pytest.mark.parametrize("relation", ["add_remove", "replace"])
@pytest.mark.parametrize("ordered", [False, True])
def test_random_tables_are_neighbours(relation: str, ordered: bool) -> None:
    for seed in range(50):
        generator = np.random.default_rng(seed)
        (X, y), (Z, w) = tables.with_targets(
            generator, 2, tables.number, tables.odd_number, relation=relation, ordered=ordered
        )
        one, two = ([repr((row.tolist(), t)) for row, t in zip(A, b, strict=True)] for A, b in ((X, y), (Z, w)))
        assert len(one) - len(two) == (relation == "add_remove")
        left = list(one)
        for row in two:
            if row in left:
                left.remove(row)
        assert len(left) <= 1
        if ordered:
            assert one[: len(two) - (relation == "replace")] == two[: len(two) - (relation == "replace")]


def own(name: str, sigma: float = 1.0) -> Case[list[float]]:
    from snugdp.release.context import ReleaseContext
    from snugdp.release.spine import release
    from snugdp.secrecy.secret import Secret

    plan = plan_of(name, Cost(mu=1))

    class Sum:
        def draw(self, data: Secret[list[float]], noise: Any) -> int:
            return int(
                noise.at("release").add_integers(data.map(lambda rows: [1000 * len(rows)]), Gaussian(1000 * sigma))[0]
            )

    def run(rows: list[float], noise: Any) -> Any:
        return release(plan, Sum(), Secret(rows), ReleaseContext(noise))

    return Case(name, run, Cost(mu=1), lambda: [([1.0], [])])


@pytest.mark.slow
def test_others_register_their_own() -> None:
    try:
        mine = registry.register(own("my sum"))
        assert registry.case("my sum") is mine
        assert registry.registered()[-1] is mine
        with pytest.raises(ValueError, match="another name"):
            registry.register(own("my sum"))
        with pytest.raises(ValueError, match="another name"):
            registry.register(own("median"))
        with pytest.raises(TypeError, match="Case"):
            registry.register("median")  # type: ignore[arg-type]
        assert path(mine, [1.0], [], 1).reason == ""
    finally:
        registry._others.clear()
    with pytest.raises(ValueError, match="no case"):
        registry.case("my sum")


@pytest.mark.slow
def test_cases_are_found_by_name_group_or_beginning() -> None:
    medians = [one.name for one in registry.matching("median")]
    tested = ["median", "median: as it is", "median: replace", "median: in one call, without a test"]
    drawn = ["median: drawn", "median: drawn, replace", "median: drawn, of whole numbers"]
    drawn += ["median: drawn, no bounds", "median: drawn, no bounds, replace"]
    assert medians == [*drawn, *tested]
    assert [one.name for one in registry.matching("Median: Replace")] == ["median: replace"]
    assert {one.group for one in registry.matching("LinearRegression")} == {"linear"}
    assert {one.name for one in registry.matching("trimmed_mean")} >= {"trimmed mean"}
    assert {one.group for one in registry.matching("pca")} == {"pca"}
    assert all(one.name.startswith("vote") for one in registry.matching("vote"))
    with pytest.raises(ValueError, match="nor a group"):
        registry.matching("nothing of the kind")
    with pytest.raises(ValueError, match="nor a group"):
        registry.matching(":")


def test_a_witness_sees_every_draw_of_a_case() -> None:
    witness = Witness(1)
    case = registry.case("linear: adassp", "linear")
    case.run(next(iter(case.worst()))[0], witness)
    assert [site.method for site in witness.transcript()] == ["reveal", "add_integers", "add_integers", "add_integers"]
