"""Student's t and the binomial, from one special function: the regularised incomplete beta. No libraries."""

from functools import lru_cache
from math import exp, lgamma, log, log1p, pi, sqrt, tan


def beta_share(x: float, a: float, b: float) -> float:
    """I_x(a, b): the chance that a beta variable with parameters `a` and `b`, both above 0, is at most `x`, 0 to 1.

    By its continued fraction (NIST Digital Library of Mathematical Functions 8.17.22), which converges fast where
    x < (a + 1) / (a + b + 2); elsewhere by I_x(a, b) = 1 - I_{1-x}(b, a). Right to about 1e-11.
    """
    if not 0 <= x <= 1 or a <= 0 or b <= 0:
        raise ValueError(f"x = {x} must lie between 0 and 1, a = {a} and b = {b} be above 0")
    if x in (0.0, 1.0):
        return x
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_share(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    return front * _fraction(x, a, b) / a


def _fraction(x: float, a: float, b: float) -> float:
    """1 / (1 + d1 / (1 + d2 / ...)), DLMF 8.17.22 and 23, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d or tiny)
    value = d
    for m in range(1, 10_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            return value
    raise ArithmeticError(f"the incomplete beta of x = {x}, a = {a}, b = {b} did not converge")


def student_p(t: float, freedom: int) -> float:
    """The chance that a Student variable of `freedom` degrees lies further from 0 than `t`, on either side.

    Abramowitz and Stegun 26.7.1 with 26.5.27: I_{f / (f + t^2)}(f / 2, 1 / 2).
    """
    if freedom < 1:
        raise ValueError(f"degrees of freedom {freedom} must be at least 1")
    return beta_share(freedom / (freedom + t * t), freedom / 2, 0.5)


@lru_cache(maxsize=4096)
def student_t(level: float, freedom: int) -> float:
    """The t that a Student variable of `freedom` degrees stays within, on both sides, with probability `level`.

    The quantile of one side at `p` is `student_t(2 * p - 1, freedom)`. Found by bisection over the angle atan(t), so
    right to about 1e-11 of it.
    """
    if not 0 < level < 1 or freedom < 1:
        raise ValueError(f"level {level} must lie between 0 and 1, degrees of freedom {freedom} be at least 1")
    low, high = 0.0, pi / 2
    while high - low > 1e-14:
        middle = (low + high) / 2
        inside = 1 - student_p(tan(middle) * sqrt(freedom), freedom)
        low, high = (middle, high) if inside < level else (low, middle)
    return tan((low + high) / 2) * sqrt(freedom)


def exact_upper_bound(events: int, trials: int, *, level: float = 0.95) -> float:
    """The largest rate under which `events` or fewer of `trials` independent trials still have a chance of 1 - level.

    One-sided, after Clopper and Pearson 1934, "The use of confidence or fiducial limits illustrated in the case of the
    binomial". For rare events such as leaks: none in 300 leaves a rate of up to 1 % possible. Trials of one dialogue
    are seldom independent: count the dialogues then. Raises `ValueError` for impossible counts.
    """
    if not 0 <= events <= trials or trials < 1:
        raise ValueError(f"{events} events in {trials} trials is impossible")
    if events == trials:
        return 1.0
    return _beta_quantile(level, events + 1, trials - events)


def exact_interval(events: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's two-sided interval of a rate: each side leaves (1 - level) / 2 outside."""
    side = (1 + level) / 2
    low = 1 - exact_upper_bound(trials - events, trials, level=side)
    return low, exact_upper_bound(events, trials, level=side)


def _beta_quantile(share: float, a: float, b: float) -> float:
    """The x with `beta_share(x, a, b)` = `share`, by bisection to the last bit of a double."""
    low, high = 0.0, 1.0
    for _ in range(1100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if beta_share(middle, a, b) < share else (low, middle)
    return high
