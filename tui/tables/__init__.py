"""Tables that the dashboard and the commands show: their columns, once."""
