"""An estimator of your own: the change of a trimmed mean over machines."""

from statistics import NormalDist

from scipy.stats import trim_mean


class TrimmedMeans:
    """Performance relative to the job's mean without the feature; machines' lowest and highest 10% are left out."""

    def estimate(self, experiment):
        rows = experiment.study
        level = rows[~rows["treated"]].groupby("job")["value"].mean()
        relative = rows.assign(value=rows["value"] / rows["job"].map(level)).dropna(subset=["value"])
        means = relative.groupby(["treated", "machine"])["value"].mean()
        off, on = means[False], means[True]
        change = trim_mean(on, 0.1) / trim_mean(off, 0.1) - 1
        error = (on.var() / len(on) + off.var() / len(off)) ** 0.5
        half_width = NormalDist().inv_cdf(0.5 + experiment.confidence / 2) * error
        return change, change - half_width, change + half_width
