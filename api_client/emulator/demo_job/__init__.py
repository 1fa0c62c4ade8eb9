"""A small real distributed training: handwritten digits, a multilayer perceptron, averaged gradients.

It runs as ``python <this folder>`` with the standard library alone, as one process a node. Its modules
import each other relatively, as they are loaded without the packages around them.
"""
