// RUN: %python -m qdialect.cli.commands | filecheck %s
// RUN: %python -m qdialect.cli.commands opt %s --cse | filecheck %s --check-prefix=OPT
// RUN: not %python -m qdialect.cli.commands rum 2>&1 | filecheck %s --check-prefix=UNKNOWN
// CHECK: qdialect run
// CHECK: qdialect opt
// OPT: func.func @f
// UNKNOWN: qdialect: error: unknown command 'rum', did you mean 'run'?
func.func @f() { return }
