"""All columns of a table at a glance, for one charge."""
