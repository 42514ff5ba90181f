"""What the MUX-GCL paper prints: Zhao et al. 2024, <https://arxiv.org/abs/2409.08010>.

Figures stand as printed. `±` is the paper's own deviation, over five seeds where it says so.
"""

from dataclasses import dataclass

LABELS = {
    "raw": "raw features",
    "random-gcn": "untrained GCN",
    "sgc": "propagation (SGC)",
    "node2vec": "node2vec",
    "deepwalk": "DeepWalk",
    "gae": "GAE",
    "vgae": "VGAE",
    "dgi": "DGI",
    "grace": "GRACE",
    "mvgrl": "MVGRL",
    "gca": "GCA",
    "sugrl": "SUGRL",
    "bgrl": "BGRL",
    "gbt": "G-BT",
    "progcl": "ProGCL",
    "costa": "COSTA",
    "sfa": "SFA",
    "homogcl": "HomoGCL",
    "ma-gcl": "MA-GCL",
    "dmon": "DMoN",
    "signa": "SIGNA",
    "cca-ssg": "CCA-SSG",
    "ggd": "GGD",
    "blnn": "BLNN",
    "sgrl": "SGRL",
    "ns4gc": "NS4GC",
    "mux-gcl": "MUX-GCL",
    "mux-hop": "MUX-GCL over hops",
}
TITLES = {
    "cora": "Cora",
    "citeseer": "CiteSeer",
    "pubmed": "PubMed",
    "photo": "Photo",
    "computers": "Computers",
}


@dataclass(frozen=True, slots=True)
class Printed:
    """One entry of a table: what it reads, and its mean."""

    text: str

    @property
    def mean(self) -> float:
        """The figure before the deviation."""
        return float(self.text.split("±")[0].rstrip("s"))

    @property
    def plain(self) -> str:
        """The figure alone, as printed."""
        return self.text.split("±")[0]


Entries = dict[str, dict[str, Printed]]


def _entries(columns: str, rows: str) -> Entries:
    """Row name -> column -> entry; `-` is one that the paper leaves out."""
    names = columns.split()
    found: Entries = {}
    for line in rows.strip().splitlines():
        row, *cells = line.split()
        pairs = zip(names, cells, strict=True)
        found[row] = {name: Printed(cell) for name, cell in pairs if cell != "-"}
    return found


TABLE1 = _entries(  # accuracy in percent
    "cora citeseer pubmed photo computers",
    """
    raw       64.8±0.1  64.6±0.1  84.8±0.0  78.5±0.0  73.8±0.0
    node2vec  74.8±0.0  52.3±0.1  80.3±0.1  89.7±0.1  84.4±0.1
    deepwalk  75.7±0.1  50.5±0.1  80.5±0.2  89.4±0.1  85.7±0.1
    gae       76.9±0.0  60.6±0.2  82.9±0.1  91.6±0.1  85.3±0.2
    vgae      78.9±0.1  61.2±0.0  83.0±0.1  92.2±0.1  86.4±0.2
    dgi       82.6±0.4  68.8±0.7  86.0±0.1  91.6±0.2  84.0±0.5
    grace     83.3±0.4  72.1±0.5  86.3±0.1  92.5±0.2  87.8±0.2
    mvgrl     83.8±0.3  73.1±0.5  86.3±0.2  91.7±0.1  87.5±0.1
    gca       82.8±0.3  71.5±0.3  86.0±0.2  92.2±0.2  87.5±0.5
    sugrl     83.4±0.5  73.0±0.4  84.9±0.3  93.2±0.4  88.8±0.2
    bgrl      83.7±0.5  73.0±0.1  84.6±0.3  91.5±0.4  87.3±0.4
    gbt       83.6±0.4  72.9±0.1  84.5±0.1  92.6±0.5  86.8±0.3
    progcl    84.2±0.5  72.2±0.2  86.4±0.2  93.2±0.1  88.7±0.1
    costa     84.3±0.2  72.9±0.3  86.0±0.2  92.6±0.5  88.3±0.1
    sfa       84.1±0.1  73.7±0.2  85.6±0.1  92.8±0.1  88.1±0.1
    homogcl   84.9±0.2  71.7±0.3  85.8±0.1  93.0±0.2  89.0±0.1
    ma-gcl    83.9±0.1  72.1±0.4  85.6±0.4  93.4±0.1  89.0±0.1
    mux-gcl   85.5±0.3  73.8±0.2  86.9±0.2  93.9±0.1  90.7±0.1
    """,
)

TABLE2 = _entries(  # k-means against the classes
    "photo/nmi photo/ari computers/nmi computers/ari",
    """
    gae       0.616±0.01  0.494±0.01  0.441±0.00  0.258±0.00
    vgae      0.530±0.04  0.373±0.04  0.423±0.00  0.238±0.00
    dgi       0.376±0.03  0.264±0.03  0.318±0.02  0.165±0.02
    mvgrl     0.344±0.04  0.239±0.04  0.244±0.00  0.141±0.00
    bgrl      0.668±0.03  0.547±0.04  0.484±0.00  0.295±0.00
    gca       0.614±0.00  0.494±0.00  0.426±0.00  0.246±0.00
    dmon      0.633±0.00  -           0.493±0.00  -
    homogcl   0.671±0.02  0.587±0.02  0.534±0.00  0.396±0.00
    mux-gcl   0.712±0.01  0.609±0.01  0.552±0.00  0.388±0.01
    """,
)

TABLE3 = _entries(  # accuracy in percent, by where affinities come from
    "cora pubmed photo",
    """
    node2vec  85.33±0.37  86.94±0.24  93.73±0.04
    vgae      85.43±0.21  86.63±0.15  93.89±0.10
    """,
)

TABLE4 = _entries(  # accuracy in percent, by which parts are there
    "cora citeseer photo",
    """
    neither   83.3±0.4  72.1±0.5  92.5±0.2
    pae       85.1±0.3  73.3±0.2  93.34±0.09
    mpc       84.8±0.4  73.4±0.2  93.8±0.1
    full      85.4±0.2  73.8±0.2  93.9±0.1
    """,
)

TABLE5 = _entries(  # time of one epoch on an RTX 3090 Ti
    "cora citeseer photo computers",
    """
    grace     0.20s  0.02s  0.05s  0.12s
    progcl    0.04s  0.05s  0.17s  0.49s
    homogcl   1.09s  0.48s  0.50s  1.32s
    ma-gcl    0.19s  0.02s  0.04s  0.08s
    mux-gcl   0.04s  0.05s  0.16s  0.42s
    """,
)
