"""Networks of open extents as one network of their largest, which computes smaller ones behind padding."""
