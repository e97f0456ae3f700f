"""Tests on emulated CPUs take minutes: `make check-emulated` runs them, `make test` does not."""

import os

collect_ignore_glob = [] if os.environ.get("QDIALECT_EMULATED") else ["test_*.py"]
