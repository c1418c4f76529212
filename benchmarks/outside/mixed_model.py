"""A linear mixed model of statsmodels: log performance of stays, jobs as fixed effects, machines as random intercepts.

A stay is one row, its value the mean over its periods. Jobs are absorbed: the log and the feature are taken less their
job's means, since a column for each of 130 jobs takes six seconds a fit. The effect is exp(coefficient) - 1, the change
of the geometric mean; stays count by how well they are known, not by quota, and a job in one arm alone says nothing.
"""

import warnings


class MixedModel:
    """MixedLM by restricted maximum likelihood, a random intercept for each machine."""

    name = "mixed-model"
    environment = "../../.venv-outside/statsmodels"

    def estimate(self, experiment):
        import numpy as np
        from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams

        import wsc

        rows = experiment.study.groupby(["machine", "job", "instance"], as_index=False).agg(
            value=("value", "mean"), treated=("treated", "max")
        )
        rows = rows[rows.groupby("job")["treated"].transform("nunique") == 2]
        fewest = rows.groupby("treated")["machine"].nunique().reindex([False, True], fill_value=0).min()
        if fewest < 2:
            raise wsc.NotEnoughData(2, int(fewest), "machines in each arm")
        columns = rows.assign(log=np.log(rows["value"]), treated=rows["treated"].astype(float))[["log", "treated"]]
        within = columns - columns.groupby(rows["job"]).transform("mean")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = MixedLMParams.from_components(fe_params=np.zeros(1), cov_re=np.full((1, 1), 0.05))
            fit = MixedLM(within["log"], within[["treated"]], groups=rows["machine"]).fit(start_params=start)
        low, high = fit.conf_int(alpha=1 - experiment.confidence).loc["treated"]
        change, low, high = np.expm1([fit.params["treated"], low, high])
        return change, low, high
