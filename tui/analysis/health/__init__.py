"""What is wrong with a run, each finding with why, since when and on which node; none for a healthy one.

One module a kind of trouble. Pure: the same snapshot, rules and earlier findings give the same answer.
"""
