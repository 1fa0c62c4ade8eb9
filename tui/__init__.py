"""The terminal cockpit of Baseten Training: screens, feeds, insight and the headless commands."""
