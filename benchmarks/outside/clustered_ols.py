"""ClusteredOLSAnalysis of cluster-experiments: a regression of stays on the feature and on what they did before.

A stay is one row, its value the mean over its periods; its errors are clustered by machine, the effect is relative to
the adjusted mean of the controls. `past` is the instance's mean before, that of its job where it was not there. The
library takes no weights: stays count alike, whatever their quota. Jobs without a past are left out.
"""

import warnings


class ClusteredOLS:
    """Ordinary least squares with errors clustered by machine, relative."""

    name = "clustered-ols"
    environment = "../../.venv-outside/cluster-experiments"

    def estimate(self, experiment):
        from cluster_experiments import ClusteredOLSAnalysis

        import wsc

        before, study = experiment.before, experiment.study
        rows = study.groupby(["machine", "job", "instance"], as_index=False).agg(
            target=("value", "mean"), treated=("treated", "max")
        )
        of_instance, of_job = (before.groupby(key)["value"].mean() for key in ("instance", "job"))
        rows["past"] = rows["instance"].map(of_instance).fillna(rows["job"].map(of_job))
        rows = rows.dropna()
        rows[["target", "past"]] /= rows["past"].mean()
        rows["treatment"] = rows["treated"].map({False: "A", True: "B"})
        fewest = rows.groupby("treated")["machine"].nunique().reindex([False, True], fill_value=0).min()
        if fewest < 2:
            raise wsc.NotEnoughData(2, int(fewest), "machines in each arm")
        analysis = ClusteredOLSAnalysis(["machine"], covariates=["past"], relative_effect=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = analysis.get_inference_results(rows, alpha=1 - experiment.confidence)
        return result.ate, result.conf_int.lower, result.conf_int.upper
