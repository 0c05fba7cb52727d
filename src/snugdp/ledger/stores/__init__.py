"""Where records lie: files of SQLite, and PostgreSQL."""
