"""Compiling does not import the named ops of linalg as Python functions, and leaves them to those who do."""

import subprocess
import sys

PROGRAM = """
import sys
import qdialect
qdialect.compile(qdialect.parse('''
func.func @main(%x: tensor<1x64xi8>) -> tensor<1x64xi8> {
  %0 = "qnn.clip"(%x) {min = 0 : i64, max = 100 : i64} : (tensor<1x64xi8>) -> tensor<1x64xi8>
  return %0 : tensor<1x64xi8>
}'''), cache=False)
assert not [name for name in sys.modules if name.endswith(("dialects.linalg", "core_named_ops"))]
from importlib import import_module
linalg = import_module(qdialect.ir._mlir.ir.__name__.rpartition(".")[0] + ".dialects.linalg")
print(callable(linalg.matmul), linalg.FillOp.OPERATION_NAME)
"""


def test_compiling_imports_the_generated_classes_alone() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.stderr) == ("True linalg.fill\n", "")
