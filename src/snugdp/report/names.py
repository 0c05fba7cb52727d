"""Names of public and of released numbers as people say them. Names that are not here are shown as they are."""

from __future__ import annotations

PUBLIC = {
    "target": "what a fit estimates",
    "cells": "pieces of a curve",
    "linear": "columns whose effect is a straight line",
    "inference": "standard errors and intervals",
    "blocks": "blocks of rows that vote",
    "beta": "proposal: one row moves the answer by at most",
    "center": "rows are centred at",
    "delta": "delta",
    "max_rows": "rows that one person may count as, at most",
    "person": "rows of one person are told by",
    "fit_intercept": "with an intercept",
    "focus": "noise is least for",
    "gap": "votes by which the plurality is believed to lead",
    "loss": "loss",
    "mean_runs": "runs on average",
    "missing": "missing cells",
    "multi_class": "more than two classes",
    "n_components": "components asked for",
    "n_features_to_select": "columns to choose",
    "n_teachers": "teachers",
    "proxy": "public histograms of similar queries",
    "outside": "share of rows that may lie beyond each bound",
    "q": "which quantile",
    "rate_max": "largest expected count",
    "row_norm": "rows are shortened to the length",
    "rows": "number of rows, as publicly known",
    "selection_share": "share of the budget for the choice",
    "sigma": "noise on every count",
    "step": "spacing of the values",
    "test": "test",
    "threshold": "least noisy count for an answer",
    "threshold_sigma": "noise on that count",
    "trim": "share of rows dropped at each end",
    "values": "values that count",
    "x_bound": "bound of every column",
    "x_norm": "rows are shortened to the length",
    "y_bound": "bounds of the target",
    "y_max": "largest count of the target",
}

RELEASED = {
    "bends_weight": "bends count so many times",
    "centre": "centre, scaled",
    "clip": "sizes above this were cut",
    "curvature": "least curvature of the rows, at least",
    "curvatures": "least curvatures at those ridges, at least",
    "gamma": "sharpness of the posterior",
    "gap": "gap after the last component, at least",
    "k": "components",
    "lines_weight": "lines count so many times",
    "lowest": "least curvature of the rows, with noise",
    "m": "pull of one row over the noise, at most",
    "mean": "usual size of a target, scaled",
    "noise": "noise of the sums of squares, in full rows",
    "noise_at_most": "noise of a coefficient, scaled, at most",
    "place": "place of the ridge that was chosen, from 0",
    "radius": "how far rows lie from their centre, scaled",
    "raised": "what the intercept was raised by, scaled",
    "rate": "size of a step",
    "residual": "what a line can be off by, scaled, at most",
    "ridge": "ridge, which pulls coefficients to 0",
    "ridges": "ridges that were tried",
    "rows": "number of rows, with noise",
    "sd": "noise of the spectrum",
    "sigma": "noise of the objective, scaled",
    "spectrum": "spectrum, with noise",
    "spread": "spread of the spectrum, with noise",
    "start": "before the components",
    "stretch": "coefficients were multiplied, for what the ridge took from them, by",
    "tail": "tail of the targets, a normal one has 1.25",
    "target_centre": "centre of the target, scaled",
    "tau": "slope of the loss, scaled",
    "top": "largest common size of a target, scaled",
}


def of_public(name: str) -> str:
    """A parameter or a proposal.

    >>> of_public("n_teachers"), of_public("own_name")
    ('teachers', 'own name')
    """
    return PUBLIC.get(name, name.replace("_", " "))


def of_released(name: str) -> str:
    """What was released beside a value, or by a test.

    >>> of_released("lowest")
    'least curvature of the rows, with noise'
    """
    return RELEASED.get(name, name.replace("_", " "))
