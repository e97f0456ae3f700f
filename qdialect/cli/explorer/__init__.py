"""The content of `qdialect-explore` for a network: data from every phase, and the page that holds them."""
