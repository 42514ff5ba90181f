"""From a graph to embeddings, and what a simple classifier can read off them, in ten lines."""

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from muxgcl import MuxGCL
from muxgcl.io import planted

graph = planted(nodes=600, classes=4, features=64, seed=1)  # a PyG `Data`: x, edge_index, y
z = MuxGCL(epochs=30, params={"width": 64}, random_state=0).fit_transform(graph)  # no labels used

labels = graph.y.numpy()
for name, table in (("raw features", graph.x.numpy()), ("embeddings", z)):
    fit_x, test_x, fit_y, test_y = train_test_split(table, labels, train_size=0.1, random_state=0)
    right = LogisticRegression(max_iter=1000).fit(fit_x, fit_y).score(test_x, test_y)
    print(f"{name}: {table.shape[1]} numbers a node, {right:.0%} of test nodes right")
