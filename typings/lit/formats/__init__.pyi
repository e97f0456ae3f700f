"""What of `lit.formats` the project uses."""

from lit.LitConfig import LitConfig
from lit.Test import Result, Test

class ShTest:
    def __init__(self, execute_external: bool = False) -> None: ...
    def execute(self, test: Test, litConfig: LitConfig) -> Result: ...
