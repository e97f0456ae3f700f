"""How contractions are cut for a target: register and matrix tiles, their cost model, and variants to measure."""
