"""From any table to exact numbers."""
