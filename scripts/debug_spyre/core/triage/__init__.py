"""From the text of a run to clusters with a likely cause: readers, rules, signatures, grouping, words. All of it is pure."""
