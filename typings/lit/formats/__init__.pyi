"""What of `lit.formats` the project uses."""

class ShTest:
    def __init__(self, execute_external: bool = False) -> None: ...
