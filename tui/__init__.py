"""Terminal dashboard for Baseten Training: screens, feeds, analysis and the headless commands."""
