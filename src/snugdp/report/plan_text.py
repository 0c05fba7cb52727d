"""A plan in words: what ``print(plan)`` shows. Plans, steps and forecasts hold numbers and codes; words are here."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from snugdp.core.outcome import Unit
from snugdp.numerics.printed import printed_up
from snugdp.propose.forecast import ROWS_LIKE, Amount, ErrorOf, FitForecast, Forecast, Note, PassChance
from snugdp.propose.plan import Plan, Step, StepNoise

if TYPE_CHECKING:
    from snugdp.estimators.forecasts.advice import Advice

MUCH = 4  # the epsilon above which a promise is weak
MAX_NAMED = 6  # coefficients whose noise is listed one by one
_LONG = 10_000  # whole numbers from here on have commas
_LAWS = {"gaussian": "Gaussian", "gumbel": "Gumbel", "laplace": "Laplace", "optimal": "the optimal"}
_UNITS = {
    "": "",
    "rows": " rows",
    "persons": " persons",
    "ranks": " ranks",
    "votes": " votes",
    "row": " times what one row can add",
}
_PROBABILITY_WORDS = {0.95: "in 19 of 20 cases", 0.9: "in 9 of 10 cases"}
_ROUTES = {"stop": "a random number of runs", "compose": "every proposal once"}

STEPS = {
    "distance": "pass if distance + {law} noise >= {threshold}",
    "lead": "pass if the lead is safely above {least} ({law} noise, threshold {threshold})",
    "value": "add {law} noise",
    "bounded-value": "no test needed: add {law} noise for the whole range",
    "stable-value": "as it is: no neighbour has another value",
    "rank": "draw a point by its rank: e times less likely for every {scale} off",
    "largest-count": "the largest count after {law} noise of scale {scale}",
    "count": "a count, {law} noise of scale {scale}",
    "sum": "a sum, with {law} noise",
    "cells": "{times} counts, {law} noise of scale {scale} on each",
    "moments": "{times} sums over all rows, {law} noise on each",
    "clipped-sum": "where to clip, drawn privately; then the sum of clipped numbers, with {law} noise",
    "clipped-moments": "where to clip, drawn privately; then {times} sums of clipped numbers, {law} noise on each",
    "two-edges": "two of {edges} edges, {law} noise of scale {scale} on each",
    "grid": "where {times} columns lie, to a factor of 2, {law} noise of {scale} on each count",
    "grid-and-levels": "where {times} columns of numbers lie, to a factor of 2, and levels of {categories} categories "
    "whose counts reach {threshold}, {law} noise of {scale} on each count",
    "zoom": "how {times} columns spread in the ranges found, {law} noise of {scale} on each count",
    "known-bounds": "bounds and values that are known already: nothing is looked at",
    "closer-zoom": "the same for narrow columns more closely, {law} noise",
    "column-grid": "where the column lies, to a factor of 2, {law} noise of {scale} on each count",
    "column-zoom": "how it spreads in the range found, {law} noise of {scale} on each count",
    "closer-column-zoom": "the same more closely if it is narrow, {law} noise",
    "smallest-eigenvalue": "smallest eigenvalue of X'X + {law} noise of {scale}, less {margin}: a lower bound",
    "log-residual": "log(B_y + B |theta|) + {law} noise: an upper bound on residuals",
    "ridge-solution": "add {law} noise to the ridge solution",
    "posterior-sample": "a sample of the posterior",
    "posterior-sample-or-refusal": "a sample of the posterior, or a refusal",
    "gram": "X'X with {law} noise of {scale}",
    "cross": "X'y with {law} noise of {scale}",
    "gradient": "a gradient with {law} noise of {scale}",
    "gram-matrix": "X'X with symmetric {law} noise, to whiten rows",
    "gram-matrix-for-choice": "X'X with symmetric {law} noise, to tell whether rows are very many",
    "row-lengths": "histogram of the lengths of whitened rows, {law} noise of {scale} in a bin",
    "whitened-gram-matrix": "Z'Z of the whitened rows Z, with symmetric {law} noise",
    "pilot-line": "sums for a pilot line, with {law} noise",
    "residual-sizes": "histogram of the sizes of its residuals, {law} noise of {scale} in a bin",
    "clipped-residuals": "sums of whitened rows times their clipped residuals, with {law} noise",
    "covariance-matrices": "Hessian and covariance of the scores, for standard errors, symmetric {law} noise",
    "target-sizes": "histogram of the sizes of targets, {law} noise of {scale} in a bin",
    "mean-target": "mean of the targets, with {law} noise",
    "target-sum": "sum of the targets, with {law} noise",
    "target-places": "histogram of the targets, {law} noise of {scale} in a bin",
    "weights-of-parts": "how much the constant, lines and bends count, from sums with {law} noise",
    "target-squares": "sum of the squared targets, with {law} noise",
    "mean-residual": "mean of the clipped residuals, with {law} noise: the intercept follows it",
    "mean-target-size": "mean size of the targets, with {law} noise",
    "mean-residual-size": "mean size of the residuals of the pilot, with {law} noise",
    "cell-sorts": "whether {times} columns hold numbers, dates or text, {law} noise of {scale} on each count",
    "rows-per-person": "how many rows persons have, {law} noise of {scale} on each count",
    "row-norms": "histogram of norms, {law} noise of {scale} in a bin",
    "row-sums": "sums of scaled rows, {law} noise of {scale} in each",
    "class-sums": "sums of the rows of each class, {law} noise of {scale} in each",
    "class-slope": "how steep a rule of their means is, {law} noise of {scale} on each look",
    "row-sum": "sum of the rows, {law} noise of {scale} in every entry",
    "row-count": "number of rows, {law} noise of {scale}",
    "log-cosh-objective": "minimise a log-cosh loss with a random linear term ({law})",
    "objective": "minimise the losses with a random linear term ({law})",
    "classes-objective": "minimise the losses of the classes found, with a random linear term ({law})",
    "softmax-objective": "minimise softmax losses of {classes} classes with a random linear term ({law})",
    "smallest-curvature": "smallest eigenvalue of the Hessian + {law} noise of {scale}, less {margin}: a lower bound",
    "minimiser-iso": "add {law} noise to the minimiser",
    "minimiser-hessian": "add {law} noise, shaped by the Hessian, to the minimiser",
    "matrix": "matrix of squares, symmetric {law} noise of {scale}",
    "staged-matrix-subspace": "matrix of squares in stages, symmetric {law} noise of {scale}; then less noise on what "
    "crosses the subspace",
    "staged-matrix-components": "matrix of squares in stages, symmetric {law} noise of {scale}; then less noise on "
    "what crosses the components",
    "gap-and-spread": "gap and spread of the spectrum, {law} noise of {scale}",
    "spectrum": "all eigenvalues, {law} noise of {scale} on each",
    "projector-or-matrix": "the projector, or the matrix with symmetric {law} noise of {scale}",
    "projector-or-second-matrix": "the projector, or a second matrix, with symmetric {law} noise",
    "best-scores": "the {times} largest scores, {law} noise of {scale} on each",
    "block-votes": "{blocks} blocks vote; pass if half the lead + {law} noise > {threshold}",
    "every-proposal": "each of {proposals} proposals once, with epsilon {epsilon} at delta {delta}",
    "hidden-runs": "a hidden number of runs ({runs}) of {proposals} proposals, each with epsilon {epsilon} at delta "
    "{delta}",
    "plurality": "the class with most votes after {law} noise of {scale} on every count",
    "confident-plurality": "the class with most votes after {law} noise of {scale} on every count, if the largest "
    "count plus noise of {threshold_scale} reaches {threshold}",
    "teachers-to-change": "the more teachers would have to change, the more likely it passes",
    "renyi-loss": "pass if the loss at order {order} is surely small",
    "statistics": "{law} bounds on {statistics}; pass if the loss is at most {limit}",
    "released-statistics": "{law} bounds on {statistics}, released",
    "upper-bound": "a private upper bound on the loss; pass if it is at most {limit}",
    "keys": "keys whose counts reach {threshold} after {law} noise of {scale}, with these counts",
    "group-rank": "a point for every group, drawn by its rank, a scale of {scale}",
    "group-count": "rows of every group, {law} noise of {scale}",
    "group-total": "a sum for every group, {law} noise of {scale} at a bound",
    "group-mean": "valid cells and a sum for every group, {law} noise of {scale} at a bound",
    "group-variance": "valid cells, a sum and squares for every group, {law} noise of {scale} at a bound",
    "person-cap": "how much a person may contribute: one of {candidates} caps up to {largest} rows, drawn by how many "
    "persons are above each",
    "person-tail": "how many persons contribute how much, {law} noise of {scale} on each count: from them follows one "
    "of {candidates} caps up to {largest} rows on what a person contributes",
    "person-total": "a sum over persons, {law} noise of {scale}",
    "capped-total": "a sum over persons, {law} noise of {each} rows for every row of the cap",
    "person-totals": "{times} sums over persons, {law} noise of {scale} on each",
    "capped-totals": "{times} sums over persons, {law} noise of {each} rows on each for every row of the cap",
    "public-rows": "the number of rows, as it is: neighbours have as many",
    "described-entries": "rows with and without an entry, {law} noise of scale {scale} on each",
    "described-mean": "count, missing, mean: where to clip, drawn privately; then sums with {law} noise",
    "described-deviation": "count, missing, mean, standard deviation: where to clip, drawn privately; then sums with "
    "{law} noise",
    "described-quantiles": "{times} quantiles by rank: e times less likely for every {scale} off",
    "described-values": "{times} counts, {law} noise of scale {scale} on each",
    "description": "counts, means, deviations, quantiles and values of {times} columns by what was found, {law} noise",
    "score-centre": "the mean of all scores, with {law} noise: where bins are",
    "score-spread": "their mean distance from it, with {law} noise: how wide bins are",
    "scores": "{times} sums over scored rows, {law} noise on each",
    "rare-scores": "{times} counts of the common class by bins of the score, {law} noise of scale {scale} on each; "
    "then where the rare class stands among them",
    "holdout-scores": "scores of the fit on rows that were held out of it, {law} noise; a row is in one of the parts",
    "own": "your draw",
    "former": "as it was planned",
    "own-calibrated": "your draw, scaled by the bounds",
}
_COUNTED = {"gradient", "objective"}  # where it is worth saying how many there are

CONDITIONS = {
    "always": "never refused",
    "bounds-found": "if about {rows} rows of a column lie within a factor of two (say from 50 to 100), so that its "
    "bounds are found",
    "rows-around": "if there are about {rows} rows or more",
    "mode-leads": "if the mode leads by at least {rows} rows",
    "lead": "if the lead is at least {rows} rows",
    "rows-to-change": "if at least {rows} rows would have to change before one row could move the answer by more than "
    "beta",
    "plurality-leads": "if every plurality leads by {votes} of {teachers} votes over every other class",
    "plurality-leads-by-far": "if every plurality leads by far",
    "votes-as-believed": "if the votes are as believed",
    "leads-of-all-sizes": "if leads of all sizes are equally likely (give gap= or proxy= if you know better)",
}

_CENTRED = "counts as the middle of its bounds, or as none of the listed values"
_FOUND = "counts as the centre of its column, or as none of its levels"
_TOGETHER = (
    "bounds that are not given are found from one row of each. Forecasts are for rows that count in full (theorem "
    "persons/2)"
)
NOTES = {
    "scaled-noise": "in scaled units, with {rows} rows spread evenly: noise of {noise} in a coefficient",
    "scaled-noise-at-most": "in scaled units, noise of a coefficient below {noise}, and far below with many rows",
    "refusal-expected": "a refusal with {rows} rows: give a larger ridge, more budget or more rows",
    "entry-chosen": "a column is usually chosen when its score leads by {lead} {unit}",
    "components-found": "components are found whose sum of squares is well above that of {rows} rows of full length, "
    "and above that of the next",
    "best-tried": "the best proposal is tried with probability {probability}; the winner beats {quantile} of all runs "
    "on average",
    "best-tried-surely": "the best proposal is tried for certain",
    "too-many-runs": "nothing at all with probability {probability}, after more than {most} runs",
    "time-tells-runs": "how long it takes tells about the number of runs, which is hidden: keep the time to yourself",
    "routes-compared": "{chosen} leaves a run epsilon {epsilon} at delta {delta}, {other} {other_epsilon}",
    "rehearse-first": "a mistake inside run or score ends in a refusal, and is paid for: rehearse with "
    "noise=Simulation(1) first",
    "error-is-large": "the noise takes up more than a quarter of the bounds: take more rows, a larger epsilon or "
    "tighter bounds",
    "beta-from-bounds": "beta was taken from the bounds alone; rows=..., a public guess, makes a better one for large "
    "tables",
    "ranks-off": "in 19 of 20 cases every answer is off by at most {ranks} ranks, if rows lie about evenly around it",
    "ranks-off-at-most": "in 19 of 20 cases the answer is off by at most {ranks} ranks, if rows lie about evenly "
    "around it, and by at most {most} whatever they are",
    "drawn-or-tested": 'no proposal is needed; method="test" (with beta=...) is better only where equal rows surround '
    "the answer and beta=0 passes",
    "like-usual": "forecasts are for rows as they usually lie between bounds: the standard deviation of the target is "
    "about a sixth of the distance between its bounds, and that of the narrowest column a tenth (if you know better in "
    "public, give spread=...). About two in three come true within a factor of 2, and nine in ten within 3",
    "like-usual-found": "forecasts are for columns as they usually are, whose bounds are found. About seven in ten "
    "come true within a factor of 2, and nine in ten within 3; with a public sample more do",
    "like-usual-curves": "forecasts are for columns as they usually are, and curves. About two in three come "
    "true within a factor of 2, and more than four in five within 3; with a public sample nearly all within 2",
    "like-usual-scores": "forecasts are for rows as they usually are. For two labels about half of them come true "
    "within a factor of 2, and for more classes or counts about two in three; with a public sample more than four in "
    "five do",
    "like-spread": "forecasts are for a target whose standard deviation is {target} of the distance between its "
    "bounds, and {narrowest} for the narrowest column. About four in five come true within a factor of 2, and nine in "
    "ten within 3",
    "like-sample": "forecasts are for rows like those of the public sample, on which fits were rehearsed. More than "
    "four in five come true within a factor of 2",
    "error-with-rows": "with {rows} rows that fill their bounds evenly, noise below {error} in 19 of 20 cases; the "
    "answer comes with an interval of its own",
    "clip-from-rows": "with enough rows, about {rows}, numbers are clipped where hardly any lie beyond, and loose "
    "bounds cost little; with fewer they are not. Whether it pays cannot be known in advance: with tight bounds "
    "clip=None is better. The answer says how much of it clipping may hide",
    "clip-surely": "numbers are clipped where hardly any lie beyond, so loose bounds cost little; this needs {rows} "
    "rows. Whether it pays cannot be known in advance: with tight bounds clip=None is better. The answer says how "
    "much of it clipping may hide",
    "clip-needs-rows": "not clipped: that pays from about {rows} rows on",
    "describe-weights": "the budget is divided by weights, {total} in all: for a column of numbers 2 for its sums (1 "
    "if it is only counted) and 2 for its quantiles, for any other column 1",
    "describe-sought": "what is not declared is found privately, for a quarter of the budget: what columns hold, "
    "their bounds and values. The rest is divided by weights: for a column of numbers or dates 2 for its sums and 2 "
    "for its quantiles, for any other column 1. Errors are in the answer",
    "describe-rows": "below: errors in 19 of 20 cases, with {rows} rows that fill their bounds evenly; the answer has "
    "its own",
    "describe-count": "{column}: counts within {count} rows",
    "describe-mean": "{column}: mean within {mean}, counts within {count} rows",
    "describe-ranks": "{column}: quantiles within {ranks} ranks, counts within {count} rows",
    "describe-mean-ranks": "{column}: mean within {mean}, quantiles within {ranks} ranks, counts within {count} rows",
    "describe-mean-deviation": "{column}: mean within {mean}, deviation within {deviation}, counts within {count} rows",
    "describe-mean-deviation-ranks": "{column}: mean within {mean}, deviation within {deviation}, quantiles within "
    "{ranks} ranks, counts within {count} rows",
    "describe-values": "{column}: every count within {error} rows",
    "lead-wins": "a lead of {rows} rows wins in 19 of 20 cases",
    "rows-beyond": "in 19 of 20 cases (each column) at most {share} of the rows and {rows} more lie beyond each bound",
    "rows-needed": "and the next edge inwards would leave more than that share outside; this needs {rows} rows or more",
    "bounds-are-sought": "no bounds are given: they are found privately, for a part of the budget, and released with "
    "the answer. Below about 1,000 rows public bounds are worth having",
    "no-bounds-needed": "no bounds are given, and none are needed: answers lie between -2^59 and 2^59",
    "rows-to-find": "a column is found if about {rows} rows lie within a factor of two (say 50 to 100); a column "
    "that is not found is left out, and if that is the target, the fit is refused",
    "classes-found": "the classes are labels that are found privately, and shown: about {rows} rows of a label are "
    "enough in 19 of 20 cases. Rows with other labels are left out; with fewer than two classes a fit is refused, and "
    "of more than {most} the most frequent are kept. Labels must not be names, identifiers or free text of persons",
    "count-found": "the largest count is found privately; larger ones are clipped to it",
    "target-not-found": "a refusal with {rows} rows: too few to find a target that lies around 0, or most columns. "
    "About {needed} rows are needed, fewer where columns lie far from 0. Declare bounds that are public, or give "
    "rows=..., a larger epsilon or fewer columns",
    "columns-not-found": "with {rows} rows many columns are not found and left out, first those that lie around 0. "
    "About {needed} rows are needed. Declare bounds that are public, or give rows=..., a larger epsilon or fewer "
    "columns",
    "intervals-bounded": "intervals are bounded with about {rows} rows, spread evenly over all columns, a level with "
    "about {own} rows of its own; with far fewer they are unbounded",
    "intervals-rare": "where one class is rare, or counts are mostly less than an eighth of the largest, bounded "
    "intervals need more rows than that",
    "robust-line": "a robust line: large residuals count less than in least squares. If the target is skewed, "
    "predictions are nearer to its typical values than to its mean; "
    'in a linear model, target="mean" estimates the mean, with more noise',
    "robust-slopes": "a robust line: large residuals count less than in least squares. Its intercept then follows the "
    "mean of the clipped residuals, as far as that is not noise. If the target has a long tail, predictions are still "
    "on one side of its mean, and slopes are those of its typical values; in a linear model, "
    'target="mean" estimates the mean, with more noise',
    "least-squares-with-many-rows": "with about {rows} rows and more, spread evenly over all columns, noise does not "
    "matter: then it ends in least squares instead, from X'X and X'y with noise, which is the conditional mean. It "
    "never does where columns add up to others, as the levels of a category do if every row is in one",
    "ended-in-least-squares": "rows were so many that noise does not matter: the fit ended in least squares, from X'X "
    "and X'y with noise, so this line is the conditional mean. They took the place of the log-cosh loss and of what "
    "prepares it, at the same cost",
    "conditional-mean": "the conditional mean, by least squares with residuals clipped far out. That costs more noise "
    "than a robust line: intervals are about twice as wide where errors are normal. What is clipped is not "
    "in them",
    "column-found": "a column is found if about {rows} rows lie within a factor of two (say 50 to 100), and a level if "
    "more rows have it than its threshold says",
    "key-shown": "a key is shown in 19 of 20 cases if {rows} rows have it, and never if no row has it",
    "groups-listed": "all {groups} listed groups, also empty ones",
    "group-count": "a count is off by less than {error} in 19 of 20 cases",
    "group-rank": "{statistic} is off by less than {ranks} ranks in 19 of 20 cases",
    "group-statistic": "{statistic} of a group of {rows} rows is off by less than {error} in 19 of 20 cases",
    "plurality-share": "{share} of the labels are the plurality {condition}",
    "answers-share": "about {answers} answers; {share} of the labels are the plurality {condition}",
    "without-a-test": "without a test, noise of {scale} votes would be needed: {share} of the labels",
    "no-test-needed": "no test is needed: this sigma is private enough on all votes",
    "plain-is-as-good": "no test: with such leads plain noise promises at least as many right labels",
    "plain-is-cheaper": "no test: plain noise is cheaper than the smooth test on such votes",
    "missing-target": "rows without a target (not a number, or not one of the classes) are left out",
    "holdout": "{share} of the rows are held out of the fit by a keyed hash, and the model is scored on them: one row "
    "is in the fit or in the scores, so that the larger cost of the two is paid (theorem holdout/1)",
    "scored-rows": "the score of a row depends on that row alone",
    "scored-rows-assumed": "the score of a row is assumed to depend on that row alone, up to a millionth of the scale: "
    "use one_by_one=True for a model that looks at other rows too. The model is assumed to be public",
    "score-with-rows": "with {rows} rows, classes of equal size or targets spread evenly, noise adds below {error} to "
    "{metric} in 19 of 20 cases; every score comes with an interval of its own",
    "missing-zero": "a missing entry of a row counts as 0",
    "missing-centre": f"a missing cell {_CENTRED}",
    "missing-centre-in": f"a missing cell in {{columns}} {_CENTRED}",
    "missing-drop": "rows with a missing cell are left out",
    "missing-drop-in": "rows with a missing cell in {columns} are left out",
    "missing-indicator": f"a missing cell {_CENTRED}, and has an entry of its own that says so",
    "missing-indicator-in": f"a missing cell in {{columns}} {_CENTRED}, and has an entry of its own that says so",
    "missing-found": f"a missing cell {_FOUND}",
    "missing-found-in": f"a missing cell in {{columns}} {_FOUND}",
    "missing-found-indicator": f"a missing cell {_FOUND}, and has an entry of its own that says so",
    "missing-found-indicator-in": f"a missing cell in {{columns}} {_FOUND}, and has an entry of its own that says so",
    "missing-number": "once there is a centre, a missing number counts as the centre",
    "missing-entries": "missing entries are left out",
    "population-mean": "the variance is released as well, and with it a confidence interval for the population: of "
    "sampling, privacy noise and clipping, except for rows beyond bounds that were found. The noise of the mean grows "
    "by a factor of about {factor}",
    "population-quantile": "the interval covers a quantile of the population in 19 of 20 cases, of sampling and "
    "privacy noise; where too few rows lie beyond it an end is the bound",
    "population-groups": "means and proportions have confidence intervals for the population of each group, of "
    "sampling and privacy noise; what clipping to the bounds does to rows beyond them is not in them",
    "missing-as": "a missing entry counts as {value}",
    "missing-as-lower": "a missing entry counts as {value}, the lower bound: a test of this relation needs the public "
    "number of rows. missing=... chooses another value",
    "missing-counted": "missing entries are counted separately",
    "missing-keys": "rows without a key, and missing entries, are left out",
    "persons-one": "one row of each person is used, chosen at random among those that differ (theorem persons/1)",
    "persons-several": "at most {rows} rows of each person are used, chosen at random among those that differ; the "
    "noise hides all of them (theorem persons/1)",
    "persons-totals": "all rows of each person are used; what a person adds in all is scaled down to the length of "
    "{rows} rows in one cell, where it is longer (theorem person-totals/1)",
    "persons-weights-one": "all rows of each person are used, with weights that add up to one row: the quantile of a "
    "random row of a random person (theorem person-ranks/1)",
    "persons-weights": "all rows of each person are used, with weights that add up to at most {rows} rows (theorem "
    "person-ranks/1)",
    "persons-keys": "each person counts once for each of at most {keys} keys, by a row chosen at random (theorem "
    "person-keys/1)",
    "persons-private-cap": "all rows of each person are used; what a person adds in all is scaled down to a cap, "
    "which is found privately among {candidates} caps up to {largest} for {part} of the budget, and released. The "
    "cost is fixed; the noise is scaled by the cap",
    "persons-cap-error": "with a cap of c, noise below c times {error} in 19 of 20 cases, beside what it cuts off; "
    "with a public max_rows={largest}, {largest} times that",
    "persons-cap-restored": "what the cap cuts off is estimated from the same counts of persons and added to the "
    "counts in proportion, to each at most half of the standard deviation of its noise",
    "persons-cap-few": "for so few numbers a cap that is known from the subject, max_rows=as many as hardly anybody "
    "has, is often better than one found privately, by a factor of 1.5 to 2.6 where a few persons have very many rows",
    "persons-cap-many": "for so many numbers the cap that is found is usually close to the best one",
    "persons-together-one": f"all rows of each person are used, and together they count as one row; {_TOGETHER}",
    "persons-together": "all rows of each person are used, and together they count as at most {rows} rows: more noise "
    f"than with max_rows=1, and less error of the sample; {_TOGETHER}",
    "persons-private": "all rows of each person are used; how many rows they may count for together, one of {weights}, "
    f"follows from how many rows persons have; {_TOGETHER}",
    "missing-keys-kept": "rows without a key are a group of their own; missing entries are left out",
}
UNITS = {Unit.TEACHER: "one teacher, with all its votes", Unit.PERSON: "one person, whatever the number of rows"}
_ABOUT_GAPS = "missing-"  # how the codes of notes begin that say what is done with missing cells
_ABOUT_PERSONS = "persons-"  # or with the rows of a person
_FORMATS: Mapping[tuple[str, str], str] = {
    ("best-tried", "quantile"): ".1%",
    ("persons-private-cap", "part"): ".0%",
    ("too-many-runs", "probability"): ".1g",
    ("plurality-share", "share"): ".1%",
    ("answers-share", "share"): ".1%",
    ("answers-share", "answers"): ".0f",
    ("without-a-test", "share"): ".1%",
    ("without-a-test", "scale"): ".4g",
    ("rows-beyond", "share"): ".4g",
    ("components-found", "rows"): ".4g",
}
_ERRORS = {
    ErrorOf.PREDICTION: "the prediction error",
    ErrorOf.STANDARDISED: "the prediction error, in standard deviations of the target",
    ErrorOf.LINEAR: "the error of the linear function",
    ErrorOf.CHOSEN: "the prediction error, once columns are chosen",
}


def plan_text(plan: Plan) -> str:
    """The whole plan, a line for each of its parts."""
    proposal = ", ".join(f"{name} = {_proposed(value)}" for name, value in plan.proposal.items())
    lines = [("propose", proposal)] if proposal else []
    lines += [(step_label(step), f"{step_words(step)}  [{step.cost.words}]") for step in plan.steps]
    lines += [("total", f"{plan.cost.words}, neighbours: {plan.cost.neighbours.value}")]
    if plan.budget is not None and (plan.cost.mu_squared or plan.cost.atoms or plan.cost.variation):
        epsilon, delta = printed_up(plan.budget.epsilon), printed_up(plan.budget.delta)
        lines += [("that is", f"epsilon {epsilon} at delta {delta}")]
    lines += [("unit", UNITS[plan.unit])] if plan.unit in UNITS else []
    people, gaps = (_noted_under(plan, heading) for heading in (_ABOUT_PERSONS, _ABOUT_GAPS))
    lines += [("persons", note_words(note)) for note in people]
    apart = (*people, *gaps)
    rest = replace(plan.forecast, notes=tuple(note for note in plan.forecast.notes if note not in apart))
    lines += [("expect", line) for line in forecast_lines(rest)]
    lines += [*(("missing", note_words(note)) for note in gaps), ("theorem", plan.theorem.id)]
    width = max(7, *(len(name) for name, _ in lines))
    return "\n".join([f"Plan: {plan.title}", *(f"  {name:<{width}}  {words}" for name, words in lines)])


def _noted_under(plan: Plan, heading: str) -> tuple[Note, ...]:
    return tuple(note for note in plan.forecast.notes if note.code.startswith(heading))


def step_label(step: Step) -> str:
    """The name of a step for people: its column, or its id."""
    return str(step.noise.params.get("column", step.id))


def step_words(step: Step) -> str:
    """What a step does."""
    noise = step.noise
    if noise.on not in STEPS:
        return noise.on  # a step of somebody else's plan says it itself
    numbers = {name: _number(value) for name, value in noise.params.items()}
    text = STEPS[noise.on].format(
        law=_LAWS.get(noise.law, noise.law), scale=_scale(noise), times=noise.times, **numbers
    )
    text = f"one test; {text}" if "tests" in noise.params else text
    m = f", m = {_number(noise.params['m'])}" if "m" in noise.params else ""
    counted = noise.times > 1 and noise.on in _COUNTED
    ridges = f"; at {noise.times} ridges" if noise.on == "smallest-curvature" and noise.times > 1 else ""
    return f"{f'{noise.times} times: ' if counted else ''}{text}{m}{ridges}"


def forecast_lines(forecast: Forecast, *, fits: bool = True) -> tuple[str, ...]:
    """All of a forecast; ``fits``: also what is said by numbers of rows."""
    lines = [] if forecast.answer_error is None else [_answer(forecast.answer_error)]
    lines += [chance_words(chance) for chance in forecast.chances]
    like = next((note for note in forecast.notes if note.code.startswith(ROWS_LIKE)), None)
    if fits:
        lines += [_fit_words(fit, forecast.error_of, evenly=like is None) for fit in forecast.fits]
    return (*lines, *(note_words(note) for note in forecast.notes if fits or note is not like))


def like_words(like: Note | None) -> str:
    """Of what rows a forecast is true."""
    return "forecasts are for rows that fill their bounds evenly" if like is None else note_words(like)


def chance_words(chance: PassChance) -> str:
    """How likely a release is, and when."""
    when = CONDITIONS[chance.condition].format(**{name: _number(value) for name, value in chance.params.items()})
    if chance.condition == "always":
        return when
    often = _PROBABILITY_WORDS.get(chance.probability, f"with probability {chance.probability:.2f}")
    return f"released {often.replace('in ', 'in fewer than ', 1) if chance.below else often} {when}"


def note_words(note: Note) -> str:
    """A note."""
    numbers = {name: _noted(note.code, name, value) for name, value in note.params.items()}
    return NOTES[note.code].format(**numbers)


def per_coefficient(noise: Mapping[str, float], written: Callable[[float], str] = "{:.3g}".format) -> str:
    """The noise of all coefficients: one number where they are alike, a list of a few, or the ends."""
    low, high = min(noise.values()), max(noise.values())
    if not math.isfinite(high):
        return "unbounded"
    if high - low <= 1e-9 * high:
        return written(high)
    if len(noise) <= MAX_NAMED:
        return ", ".join(f"{written(value)} ({name})" for name, value in noise.items())
    return f"{written(low)} to {written(high)}"


def error_words(error_of: ErrorOf, target: str | None = None) -> str:
    """What the error of a forecast is."""
    if error_of is ErrorOf.VARIANCE:
        return "the share of the variance (rows of full length) that a component must exceed to stand out from noise"
    return f"what privacy noise adds to {_ERRORS[error_of]}{f', in units of {target}' if target else ''}"


def noise_adds(error: float, error_of: ErrorOf, target: str | None = None, typical: float | None = None) -> str:
    """The same as a clause, with its number, and that of a typical prediction."""
    if error_of is ErrorOf.VARIANCE:
        return (
            f"a component stands out from noise if it has more than {error:.3g} of the variance (rows of full length)"
        )
    if not math.isfinite(error):
        return f"there is no telling what privacy noise adds to {_ERRORS[error_of]}"
    units = f", in units of {target}" if target else ""
    whose = "its value for a typical row" if error_of is ErrorOf.LINEAR else "a typical prediction"
    moved = "" if typical is None else f"; {whose} moves by about {typical:.3g}"
    return f"privacy noise adds about {error:.3g} to {_ERRORS[error_of]}{units}{moved}"


def advice_text(advice: Advice) -> str:
    """What to ask for, in a few sentences, and the plan behind it."""
    rows = f"{advice.rows:,} rows"
    adds = noise_adds(advice.error, advice.error_of, advice.target, advice.typical)
    wanted = f"you asked for an error of at most {advice.wanted or 0:g}"
    if advice.wanted is None:
        said = [f"With {rows} and epsilon {advice.epsilon:g}, {adds}."]
    elif advice.epsilon is None:
        said = [f"With {rows}, no epsilon up to 10 is enough: at epsilon 10, {adds}; {wanted}."]
        if advice.rows_needed is not None:
            said.append(f"At epsilon 1, about {advice.rows_needed:,} rows would be enough.")
    else:
        said = [f"With {rows}, epsilon {advice.epsilon:g} is enough: {adds}; {wanted}."]
    if advice.epsilon is not None and advice.epsilon > MUCH:
        said.append(f"An epsilon above {MUCH:g} promises little: take more rows, fewer columns, or a larger error.")
    said.append(f"Nothing but public numbers was used: {like_words(advice.like)}. Sampling error comes on top.")
    return "\n".join([*said, "", str(advice.plan)])


def _fit_words(fit: FitForecast, error_of: ErrorOf, *, evenly: bool) -> str:
    which = " that fill their bounds evenly" if evenly else ""
    return (
        f"with {fit.rows:,} rows{which}: noise of about {per_coefficient(fit.noise)} in a "
        f"coefficient; {noise_adds(fit.error, error_of, typical=fit.typical)}"
    )


def _answer(error: float) -> str:
    if not error:
        return "the answer is released as it is"
    return f"the noise moves the answer by less than {error:,.4g} in 19 of 20 cases"


def _scale(noise: StepNoise) -> str:
    if noise.scale is None:
        return ""
    size, unit = f"{noise.scale:.4g}", _UNITS[noise.unit]
    return f"{size}{unit.removesuffix('s') if size == '1' else unit}"


def _noted(code: str, name: str, value: Amount) -> str:
    if name == "condition":
        return CONDITIONS[str(value)]
    if code == "routes-compared" and name in ("chosen", "other"):
        return _ROUTES[str(value)]
    if (code, name) == ("entry-chosen", "unit"):
        return "votes" if value == "votes" else "rows of full size"
    return _number(value, _FORMATS.get((code, name), ".3g"))


def _number(value: Amount, how: str = ".4g") -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}" if value >= _LONG else str(value)
    if isinstance(value, Fraction):
        return printed_up(value)
    return format(value, how)


def _proposed(value: float | Fraction) -> str:
    return printed_up(value) if isinstance(value, Fraction) else f"{value:.6g}"
