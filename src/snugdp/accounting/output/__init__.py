"""What output perturbation and posterior samples cost."""
