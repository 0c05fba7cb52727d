"""The student of a PATEClassifier in a model file: a linear one, as its coefficients."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np

from snugdp.estimators.pate.cells import Column
from snugdp.estimators.pate.rows import Form

STUDENTS = {  # by name: where it lives, and the parameters that its predictions depend on
    "LogisticRegression": ("sklearn.linear_model", ("solver",)),
    "Perceptron": ("sklearn.linear_model", ()),
    "LinearSVC": ("sklearn.svm", ()),
}
_FIELDS = ("kind", "parameters", "coef", "intercept", "classes", "form", "queries")
_FORMS = ("frame", "numbers", "sparse")


def coefficients_of(model: Any) -> dict[str, Any]:
    """The coefficients of the student, and the form of the rows it takes."""
    student = getattr(model, "student_", None)
    name = type(student).__name__
    numbers = all(column.kind == "number" for column in model._form.columns)
    if name not in STUDENTS or type(student) is not _class(name) or not numbers:
        raise TypeError(
            "a PATEClassifier can be saved if its student is linear and takes numbers: one of scikit-learn's "
            f"{', '.join(STUDENTS)}. Others are programs rather than numbers: train such a student on the queries and "
            "labels_, which are released"
        )
    assert student is not None
    return {
        "kind": name,
        "parameters": {key: getattr(student, key) for key in STUDENTS[name][1]},
        "coef": student.coef_,
        "intercept": np.atleast_1d(student.intercept_),
        "classes": student.classes_,
        "form": model._form.kind,
        "queries": model._asked,
    }


def take_coefficients(model: Any, given: dict[str, Any]) -> None:
    """Give a PATEClassifier that was made again its student."""
    if not isinstance(given, dict) or tuple(given) != _FIELDS or given["kind"] not in STUDENTS:
        raise ValueError(f"the student must have {', '.join(_FIELDS)} and be one of {', '.join(STUDENTS)}")
    student = _class(given["kind"])(**given["parameters"])
    coef, intercept, classes = given["coef"], given["intercept"], given["classes"]
    width, ways = model.n_features_in_, len(classes)
    rows = 1 if ways == 2 else ways
    whole = coef.shape == (rows, width) and intercept.shape == (rows,) and classes.shape == (ways,)
    known = set(classes.tolist()) <= set(model.classes_.tolist())
    if not (whole and known and np.isfinite(coef).all() and np.isfinite(intercept).all()):
        raise ValueError("the student must have finite coefficients of all features for every class")
    if isinstance(given["queries"], bool) or not isinstance(given["queries"], int) or given["form"] not in _FORMS:
        raise ValueError("the student must tell how many queries there were, and the form of rows")
    student.coef_, student.intercept_, student.classes_, student.n_features_in_ = coef, intercept, classes, width
    framed = given["form"] == "frame"
    names = tuple(model.feature_names_in_) if framed else None
    backend = nw.Implementation.POLARS if framed else None
    model.student_, model._asked = student, given["queries"]
    model._form = Form(given["form"], (Column("number"),) * width, names, backend)


def _class(name: str) -> Any:
    return getattr(import_module(STUDENTS[name][0]), name)
