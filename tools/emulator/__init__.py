"""An emulator of x86 CPUs, Bochs, that executes compiled kernels without an operating system.

`install` fetches it, `rom` makes what it boots, `machine` calls a function of an object file in it.  It shows that code
computes the right bits on a CPU that is not at hand, and that it uses no instruction which that CPU lacks; it says
nothing of speed.
"""
