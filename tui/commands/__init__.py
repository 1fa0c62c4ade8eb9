"""Headless counterparts of the screens. Nothing here imports textual at module level."""
