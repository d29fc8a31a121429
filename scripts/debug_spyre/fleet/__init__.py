"""Sets of independent runs over the cards of a host, over hosts, and over revisions."""
