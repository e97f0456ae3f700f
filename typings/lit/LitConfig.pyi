"""What of `lit.LitConfig` the project uses."""

from typing import NoReturn

class LitConfig:
    def note(self, message: str) -> None: ...
    def fatal(self, message: str) -> NoReturn: ...
