"""A table inside a flatbuffer."""

class Table:
    Bytes: bytes | bytearray
    Pos: int
    def __init__(self, buf: bytes | bytearray, pos: int) -> None: ...
