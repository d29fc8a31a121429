"""Words that every room uses: errors, statuses, evidence, times, and text made safe to show. Pure."""
