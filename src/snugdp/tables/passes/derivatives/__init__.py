"""Passes that sum the derivatives of losses over rows."""
