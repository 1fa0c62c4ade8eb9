"""The headless twins of the screens. Nothing here imports textual at module level."""
