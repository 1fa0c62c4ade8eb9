"""The REST routes, a module for each part of the API, each with a table of the functions that answer."""
