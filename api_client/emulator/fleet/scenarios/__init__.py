"""The stories of the demo world: trainers' ways of logging, troubles, and the jobs themselves."""
