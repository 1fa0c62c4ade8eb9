"""The actions of the dashboard, and the keys for them."""
