"""From the files of other frameworks to `qnn` modules."""
