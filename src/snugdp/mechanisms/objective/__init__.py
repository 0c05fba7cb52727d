"""Objective perturbation: linear models, GLMs and softmax."""
