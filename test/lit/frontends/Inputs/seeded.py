"""Write the seeded network of 32x32 images to the path given."""

import sys

from seeded_mobilenet import write_mobilenet

write_mobilenet(sys.argv[1], seed=0, size=32)
