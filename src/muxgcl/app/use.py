"""What a finished run is worth: evaluate, predict links, cluster."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from muxgcl.app.folder_graph import kept_nodes, save_labels
from muxgcl.app.graph_facts import check_made
from muxgcl.app.judge import controls_stage, same_labels, save_confusion
from muxgcl.app.observer import Observer
from muxgcl.app.options import Folder, LoadOptions
from muxgcl.app.source import flag_of, graph_of_run, relabelled
from muxgcl.errors import UserError
from muxgcl.evaluate import Verdict, assign, verdict
from muxgcl.io.save import TABLES, check_format, save_table
from muxgcl.runs.fit import reporting_interrupts
from muxgcl.runs.folder import Run
from muxgcl.runs.held_out import held_out_links
from muxgcl.runs.plan import Plan
from muxgcl.runs.scoring import (
    MOST_SPLITS,
    Judging,
    Protocol,
    check_scoring,
    cluster_scores,
    labels_of,
    score,
    summaries,
)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluated:
    """Scores that were added to a run, and their verdict."""

    run: Path
    method: str
    scores: dict[str, Any]
    verdict: Verdict | None = None
    path: Path | None = None  # of a file that was asked for

    def to_dict(self) -> dict[str, Any]:
        """For JSON: summaries, without single splits."""
        judged = {} if self.verdict is None else {"verdict": self.verdict.to_dict()}
        return {"run": str(self.run), "scores": summaries(self.scores), **judged}


def evaluate_run(
    run: Folder,
    graph: Any = None,
    *,
    load: LoadOptions | None = None,
    protocols: tuple[Protocol, ...] | None = None,
    splits: int = 20,
    split_seed: int = 0,
    controls: bool = True,
    observer: Observer | None = None,
) -> Evaluated:
    """Classify a run's nodes by a linear probe, beside what needs no training.

    Args:
        run: a run folder; its scores are added to it.
        graph: the run's graph, where the folder does not keep it and its files are gone; without
            controls it is not needed.
        load: `labels` (with `label_column`, `id_column`) gives labels that the run did not have;
            scores of other labels are dropped. Else columns and files of the graph.
        protocols: "holdout" (the default) or "public".
        splits: how many random splits "holdout" takes.
        split_seed: of the splits.
        controls: whether to score what needs no training.
        observer: called at every event; none by default.

    Example:
        >>> found = evaluate_run("runs/mine", splits=3, controls=False)
        >>> found.scores["holdout"]["accuracy"]["n"]
        3
    """
    trained, load, observer = Run(Path(run)), load or LoadOptions(), observer or Observer()
    plan = Plan.from_tables(trained.config())
    asked = protocols or ("holdout",)
    if "paper" in asked:
        raise UserError("protocol paper looks at epochs of training: ask for it in `muxgcl run`")
    if graph is None and load.labels is None and (extra := list(load.given())):
        flag = flag_of(extra[0])
        raise UserError(f"{flag} is of a graph or of --labels, and neither is given")
    observer.phase("loading")
    ids, z = trained.embeddings()
    tensors = None
    if controls or graph is not None or "public" in asked:
        loaded, tensors = graph_of_run(trained, graph, load)
        if not np.array_equal(ids, loaded.ids):
            raise UserError(f"the embeddings in {trained.path} are not of the graph that it names")
    else:
        loaded = kept_nodes(trained, ids)
        loaded = loaded if load.labels is None else relabelled(loaded, load)
    for note in [*loaded.notes, *check_scoring(loaded.tensors, asked, splits)]:
        observer.note(note)
    with trained.locked():
        observer.phase("scoring")
        with reporting_interrupts("scoring", resumable=False):
            scores, confusion = score(
                z, loaded.tensors, asked, splits=splits, split_seed=split_seed, clusterings=0
            )
        changed = not same_labels(trained.labels(), labels_of(loaded.tensors))
        trained.save_scores(scores, other_labels=changed)
        if changed:
            save_labels(trained, loaded)
        if changed or "confusion" not in trained.diagnostics():
            save_confusion(trained, confusion)
        if controls and tensors is not None:
            how = Judging(loaded.tensors, asked, splits, split_seed)
            scores |= controls_stage(trained, plan, tensors, how, observer, clusters=False)
        judged = verdict(plan.method, scores, asdict(plan.settings))
    observer.scores(plan.method, scores, judged)
    return Evaluated(trained.path, plan.method, scores, judged)


def predict_links(
    run: Folder,
    graph: Any = None,
    *,
    load: LoadOptions | None = None,
    repeats: int = 3,
    seed: int = 0,
    observer: Observer | None = None,
) -> Evaluated:
    """Hide a tenth of the edges, train the run's settings anew, rank hidden edges above non-edges.

    Args:
        run: a run folder; its scores are added to it.
        graph: the run's graph, where the folder does not keep it and its files are gone.
        load: columns and files of that graph.
        repeats: how often to hide other edges and train again.
        seed: of the first hiding.
        observer: called at every event; none by default.

    Example:
        >>> found = predict_links("runs/mine", repeats=2)
        >>> sorted(found.scores["link"])
        ['ap', 'auc', 'hidden', 'retrained']
    """
    trained, observer = Run(Path(run)), observer or Observer()
    plan = Plan.from_tables(trained.config())
    observer.phase("loading")
    check_made(trained)
    loaded, _ = graph_of_run(trained, graph, load)
    often = "once" if repeats == 1 else f"{repeats} times, each time"
    observer.note(
        f"the run's embeddings have seen every edge: {plan.method} is trained anew, {often} "
        "without a tenth of them"
    )
    observer.phase("training")
    with reporting_interrupts("training", resumable=False):
        found = held_out_links(
            plan,
            loaded,
            repeats=repeats,
            seed=seed,
            on_block=lambda block: observer.epochs(block, plan.train.epochs),
        )
    scores = {"link": found}
    with trained.locked():
        trained.save_scores(scores)
    observer.scores(plan.method, scores, None)
    return Evaluated(trained.path, plan.method, scores)


def cluster_run(
    run: Folder,
    *,
    clusters: int | None = None,
    repeats: int = 5,
    seed: int = 0,
    out: Folder | None = None,
    observer: Observer | None = None,
) -> Evaluated:
    """Cluster a run's embeddings by k-means; with labels, score the clusters.

    Args:
        run: a run folder; scores are added to it where there are as many clusters as classes.
        clusters: how many; as many as classes by default.
        repeats: independent runs of k-means.
        seed: of the first one, whose clusters are written.
        out: the file of clusters; clusters.csv in the run folder by default.
        observer: called at every event; none by default.

    Example:
        >>> found = cluster_run("runs/mine", repeats=2)
        >>> print(found.path)
        runs/mine/clusters.csv
        >>> sorted(found.scores["clustering"])
        ['ari', 'clusters', 'nmi']
    """
    trained, observer = Run(Path(run)), observer or Observer()
    method = str(trained.config()["run"].get("method"))
    ids, z = trained.embeddings()
    y = trained.labels()
    if not 1 <= repeats <= MOST_SPLITS:
        raise UserError(f"repeats must be from 1 to {MOST_SPLITS:,}, got {repeats:,}")
    classes = 0 if y is None else len(np.unique(y[y >= 0]))
    if clusters is None:
        if y is None:
            raise UserError("this graph has no labels: say how many clusters with --clusters")
        clusters = classes
    path = trained.path / "clusters.csv" if out is None else Path(out)
    check_format(path, TABLES)
    observer.phase("scoring")
    groups = assign(z, clusters, seed=seed)
    scores: dict[str, Any] = {}
    if y is not None:
        found = cluster_scores(z, y, clusters=clusters, repeats=repeats, seed=seed)
        scores["clustering"] = {"clusters": clusters, **found.to_dict()}
        if clusters == classes:
            with trained.locked():
                trained.save_scores(scores)
            scores |= _clustered_controls(trained)
        observer.scores(method, scores, None)
        if clusters != classes:
            has = f"{classes} class" + "es" * (classes != 1)
            observer.note(f"not kept in scores.json: the graph has {has}")
    save_table(path, ids, groups[:, None], names=["cluster"])
    observer.wrote("clusters", path)
    return Evaluated(trained.path, method, scores, path=path)


def _clustered_controls(run: Run) -> dict[str, Any]:
    """The controls that were clustered with the run."""
    controls = run.scores().get("controls") or {}
    parts = {name: part["clustering"] for name, part in controls.items() if "clustering" in part}
    return {"controls": {n: {"clustering": part} for n, part in parts.items()}} if parts else {}
