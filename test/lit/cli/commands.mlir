// RUN: %python -m qdialect.cli.commands | filecheck %s
// RUN: %python -m qdialect.cli.commands opt %s --cse | filecheck %s --check-prefix=OPT
// RUN: not %python -m qdialect.cli.commands rum 2>&1 | filecheck %s --check-prefix=UNKNOWN
// RUN: %python -m qdialect.cli.commands --completion > %t.sh
// RUN: bash -c 'qdialect-run() { echo "  --json  --jobs N --input"; }; . %t.sh; COMP_WORDS=(qdialect r); COMP_CWORD=1; _qdialect qdialect; echo "${COMPREPLY[@]}"; COMP_WORDS=(qdialect run --j); COMP_CWORD=2; _qdialect qdialect; echo "${COMPREPLY[@]}"' | filecheck %s --check-prefix=COMPLETION
// COMPLETION: run reduce
// COMPLETION-NEXT: {{^}}--jobs --json{{$}}
// CHECK: qdialect run
// CHECK: qdialect opt
// OPT: func.func @f
// UNKNOWN: qdialect: error: unknown command 'rum', did you mean 'run'?
func.func @f() { return }
