"""The REST routes, a module for each part of the API; every module has its ``ROUTES``."""
