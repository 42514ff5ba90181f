"""One's own graph: an edge list with names in a CSV file, features and a label in another."""

import csv
import random
import tempfile
from pathlib import Path

import numpy as np

from muxgcl import MuxGCL, load

PEOPLE = 200
TEAMS = ("design", "sales", "tools")


def write_files(folder: Path) -> tuple[Path, Path]:
    """A company: people mostly talk within their team; age, city and team of everyone."""
    chance = random.Random(0)
    names = [f"person-{i:03d}" for i in range(PEOPLE)]
    team = {name: TEAMS[i % len(TEAMS)] for i, name in enumerate(names)}
    edges, nodes = folder / "edges.csv", folder / "people.csv"
    with edges.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["from", "to"])
        for name in names:
            mates = [other for other in names if team[other] == team[name] and other != name]
            writer.writerows([name, other] for other in chance.sample(mates, 3))
            writer.writerow([name, chance.choice([other for other in names if other != name])])
    with nodes.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "age", "city", "team"])
        for name in names:
            age = chance.randint(20, 40) + 10 * TEAMS.index(team[name])
            writer.writerow([name, age, chance.choice(["Oslo", "Rome"]), team[name]])
    return edges, nodes


with tempfile.TemporaryDirectory() as folder:
    edges, people = write_files(Path(folder))
    loaded = load(edges, features=people, label_column="team")  # the label is never a feature
for note in loaded.notes:
    print("-", note)

z = MuxGCL(epochs=30, params={"width": 32}, random_state=0).fit_transform(loaded.data)
z = z / np.linalg.norm(z, axis=1, keepdims=True)
similarity = z @ z[0]
similarity[0] = -1  # not itself
nearest = np.argsort(-similarity)[:5]
label = loaded.data.y.numpy()
print(f"most like {loaded.ids[0]} ({loaded.label_names[label[0]]}):")
for i in nearest:
    print(f"  {loaded.ids[i]} ({loaded.label_names[label[i]]}), cosine {similarity[i]:.2f}")
