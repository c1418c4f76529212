"""Means of jobs, weighted, so plainly that they can judge others."""


def weighted(table, jobs):
    """Return the weighted sum of job means by plain loops; `jobs` maps job to weight."""
    total = 0.0
    for job, weight in jobs.items():
        values = [value for value, of in zip(table["value"], table["job"], strict=True) if of == job]
        total += weight * sum(values) / len(values)
    return total / sum(jobs.values())
