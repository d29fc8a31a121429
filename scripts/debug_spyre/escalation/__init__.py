"""The bundle for the torch-spyre team: readiness, issue text, redaction."""
