"""How wide a tile of element-wise code is."""

TILE_LANES = 16
"""Numbers along the innermost axis that a tile computes together, as 32 bits each, where nothing else asks for a width.

That is one vector of 512 bits, two of 256 or four of 128: enough that operations on one vector go on while those on
another wait for a result, and few enough that what lies between two operations stays in registers.  On a Zen 4, sums
and products of quantized bytes take 0.93 to 1.12 times as long with 8, and 0.95 to 1.09 times with 32, by vectors of
128, 256 and 512 bits.
"""
