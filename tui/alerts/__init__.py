"""Telling people who look elsewhere: what is news, in which words, and by which ways it reaches them."""
