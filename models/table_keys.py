"""By which columns the rows of a run's tables are told from each other, and which rows of other tables they name."""

from models.tables import ARMS

_COUNTERS, _WINDOWS, _EPOCHS = ("residence", "window"), ("machine", "window"), ("epoch",)

KEYS: dict[str, tuple[str, ...]] = {
    "machines": ("machine",),
    "jobs": ("job",),
    "instances": ("residence",),
    "counters": _COUNTERS,
    "machine_windows": _WINDOWS,
    "epochs": _EPOCHS,
    "switches": ("machine", "period"),
    "instance_epochs": ("residence", "epoch"),
    "machine_epochs": ("machine", "epoch"),
    "rounds": ("round",),
    "requests": ("request",),
    "stay_requests": ("residence", "request"),
    "truth_jobs": ("job",),
    "profile_machines": ("machine",),
    "monitor": ("machine", "start_s"),
    "visits": ("visit",),
    "processes": ("process",),
    "builds": ("build",),
    "rates": ("collection", "platform", "event"),
    "locations": ("location",),
    **{f"truth_{trial}{arm}_counters": _COUNTERS for trial in ("", "trial_") for arm in ARMS},
    **{f"truth_{trial}{arm}_machine_windows": _WINDOWS for trial in ("", "trial_") for arm in ARMS},
    **{f"truth_{trial}{arm}_epochs": _EPOCHS for trial in ("", "trial_") for arm in ARMS},
}
"""Columns whose values together a row of the table has alone."""

REFERENCES: dict[tuple[str, str], str] = {
    ("instances", "machine"): "machines",
    ("instances", "job"): "jobs",
    ("counters", "residence"): "instances",
    ("machine_windows", "machine"): "machines",
    ("stay_requests", "residence"): "instances",
}
"""Table and column whose values are of the column of that name in another table."""
