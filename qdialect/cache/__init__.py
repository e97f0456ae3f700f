"""The cache of compiled code in the user's cache folder: networks, kernels, and which network a model file gives.

Nothing here imports MLIR until something must be compiled: a network that is found is loaded without it.
"""
