"""CUPED of gbstats (GrowthBook): a machine is a user, its metric the mean performance of what it serves.

A metric of the kind `mean`, relative, as GrowthBook tests it: the only kind that gbstats 0.8.0 adjusts. A machine's
value is the mean of its rows by quota and presence; machines count alike, whatever their quota. Machines without a past
are left out.
"""


class GbstatsCuped:
    """Two-sided test of regression-adjusted means of machines."""

    name = "gbstats-cuped"
    environment = "../../.venv-outside/gbstats"

    def estimate(self, experiment):
        from gbstats.frequentist.tests import FrequentistConfig, TwoSidedTTest
        from gbstats.models.statistics import RegressionAdjustedStatistic, SampleMeanStatistic

        import wsc

        def summed(values):
            return SampleMeanStatistic(n=len(values), sum=values.sum(), sum_squares=(values**2).sum())

        def arm(machines):
            if len(machines) < 2:
                raise wsc.NotEnoughData(2, len(machines), "machines in each arm")
            now, past = machines["now"], machines["past"]
            products = (now * past).sum()
            return RegressionAdjustedStatistic(len(now), summed(now), summed(past), products, theta=0.0)

        machines = means(experiment.study).to_frame("now").assign(past=means(experiment.before)).dropna()
        machines /= machines["past"].mean()
        treated = machines.index.isin(experiment.study.loc[experiment.study["treated"], "machine"])
        config = FrequentistConfig(difference_type="relative", alpha=1 - experiment.confidence)
        result = TwoSidedTTest(arm(machines[~treated]), arm(machines[treated]), config).compute_result()
        return result.expected, *result.ci


def means(rows):
    """Return the mean performance of each machine, by quota and presence."""
    weight = rows["weight"] * (rows.get("present_s", 1.0))
    sums = (weight * rows["value"]).groupby(rows["machine"]).sum()
    return sums / weight.groupby(rows["machine"]).sum()
