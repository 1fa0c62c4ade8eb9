"""The REST routes, a module for each part of the API; every module lists its routes."""
