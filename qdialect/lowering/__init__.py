"""qnn -> linalg -> vector -> x86 -> llvm: lowers a network to machine code, one folder per step.

qnn_to_linalg        conversions of ops and stages to kernels of `linalg` ops
linalg_to_vector     tiles and vectorizes micro-kernels
vector_to_x86        rewrites vector code with a target's instructions
threads              divides kernels among threads
x86_to_llvm          lowers to the LLVM dialect
pipeline             runs the steps
cost                 register tiles and loop orders for a target
instructions         the instructions of targets, and their portable forms
ir                   queries on IR that several steps share: effects, views, loops, addresses
"""
