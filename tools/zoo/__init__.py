"""Networks as users make them, quantized by the tools that users have, and what this compiler does with each."""
