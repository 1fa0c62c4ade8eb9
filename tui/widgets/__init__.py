"""Widgets shared by several screens.

They render the data they are given and request actions by posting messages.
"""
