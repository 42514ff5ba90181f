"""Tables I and II, classification and clustering: ours beside the paper's."""

from collections.abc import Sequence

from muxgcl.evaluate import Summary, summarise
from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import CHIEF, CLUSTERED, CONTROLS, Scope
from muxgcl.reproduce.job import REPEATS
from muxgcl.reproduce.numbers import DASH, PAIRED
from muxgcl.reproduce.paper import LABELS, TABLE1, TABLE2, TITLES
from muxgcl.reproduce.records import Found
from muxgcl.reproduce.shift import protocol_shift
from muxgcl.reproduce.shown import by_settings, collapsed, gap, mark, marks_told, shown
from muxgcl.reproduce.typeset import Table
from muxgcl.runs.settings import origin


def table1(found: Found, scope: Scope) -> list[Table]:
    """Node classification; what MUX-GCL adds to GRACE; what choosing the epoch on test adds."""
    columns = scope.columns("table1")

    def cell(method: str, dataset: str) -> str:
        seen = shown(found, scope, (method, "full"), dataset)
        figures = numbers.percent(
            numbers.summary(seen.records),
            len(seen.jobs) * scope.splits,
            TABLE1.get(method, {}).get(dataset),
        )
        origin = "" if method in CONTROLS else mark(method, "paper", dataset)
        return figures + origin

    body = [
        [LABELS[method], *(cell(method, dataset) for dataset in columns)]
        for method in scope.rows("table1")
    ]
    main = Table(
        "table1",
        "Table I. Node classification: test accuracy in percent",
        ["method", *(TITLES.get(name, name) for name in columns)],
        body,
        [
            f"Ours ± standard deviation over {scope.told_seeds} by {scope.splits} "
            f"{numbers.SPLITS[scope.protocol]} (in brackets the "
            "paper's figure and the difference; ▼: more than one point short of it). The first "
            f"three rows are controls: nothing in them is trained. {DASH}: not run. "
            f"Settings (preset `paper`): {marks_told(scope.rows('table1'))}.",
            *collapsed(found, scope, scope.rows("table1"), columns),
            *_elsewhere(found, scope),
        ],
    )
    shift = protocol_shift(found, scope)
    others = [_mux_minus_grace(found, scope), _selection(found, scope)]
    return [main, *others, shift] if shift.rows else [main, *others]


def _mux_minus_grace(found: Found, scope: Scope) -> Table:
    columns = scope.columns("table1")
    mux, grace = ((method, "full") for method in CHIEF)
    cells = [gap(found, scope, mux, grace, dataset) for dataset in columns]
    claimed = [
        numbers.signed(TABLE1["mux-gcl"][name].mean - TABLE1["grace"][name].mean, 1)
        if name in TABLE1["grace"]
        else DASH
        for name in columns
    ]
    return Table(
        "table1-difference",
        "MUX-GCL minus GRACE, each at its own settings (points of accuracy)",
        ["", *(TITLES.get(name, name) for name in columns)],
        [["ours", *cells], ["paper", *claimed]],
        [PAIRED, _on_settings(found, scope)],
    )


def _on_settings(found: Found, scope: Scope) -> str:
    """Whose settings the two have, and what is left of the difference at equal ones."""
    columns = scope.columns("table1")
    unpublished = [TITLES.get(d, d) for d in columns if origin("grace", "paper", d) == "ours"]
    equal, unequal = [], []
    for dataset in columns:
        full, neither = (("mux-gcl", variant) for variant in ("full", "neither"))
        title = TITLES.get(dataset, dataset)
        if (cell := gap(found, scope, full, neither, dataset)) == DASH:
            unequal.append(title)
        else:
            equal.append(f"{title} {cell}")
    words = ["MUX-GCL's lambda, pooling and walks are ours."]
    if unpublished:
        words = [
            "MUX-GCL's lambda, pooling and walks are ours; nobody publishes settings of GRACE for "
            f"{' and '.join(unpublished)}."
        ]
    if equal:
        words.append(f"At MUX-GCL's settings for both (Table IV): {', '.join(equal)}.")
    if unequal:
        words.append(f"Equal settings were not run on {' and '.join(unequal)}.")
    return " ".join([*words, *by_settings(found, scope)])


def _selection(found: Found, scope: Scope) -> Table:
    body = []
    for dataset in scope.columns("table1"):
        for method in CHIEF:
            records = found.of(scope.scored(method, dataset, protocol="paper"))
            if not records:
                continue
            seen = [numbers.chosen_on_test(record) for record in records]
            best = summarise([result.accuracy.mean for result in seen])
            fair = summarise([result.unselected.mean for result in seen])
            worth = summarise([r.accuracy.mean - r.unselected.mean for r in seen])
            printed = TABLE1[method].get(dataset)
            body.append(
                [
                    f"{LABELS[method]}, {TITLES.get(dataset, dataset)}",
                    f"{fair.mean:.2f}{_spread(fair)}",
                    f"{best.mean:.2f}{_spread(best)}",
                    f"{numbers.signed(worth.mean)}{_spread(worth)}",
                    printed.plain if printed else DASH,
                ]
            )
    return Table(
        "table1-selection",
        "What choosing the epoch on test nodes is worth (the released script's protocol)",
        ["", "all epochs", "best epoch on test (optimistic)", "worth", "paper"],
        body or [[DASH] * 5],
        [
            "Three fresh splits at each of the last 100 epochs; mean over seeds ± standard "
            "deviation over seeds. The second column reports the epoch with the best mean on test "
            "nodes, the first all of them: the difference is not learned, it is chosen."
        ],
    )


def table2(found: Found, scope: Scope) -> list[Table]:
    """Node clustering."""
    columns = [
        (dataset, measure) for dataset in scope.columns("table2") for measure in ("nmi", "ari")
    ]
    shown = [(d, m) for d, m in columns if d in CLUSTERED] or columns
    tables = [_clustering(found, scope, "table2", shown, scope.rows("table2"))]
    if others := [column for column in columns if column not in shown]:
        tables.append(_clustering(found, scope, "table2-others", others, CHIEF))
    return tables


def _clustering(
    found: Found,
    scope: Scope,
    name: str,
    columns: list[tuple[str, str]],
    methods: Sequence[str],
) -> Table:
    body = []
    graphs = list(dict.fromkeys(dataset for dataset, _ in columns))
    for method in methods:
        cell = {d: shown(found, scope, (method, "full"), d) for d in graphs}
        for own in ("", "own_"):
            seen = [numbers.summary(cell[d].records, f"{own}{measure}") for d, measure in columns]
            if own and not any(seen):
                continue  # only a method with clusters of its own has a second row
            cells = [
                numbers.share(
                    summary,
                    len(cell[d].jobs) * (1 if own else REPEATS),
                    TABLE2.get(method, {}).get(f"{d}/{measure}"),
                )
                + ("" if method in CONTROLS else mark(method, "paper", d))
                for (d, measure), summary in zip(columns, seen, strict=True)
            ]
            body.append([LABELS[method] + (", its own clusters" if own else ""), *cells])
    beyond = "" if name == "table2" else ", on the datasets that the paper leaves out"
    return Table(
        name,
        f"Table II. Node clustering: k-means against the classes{beyond}",
        ["method", *(f"{TITLES.get(d, d)} {m.upper()}" for d, m in columns)],
        body,
        [
            f"Ours ± standard deviation over {scope.told_seeds} by {REPEATS} runs of k-means "
            "(in brackets the paper's figure and the difference); a method's own clusters, the "
            "largest of its assignments, come once a seed. k-means is "
            "scikit-learn's, the tightest of ten starts."
            + (" Compared are the nodes of the report half." if scope.protocol == "holdout" else "")
            + f" Settings (preset `paper`): {marks_told(methods)}.",
            *collapsed(found, scope, methods, graphs),
        ],
    )


def _elsewhere(found: Found, scope: Scope) -> list[str]:
    """Which figures come from another device than MUX-GCL's."""
    columns = scope.columns("table1")
    where = {
        (method, dataset): {
            record["device"] for record in shown(found, scope, (method, "full"), dataset).records
        }
        for method in scope.rows("table1")
        if method not in CONTROLS
        for dataset in columns
    }
    home = set().union(*(where.get(("mux-gcl", dataset), set()) for dataset in columns))
    away = {key: devices - home for key, devices in where.items() if devices - home}
    if not home or not away:
        return []
    devices = ", ".join(sorted(set().union(*away.values())))
    rows = [
        f"{LABELS[method]} ({', '.join(TITLES.get(d, d) for m, d in away if m == method)})"
        for method in dict.fromkeys(method for method, _ in away)
    ]
    return [f"Trained on {devices}, not on {', '.join(sorted(home))}: {'; '.join(rows)}."]


def _spread(found: Summary) -> str:
    """One seed has no spread, and says so."""
    return f" ± {found.std:.2f}" if found.n > 1 else " (1 seed)"
