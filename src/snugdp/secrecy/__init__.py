"""Private values: what holds them, what packs them, and how calls about them stay silent."""
