"""What the page shows, as frozen values: wording, order, cuts, cleaning and masking are decided here, none in a template."""
