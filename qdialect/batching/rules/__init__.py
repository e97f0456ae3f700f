"""Where the batch of a result is: a rule for each op, one family a file. An op without one is refused."""
