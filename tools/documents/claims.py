"""What holds of the paper's claims and what does not, in plain words, from the records."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from muxgcl.evaluate import Difference
from muxgcl.reproduce import numbers
from muxgcl.reproduce.artefacts import Scope
from muxgcl.reproduce.paper import TABLE1, TITLES
from muxgcl.reproduce.records import Found
from muxgcl.reproduce.shown import by_settings, difference, shown
from muxgcl.reproduce.theory_tables import (
    READINGS,
    gaps,
    least_auc,
    looked_at,
    points,
    shares,
    shown_point,
)

MOST = 0.975  # of pairs: what "with 95 % confidence" asks of a sign


@dataclass(slots=True)
class Claim:
    """A sentence, and the evidence for and against it, one entry a dataset."""

    text: str
    holds: list[str] = field(default_factory=list)
    fails: list[str] = field(default_factory=list)

    def add(self, holds: bool, evidence: str) -> None:
        """Sort in what one dataset says."""
        (self.holds if holds else self.fails).append(evidence)


def plain_words(found: Found, scope: Scope) -> list[str]:
    """Two paragraphs; none where there is nothing to go by."""
    claims = list(_claims(found, scope))
    held = [f"{claim.text}: {', '.join(claim.holds)}" for claim in claims if claim.holds]
    failed = [f"{claim.text}: {', '.join(claim.fails)}" for claim in claims if claim.fails]
    paragraphs = (("What holds.", held), ("What does not.", failed))
    words = [f"**{title}** {'; '.join(said)}." for title, said in paragraphs if said]
    if held:
        words[0] = " ".join([words[0], *by_settings(found, scope)])
    return words


def _claims(found: Found, scope: Scope) -> Iterator[Claim]:
    columns = scope.columns("table1")
    accuracy = Claim("MUX-GCL comes within a point of the paper's accuracy")
    better = Claim(
        "MUX-GCL is more accurate than GRACE, each at its own settings, on the same seeds and "
        "splits"
    )
    control = Claim("it is more accurate than two propagation steps without any training")
    for dataset in columns:
        title = TITLES.get(dataset, dataset)
        mux, grace, sgc = ((name, "full") for name in ("mux-gcl", "grace", "sgc"))
        seen = shown(found, scope, mux, dataset)
        ours = numbers.summary(seen.records)
        printed = TABLE1["mux-gcl"].get(dataset)
        if ours and printed:
            close = ours.mean >= printed.mean - numbers.SHORT_BY
            accuracy.add(close, f"{title} ({ours.mean:.1f} against {printed.plain})")
        _add(better, title, difference(found, scope, mux, grace, dataset))
        _add(control, title, difference(found, scope, mux, sgc, dataset))
    yield from (accuracy, better, control)
    yield from _parts(found, scope)
    yield from _theory(found, scope)


def _parts(found: Found, scope: Scope) -> Iterator[Claim]:
    """The ablation, at the same settings throughout."""
    names = {"pae": "affinities alone help", "mpc": "all scales alone help", "full": "both help"}
    for variant, text in names.items():
        claim = Claim(f"at MUX-GCL's settings {text}")
        for dataset in scope.columns("table4"):
            one, two = (("mux-gcl", name) for name in (variant, "neither"))
            title = TITLES.get(dataset, dataset)
            _add(claim, title, difference(found, scope, one, two, dataset))
        yield claim


def _theory(found: Found, scope: Scope) -> Iterator[Claim]:
    apart = Claim("positive pairs are more similar than negative ones at every pair of layers")
    for title, record in looked_at(found, scope, "figure1", "grace", "full"):
        least = least_auc(points(record)[-1])
        apart.add(least > 0.9, f"{title} (least AUC {least:.3f})")
    yield apart
    for variant, reading in READINGS.items():
        positive = Claim(f"T_D and T_S are positive as the paper says (Equation 5 by `{reading}`)")
        for title, record in looked_at(found, scope, "figure3", "mux-gcl", variant):
            above = shares(shown_point(record))
            said = f"{title} ({100 * min(above):.0f} to {100 * max(above):.0f} % of pairs)"
            positive.add(min(above) > MOST, said)
        yield positive
        order = Claim(f"L_GR < L_MUX through training (Equation 5 by `{reading}`)")
        for title, record in looked_at(found, scope, "proposition", "mux-gcl", variant):
            held = [gap > 0 for gap in gaps(record)]
            order.add(all(held), f"{title} ({sum(held)} of {len(held)} points)")
        yield order


def _add(claim: Claim, title: str, found: Difference | None) -> None:
    if found is not None and found.low is not None:  # too few seeds say nothing either way
        claim.add(found.is_above, f"{title} ({numbers.interval(found).rstrip('*')})")
