"""What every release speaks of: neighbours, units, budgets, costs and outcomes."""
