"""Linear regression from noisy statistics, ridge solutions and posterior samples."""
