"""What the user can do in the dashboard (actions), and the keys for it."""
