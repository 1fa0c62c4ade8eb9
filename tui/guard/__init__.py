"""Watch runs without a screen: what a guard reports and stops, what it remembers, and its loop."""
