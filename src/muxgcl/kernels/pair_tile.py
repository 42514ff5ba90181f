"""What `all_pairs.py` makes of the cosines of a tile, in Triton: pair weights, pair functions."""

import triton
import triton.language as tl


@triton.jit
def value_and_slope(
    cosine,  # [ROWS, WIDTH], less 1/2 where the function is "log-gap"
    scale,  # "sigmoid": the logarithm to base 2 of the odds is scale * cosine + shift
    shift,
    FUNCTION: tl.constexpr,
):
    """The function's value at each cosine, and its derivative over the steepest slope."""
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


@triton.jit
def pair_weight(
    cosine,  # [ROWS, COLS] of the rows of the pair weight
    curve_ptr,  # [KNOTS] the weight at equal steps of the cosine from -1 to 1, or None
    offset,
    slope,
    KNOTS: tl.constexpr,
):
    """The weight of every pair: a line that is cut off at 0 and 1, or a curve between its knots."""
    if curve_ptr is None:
        weight = tl.clamp(cosine * slope + offset, 0.0, 1.0)
    else:
        along = (tl.clamp(cosine, -1.0, 1.0) + 1) * ((KNOTS - 1) / 2)
        knot = tl.minimum(along.to(tl.int32), KNOTS - 2)
        left, right = tl.load(curve_ptr + knot), tl.load(curve_ptr + knot + 1)
        weight = left + (along - knot) * (right - left)
    return weight
