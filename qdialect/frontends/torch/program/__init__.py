"""PyTorch programs in memory: read from exports and from Dynamo, functionalized, and with their constants folded."""
