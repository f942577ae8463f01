"""A learner in PyTorch for the built-in family: python3 -m atoll.torch.

This file does not load PyTorch, so that __main__ can say how to install it.
"""
