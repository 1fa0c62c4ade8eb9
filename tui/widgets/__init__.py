"""Widgets shared by several screens.

A widget renders the data that a screen passes to it, and requests actions by posting messages.
"""
