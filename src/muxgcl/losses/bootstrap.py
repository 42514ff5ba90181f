r"""Predict what a slowly moving copy of the network sees; there are no negatives.

$$\ell(q, t) = 1 - \frac1N \sum_i \cos(q_i, \mathrm{sg}(t_i))$$

Paper: Thakoor et al. 2022, <https://arxiv.org/abs/2102.06514>, equation 2, shifted so that a
perfect prediction costs 0.
"""

from torch.nn.functional import cosine_similarity

from muxgcl.shapes import Nodes, Scalar


def bootstrap(predicted: Nodes, target: Nodes) -> Scalar:
    """One minus the mean cosine of prediction and target; the target gets no gradient."""
    return 1 - cosine_similarity(predicted, target.detach(), dim=1).mean()
