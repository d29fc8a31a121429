"""From the text of a run to clusters with a likely cause: readers, rules, signatures, grouping; opening a session on one."""
