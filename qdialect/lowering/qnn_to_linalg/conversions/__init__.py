"""From a `qnn` op to kernel calls: one conversion for each op.

A module is imported when a network has one of its ops; ``make docs`` notes which they are."""
