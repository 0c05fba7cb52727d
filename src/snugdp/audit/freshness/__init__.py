"""Layer I: noise is new at every draw."""
