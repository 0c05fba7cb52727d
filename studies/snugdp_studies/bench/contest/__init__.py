"""One engine for contests between methods: tables, splits, contenders, scores, tables of results, and fit times."""
