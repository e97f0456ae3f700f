"""From a `qnn` op to kernel calls: one conversion for each op.

The first network that is lowered imports all modules; a new file is found by being here."""
