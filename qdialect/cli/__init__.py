"""The commands: qdialect-opt, qdialect-import and qdialect-run."""
