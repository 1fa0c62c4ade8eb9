"""Terminal dashboard for Baseten Training: screens, feeds, insight and the headless commands."""
