"""The REST routes, a module for each part of the API; every module has a table of who answers which route."""
