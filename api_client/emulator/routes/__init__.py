"""The REST routes: a module for each part of the API, with a table of the handlers of its routes."""
