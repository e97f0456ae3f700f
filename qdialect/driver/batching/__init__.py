"""Networks of any batch: a proof that a network computes each entry of a batch alone, and the network of other ones."""
