"""Element-wise graphs that depend on one integer tensor: their structure, evaluation and thresholds."""
