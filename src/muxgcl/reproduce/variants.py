"""Tables III and IV, variants of MUX-GCL: which affinity, which parts."""

from collections.abc import Sequence

from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import PARTS, Scope
from muxgcl.reproduce.numbers import PAIRED
from muxgcl.reproduce.paper import TABLE3, TABLE4, TITLES
from muxgcl.reproduce.records import Found
from muxgcl.reproduce.shown import gap, shown
from muxgcl.reproduce.typeset import Table
from muxgcl.runs.settings import origin

NAMES = {
    "neither": "neither (GRACE's objective)",
    "pae": "PAE only",
    "mpc": "MPC only",
    "full": "PAE + MPC",
    "script": "PAE + MPC by the script's defaults",
    "node2vec": "Node2Vec (p = q = 1)",
    "vgae": "VGAE",
}
WHOSE = {  # by their origin
    "official": "the authors'",
    "mixed": "the authors' in part, the rest ours",
    "ours": "ours",
}
BRACKETS = (
    "In round brackets the paper's figure and the difference; ▼: more than one point short of it."
)
SAME_SEEDS = (
    "A difference takes the seeds that both rows have: where one has more, it is not the "
    "difference of the two means."
)


def table3(found: Found, scope: Scope) -> list[Table]:
    """Where affinities come from."""
    note = (
        f"{_settings_of(scope.columns('table3'))} The paper's Node2Vec row is run as its released "
        f"code does, with p = q = 1, which is DeepWalk. {BRACKETS} {PAIRED} {SAME_SEEDS}"
    )
    title = "Table III. Where affinities come from: test accuracy of MUX-GCL in percent"
    return [_variants(found, scope, "table3", title, [("vgae", "node2vec")], note)]


def table4(found: Found, scope: Scope) -> list[Table]:
    """What each part adds."""
    pairs = [(name, "neither") for name in ("pae", "mpc", "full")]
    pairs += [("full", "pae"), ("full", "mpc"), ("script", "full")]
    title = "Table IV. What each part adds: test accuracy of MUX-GCL in percent"
    note = (
        f"{_settings_of(scope.columns('table4'))} So the first row is GRACE's objective at those. "
        "The script's defaults are not ours: lambda, direction and pooling are the released "
        "script's where nothing else is asked for, with all weight on scale 0, lambda = (1, 0, 0). "
        f"{BRACKETS} {PAIRED} {SAME_SEEDS}"
    )
    return [_variants(found, scope, "table4", title, pairs, note)]


def _variants(
    found: Found, scope: Scope, name: str, title: str, pairs: list[tuple[str, str]], note: str
) -> Table:
    printed = TABLE3 if name == "table3" else {row: TABLE4.get(row, {}) for row in PARTS}
    columns = scope.columns(name)
    body = []
    for variant, claims in printed.items():
        cells, seeds = [], set()
        for dataset in columns:
            seen = shown(found, scope, ("mux-gcl", variant), dataset)
            planned = len(seen.jobs) * scope.splits
            figures = numbers.percent(numbers.summary(seen.records), planned, claims.get(dataset))
            cells.append(figures)
            seeds |= {len(seen.records)} - {0}
        body.append([NAMES[variant] + _counted(seeds), *cells])
    for one, two in pairs:
        cells = [
            gap(found, scope, ("mux-gcl", one), ("mux-gcl", two), dataset) for dataset in columns
        ]
        body.append([f"{NAMES[one]} minus {NAMES[two].split(' (')[0]}", *cells])
    header = ["", *(TITLES.get(dataset, dataset) for dataset in columns)]
    return Table(name, title, header, body, [note])


def _settings_of(columns: Sequence[str]) -> str:
    """Whose settings the rows have."""
    whose: dict[str, list[str]] = {}
    for dataset in columns:
        whose.setdefault(WHOSE[origin("mux-gcl", "paper", dataset)], []).append(
            TITLES.get(dataset, dataset)
        )
    told = "; ".join(
        words if len(whose) == 1 else f"{', '.join(names)}: {words}"
        for words, names in whose.items()
    )
    return f"Settings: those of MUX-GCL in Table I ({told}); what a row changes is ours."


def _counted(seeds: set[int]) -> str:
    """How many seeds the cells of a row have."""
    if not seeds:
        return ""
    low, high = min(seeds), max(seeds)
    return f", {high} seed{'s' * (high > 1)}" if low == high else f", {low} to {high} seeds"
