"""Functions of other libraries that a compiled network calls: what each is told of the ops that it computes."""
