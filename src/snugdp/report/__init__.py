"""Reports as one page of HTML: no script, nothing loaded from elsewhere."""
