"""What a hand-over to the torch-spyre team needs: one redaction for all files, the issue's text, the conditions."""
