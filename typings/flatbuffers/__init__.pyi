"""What of the `flatbuffers` package the project uses."""

from flatbuffers.builder import Builder as Builder
from flatbuffers.table import Table as Table
