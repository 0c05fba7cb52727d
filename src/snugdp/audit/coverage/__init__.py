"""Layer C: private bounds fail as rarely as they claim."""
