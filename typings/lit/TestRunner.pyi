"""What of `lit.TestRunner` the project uses."""

subprocess: object
