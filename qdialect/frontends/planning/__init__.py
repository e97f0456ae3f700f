"""Planning of a whole graph before any op is built, shared by front ends: values, constants, the module of a plan."""
