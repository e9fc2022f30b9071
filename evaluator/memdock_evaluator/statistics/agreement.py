"""How far judges agree with each other, beyond what chance would give. Labels are names: no order, no distance."""

import numpy as np

from memdock_evaluator.statistics.arrays import Ints

NO_LABEL = -1


def nominal_alpha(labels: Ints) -> float | None:
    """Krippendorff's alpha for nominal labels, judges x things, `NO_LABEL` where a judge gave none.

    1 - observed / expected disagreement over the coincidences of things with two labels or more (Krippendorff 2011,
    "Computing Krippendorff's alpha-reliability", part C): 1 is agreement, 0 chance, below 0 worse than it. `None` where
    it is not defined: fewer than two labels on any one thing, or one and the same label everywhere.
    """
    values = np.unique(labels[labels != NO_LABEL])
    counts = np.array([(labels == value).sum(axis=0) for value in values]).reshape(len(values), labels.shape[1])
    counts = counts[:, counts.sum(axis=0) > 1]
    given, totals = counts.sum(axis=0), counts.sum(axis=1)
    n = int(given.sum())
    chance = n * n - int((totals**2).sum())
    if not chance:
        return None
    observed = float(((given**2 - (counts**2).sum(axis=0)) / (given - 1)).sum())
    return 1 - (n - 1) * observed / chance


def binary_kappa(first: Ints, second: Ints) -> float | None:
    """Cohen's kappa of two judges on right (1) and wrong (0), over the things that both labelled.

    (observed - chance agreement) / (1 - chance agreement): Cohen 1960, "A coefficient of agreement for nominal
    scales". `None` where chance alone agrees always, or nothing has both labels.
    """
    both = (first != NO_LABEL) & (second != NO_LABEL)
    n = int(both.sum())
    if not n:
        return None
    one, other = int(first[both].sum()), int(second[both].sum())
    agreed = int((first[both] == second[both]).sum())
    chance = one * other + (n - one) * (n - other)
    if chance == n * n:
        return None
    return (agreed * n - chance) / (n * n - chance)
