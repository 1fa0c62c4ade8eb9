"""The keys that work where you are."""
