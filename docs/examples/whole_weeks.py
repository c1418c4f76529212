"""A guard of your own: jobs change from day to day, so an experiment should see every day of the week."""

import wsc


def whole_weeks(observations, jobs, about):
    """Find machines that had the feature for less than a week."""
    days = observations.loc[observations["treated"] == 1, "period"].nunique()
    if days < 7:
        what = f"the feature was on for {days} of 7 days of the week"
        return wsc.Finding("part_of_a_week", "note", what, {"days": days}, "go on until it was on for a week")
    return None
