"""Signs of a good embedding that need no label, as searches record them."""

from typing import Any

CLUSTERS = 10  # of the criteria that look at clusters; how many classes there are is not known


def groups(rows: Any, draw: Any, steps: int = 20) -> Any:
    """k-means by Lloyd's steps from random rows: the cluster of each row."""
    import torch

    centres = rows[torch.randperm(len(rows), generator=draw, device=rows.device)[:CLUSTERS]]
    for _ in range(steps):
        nearest = (rows @ centres.T - (centres**2).sum(1) / 2).argmax(1)
        member = torch.nn.functional.one_hot(nearest, CLUSTERS).to(rows.dtype)
        size = member.sum(0)[:, None]
        centres = torch.where(size > 0, member.T @ rows / size.clamp(min=1), centres)
    return nearest


def label_free(table: Any, graph: Any) -> dict[str, float]:
    """Signs of a good embedding that need no label; whether they are good signs, a search tells."""
    import torch
    from sklearn.metrics import normalized_mutual_info_score

    unit = torch.nn.functional.normalize(table.float(), dim=1)
    draw = torch.Generator(device=unit.device).manual_seed(0)
    n = len(unit)
    gram = (unit.T @ unit).double()
    share = torch.linalg.eigvalsh(gram).clamp(min=1e-12)
    share = share / share.sum()
    row, col = graph.adjacency.row, graph.adjacency.col
    keep = row != col
    row, col = row[keep], col[keep]
    pick = torch.randint(len(row), (20000,), generator=draw, device=unit.device)
    near = (unit[row[pick]] * unit[col[pick]]).sum(1)
    one, two = torch.randint(n, (2, 20000), generator=draw, device=unit.device)
    far = (unit[one] * unit[two]).sum(1)
    place = torch.searchsorted(far.sort().values, near).double() / len(far)
    x = graph.dense_features()
    x = torch.nn.functional.normalize(x, dim=1)
    order = torch.randperm(n, generator=draw, device=unit.device)
    fit, held = order[: n // 2], order[n // 2 :]
    a = unit[fit].double()
    ridge = a.T @ a + 1e-2 * len(fit) / unit.shape[1] * torch.eye(unit.shape[1], device=a.device)
    centre = x[fit].double().mean(0)
    weight = torch.linalg.solve(ridge, a.T @ (x[fit].double() - centre))
    rest = x[held].double() - centre
    error = ((unit[held].double() @ weight - rest) ** 2).sum() / (rest**2).sum()
    found = [groups(unit, draw) for _ in range(3)]
    same = sum(float((group[row] == group[col]).float().mean()) for group in found) / len(found)
    half = torch.randperm(unit.shape[1], generator=draw, device=unit.device)
    one, two = (groups(unit[:, part], draw).cpu() for part in half.chunk(2))
    shares = [torch.bincount(group, minlength=CLUSTERS).double() / n for group in found]
    by_chance = sum(float((part**2).sum()) for part in shares) / len(shares)
    return {
        "homophily": same,
        "modularity": same - by_chance,
        "stability": float(normalized_mutual_info_score(one, two)),
        "rank": float((-(share * share.log()).sum()).exp()),
        "edge_auc": float(place.mean()),
        "near": float(near.mean()),
        "far": float(far.mean()),
        "features": float(1 - error),
    }
