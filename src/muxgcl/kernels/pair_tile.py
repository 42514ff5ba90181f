"""A pair function on a tile of cosines, in Triton: what `all_pairs.py` adds up, and its slope."""

import triton
import triton.language as tl


@triton.jit
def value_and_slope(
    cosine,  # [ROWS, WIDTH], less 1/2 where the function is "log-gap"
    scale,  # "sigmoid": the logarithm to base 2 of the odds is scale * cosine + shift
    shift,
    FUNCTION: tl.constexpr,
):
    """F of every cosine, and f' over the steepest slope there is."""
    if FUNCTION == "log-gap":  # scale is 2 eps
        gap = 0.5 - cosine
        whole = tl.maximum(gap, 0.0) + scale
        value = tl.log(whole * 0.5)
        slope = tl.where(gap >= 0, -scale / whole, 0.0)
    else:
        odds = cosine * scale + shift
        small = tl.exp2(-tl.abs(odds))  # of the less likely side: never above 1
        share = 1 / (1 + small)
        value = tl.where(odds >= 0, share, small * share)
        slope = 4 * small * share * share
    return value, slope
