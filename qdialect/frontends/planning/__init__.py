"""What front ends share that plan a whole graph before they build any op: values, constants, the module of a plan."""
