"""Which checkpoints can be served, alone and together, and with which LoRA rank.

Pure rules, shared by the client and the emulator.
"""
