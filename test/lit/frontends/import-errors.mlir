// Errors are one line or a list of notes, end with status 1, and leave no file behind.
// RUN: not %qimport nowhere.tflite 2>&1 | filecheck %s --check-prefix=ABSENT
// RUN: not %qimport nowhere.txt -o %t.mlir 2>&1 | filecheck %s --check-prefix=FORMAT
// RUN: cp %s %t.plain.tflite
// RUN: not %qimport %t.plain.tflite -o %t.mlir 2>&1 | filecheck %s --check-prefix=NOMODEL
// RUN: not ls %t.mlir
// RUN: %python %S/Inputs/seeded.py %t.tflite
// RUN: head -c 4000 %t.tflite > %t.short.tflite
// RUN: not %qimport %t.short.tflite -o %t.mlir 2>&1 | filecheck %s --check-prefix=SHORT
// RUN: not %qimport %t.tflite -o %t.tflite/x.mlir 2>&1 | filecheck %s --check-prefix=OUTPUT
// RUN: not %qimport 2>&1 | filecheck %s --check-prefix=USAGE
// RUN: %qimport --help | filecheck %s --check-prefix=HELP
// RUN: %qimport --list-operators | filecheck %s --check-prefix=LIST

// ABSENT: error: cannot read 'nowhere.tflite': No such file or directory
// FORMAT: error: 'nowhere.txt' must be a model of kind .mlir, .tflite, .onnx or .pt2, but got '.txt'
// NOMODEL: error: '{{.*}}.plain.tflite': file is no .tflite model: it must have the identifier 'TFL3'
// SHORT: error: '{{.*}}.short.tflite': file is damaged
// OUTPUT: error: --output must be in a folder that is there, but got '{{.*}}x.mlir'
// USAGE: qdialect-import: error: the following arguments are required: model
// HELP: qdialect-import model.tflite -o model.mlir
// LIST: operators of .tflite files:
// LIST-NEXT: ABS, ADD
