"""The paper's tables, figures and proposition from records: ours beside the paper's figures."""
