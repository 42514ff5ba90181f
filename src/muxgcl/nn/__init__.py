"""Networks: what turns a view of a graph into tables of nodes, and what is read out of them."""
