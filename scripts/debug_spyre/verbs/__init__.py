"""The verbs: thin shells over core and edge, grouped by the noun that they act on."""
