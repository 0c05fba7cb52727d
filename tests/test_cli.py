"""The command line: the demonstration spends its budget, the version is the package's."""

from __future__ import annotations

import importlib.metadata

from typer.testing import CliRunner

import snugdp
from snugdp.cli.main import app


def test_demo_ends_with_the_budget_spent() -> None:
    result = CliRunner().invoke(app, ["demo"])
    assert result.exit_code == 0, result.output
    assert "Spent: epsilon 2 of 2, delta 8e-07 of 1e-06." in result.output
    assert "Bounds on the incomes" in result.output
    assert "Plan: median" in result.output
    assert "refused" in result.output


def test_version() -> None:
    assert CliRunner().invoke(app, ["--version"]).output.strip() == snugdp.__version__
    assert importlib.metadata.version("snugdp") == snugdp.__version__


def test_bench_noise_prints_ratios() -> None:
    result = CliRunner().invoke(app, ["bench", "noise", "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "OpenDP" in result.output


def test_bench_queries_prints_ratios() -> None:
    result = CliRunner().invoke(app, ["bench", "queries", "--rows", "2000", "--repeats", "1"])
    assert result.exit_code == 0, result.output
    assert "trimmed mean" in result.output


def test_help_lists_the_commands() -> None:
    output = CliRunner().invoke(app, ["--help"]).output
    assert "demo" in output
    assert "bench" in output
