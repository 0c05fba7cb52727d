"""Engines: one pass over a table, here or on a cluster, with the same result to the last bit."""

from snugdp.tables.engines.base import Engine, engine_for, measure

__all__ = ["Engine", "engine_for", "measure"]
