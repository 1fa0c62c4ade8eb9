"""Scenarios of the demo world: trainers' log styles, failures, and the jobs themselves."""
