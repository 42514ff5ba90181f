"""Node embeddings by multiplex graph contrastive learning with soft negatives."""
