"""Is what an advice promises kept when it is followed?"""

from analysis.crosscheck.check import Check


def kept(realised: float, promised: float) -> Check:
    """Return whether jobs that were moved save something, and no more than twice what was promised.

    A promise is made at the cycles per instruction that jobs have beside their present neighbours. Neighbours move too,
    so how much of it is kept is the fleet's to say; that it is a saving at all is the second criterion of row
    `world/affinity`, whose first one asks for half of the promise. Jobs that are moved for nothing just pass, so the
    check only decides whether there is a loss.

    Parameters
    ----------
    realised, promised : shares of the time that are saved

    Examples
    --------
    >>> kept(0.03, 0.04).holds, kept(-0.01, 0.04).holds, kept(-0.01, -0.01).holds
    (True, False, False)
    """
    return Check("affinity_moved", realised, promised, promised)
