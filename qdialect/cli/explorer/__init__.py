"""What `qdialect-explore` shows of a network: data from every phase, and the page that holds them."""
