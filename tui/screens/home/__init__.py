"""Projects beside jobs: where the day begins."""
