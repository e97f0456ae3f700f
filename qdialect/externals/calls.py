"""The words at the start of the working memory by which external functions are called, 64 bits each."""

WORD_BYTES = 8

STATUS = 0
"""What the first function that failed has returned; 0 where all went well."""

NUMBER = 1
"""The number of the function that was called last, which is the one that failed."""

FIRST_ADDRESS = 2
"""Where the addresses of inputs begin; those of outputs follow."""
