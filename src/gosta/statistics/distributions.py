"""Tails and quantiles of Student's and the chi-squared distribution.

They are written here so that the base install needs no scipy.
"""

from __future__ import annotations

from math import erfc, exp, inf, isinf, lgamma, log, log1p, nan, pi, sqrt
from statistics import NormalDist

# Of freedom: from here on Hill's expansion (1970) has all digits, and the continued fraction loses
# some.
MANY_DEGREES = 1e5
RELATIVE_PRECISION = 1e-16
MOST_TERMS = 100_000  # of a series; about √x are needed


def student_p(t: float, freedom: float) -> float:
    """Return the probability that a number with Student's distribution is as far from 0 as t.

    >>> round(student_p(2.2281388519862744, 10), 12)
    0.05
    """
    if freedom == inf:
        return erfc(abs(t) / sqrt(2))
    if freedom > MANY_DEGREES:
        z = sqrt((freedom - 0.5) * log1p(t * t / freedom))
        return erfc((z + (z**3 + 3 * z) / (48 * (freedom - 0.5) ** 2)) / sqrt(2))
    return _beta_share(freedom / (freedom + t * t), t * t / (freedom + t * t), freedom / 2, 0.5)


def difference_p(gap: float, error: float, freedom: float = inf) -> float:
    """Return the two-sided p-value of a coefficient by its standard error; NaN if that is 0.

    >>> round(difference_p(0.1, 0.05), 4), difference_p(0.0, 0.0)
    (0.0455, nan)
    """
    return student_p(gap / error, freedom) if 0 < error < inf else nan


def interval_p(value: float, low: float, high: float, level: float, null: float = 0.0) -> float:
    """Return the two-sided p-value of the test that an interval of a value inverts.

    The interval's reach towards the null value is the normal quantile of its level in standard
    errors (Altman and Bland 2011). So p is below 1 − level where the interval excludes that value.
    NaN without an interval, or with one of no length.

    >>> round(interval_p(0.1, 0.1 - 1.96 * 0.05, 0.3, 0.95), 4), interval_p(0.0, 0.0, 0.0, 0.95)
    (0.0455, nan)
    """
    gap = value - null
    reach = value - low if gap > 0 else high - value
    if not reach > 0:
        return nan
    return erfc(NormalDist().inv_cdf(0.5 + level / 2) * abs(gap) / reach / sqrt(2))


def student_tails(t: float, freedom: float) -> tuple[float, float]:
    """Return the probabilities that a number with Student's distribution is below t, and above.

    >>> student_tails(0.0, 10)
    (0.5, 0.5)
    """
    near = student_p(t, freedom) / 2
    return (near, 1 - near) if t < 0 else (1 - near, near)


def student_quantile(level: float, freedom: float) -> float:
    """Return the t within ± which a number with Student's distribution lies with a probability.

    >>> round(student_quantile(0.95, 10), 12)
    2.228138851986
    """
    t, step = -NormalDist().inv_cdf((1 - level) / 2), inf
    if freedom == inf:
        return t
    log_peak = _log_gamma_step(freedom / 2) - 0.5 * log(pi * freedom)
    while step > 1e-14 * t:  # the tail is convex, so that Newton's method comes from below
        density = exp(log_peak - (freedom + 1) / 2 * log1p(t * t / freedom))
        step = (student_p(t, freedom) - (1 - level)) / (2 * density)
        t += step
    return t


def _beta_share(x: float, rest: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function at x = 1 − rest, where a or b is ½.

    It is a continued fraction, evaluated by Lentz's method.
    """
    if x <= 0 or rest <= 0:
        return float(rest <= 0)
    # The fraction converges fast for x below (a + 1) / (a + b + 2), and the function is symmetric.
    # Written so that it never holds for both, however x and rest are rounded.
    if x * (b + 1) > rest * (a + 1):
        return 1 - _beta_share(rest, x, b, a)
    log_x, log_rest = (
        (log(x) if x < 0.5 else log1p(-rest)),
        (log(rest) if rest < 0.5 else log1p(-x)),
    )
    front = exp(a * log_x + b * log_rest + _log_gamma_step(a + b - 0.5) - lgamma(0.5)) / a
    numerator, denominator = 1.0, 1.0 / (1 - (a + b) * x / (a + 1))
    fraction = denominator
    for k in range(1, 10_000):
        for factor in (
            k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k)),
            -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1)),
        ):
            denominator = 1 / (1 + factor * denominator)
            numerator = 1 + factor / numerator
            fraction *= denominator * numerator
        if abs(denominator * numerator - 1) < 1e-16:
            break
    return front * fraction


def _log_gamma_step(a: float) -> float:
    """Return log Γ(a + ½) − log Γ(a), by its series where the difference loses digits."""
    if a < 50:
        return lgamma(a + 0.5) - lgamma(a)
    return log(a) / 2 - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5)


def chi_squared_tail(x: float, degrees: float) -> float:
    """Return the probability that a chi-squared variable exceeds x.

    It is the regularised upper incomplete gamma function.

    By its series below the mean and by Legendre's continued fraction (Lentz's method) above it.

    >>> round(chi_squared_tail(3.841458820694124, 1), 12), chi_squared_tail(0.0, 3)
    (0.05, 1.0)
    """
    if not x > 0:
        return 1.0
    if isinf(x):
        return 0.0
    a, z = degrees / 2, x / 2
    front = exp(a * log(z) - z - lgamma(a))
    if z < a + 1:
        return max(0.0, 1.0 - front * _series(a, z))
    return min(1.0, front * _fraction(a, z))


def chi_squared_quantile(share: float, degrees: float) -> float:
    """Return the value below which a chi-squared variable lies with a probability, by bisection.

    >>> round(chi_squared_quantile(0.95, 1), 9)
    3.841458821
    """
    low, high = 0.0, max(1.0, 2 * degrees)
    while chi_squared_tail(high, degrees) > 1 - share:
        low, high = high, 2 * high
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        if chi_squared_tail(middle, degrees) > 1 - share:
            low = middle
        else:
            high = middle


def _series(a: float, z: float) -> float:
    """Return the lower incomplete gamma function over z^a e^−z."""
    term = total = 1 / a
    for k in range(1, MOST_TERMS):
        term *= z / (a + k)
        total += term
        if term < total * RELATIVE_PRECISION:
            break
    return total


def _fraction(a: float, z: float) -> float:
    """Return the upper incomplete gamma function over z^a e^−z."""
    tiny = 1e-300
    b = z + 1 - a
    c, d = 1 / tiny, 1 / b
    value = d
    for k in range(1, MOST_TERMS):
        factor = -k * (k - a)
        b += 2
        d = 1 / (factor * d + b or tiny)
        c = b + factor / c or tiny
        value *= c * d
        if abs(c * d - 1) < 4e-16:
            break
    return value
