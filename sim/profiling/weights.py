"""Where a program's instructions go in one counter row: a residence's day.

The weights of a program's functions are those of its state, times the spread of its shard's data, the drift of the
day's requests, what the new build and the new kernel change, and incidents. All belongs to names and numbers: who asks
for which rows in which order changes nothing. Within a row all is constant, so rows are days and everything that is
rolled out changes at midnight.
"""

import numpy as np

from models.arrays import DAY_S, Floats
from models.errors import InputError
from models.profiling.world import Incident
from sim.profiling.noise import keys_of, mixed, normals
from sim.profiling.rows import Rows, Software


def row_weights(software: Software, rows: Rows) -> Floats:
    """Return the share of each row's instructions that each function of its program has.

    Parameters
    ----------
    software : programs, builds and places
    rows : R rows, all of one program

    Returns
    -------
    (R, F) array in the order of the program's entries, sum 1 over each row

    Raises
    ------
    ValueError
        If the rows are of several programs.

    Examples
    --------
    >>> from models.profiling.world import ProfileWorld
    >>> from models.fleet.world import Fleet, Population
    >>> from sim.fleet.fleet import nowhere, prepare
    >>> from sim.profiling.rows import rows_of, software_of
    >>> day = prepare(world := ProfileWorld(2, 86400.0, 3600.0, Fleet(8), Population(12, 8, heavyweights=2)))
    >>> rows = rows_of(day, nowhere(day), software := software_of(world, day))
    >>> bool(np.allclose(row_weights(software, rows.take(rows.program == 3)).sum(axis=1), 1.0))
    True
    """
    if np.unique(rows.program).size > 1:
        raise InputError(f"rows are of {np.unique(rows.program).size} programs, must be of one")
    if not rows.count:
        return np.zeros((0, 0))
    programs, builds, how = software.programs, software.builds, software.programs.how
    program = int(rows.program[0])
    here, function = programs.entries(program), programs.functions(program)
    drawn = programs.code.key[function]
    shards, of_shard = np.unique(rows.shard, return_inverse=True)
    days, of_day = np.unique(rows.day, return_inverse=True)
    shard = keys_of(programs.seed, "data of shards", np.array(program), shards)
    day = keys_of(programs.seed, "requests of days", np.array(program), days)
    built = np.stack([np.ones(function.size), builds.factor[here]])
    kernels = np.stack([np.ones(function.size), builds.kernel_factor[function]])
    usual = programs.weight[:, None, None, here] * built[:, None] * kernels
    weight = usual[rows.state, rows.build, rows.kernel]
    weight *= np.exp(how.shard_log_sd * normals(mixed(shard[:, None], drawn)))[of_shard]
    weight *= np.exp(how.day_log_sd * normals(mixed(day[:, None], drawn)))[of_day]
    for incident in software.world.profiling.incidents:
        _strike(software, incident, rows, weight)
    weight /= weight.sum(axis=1, keepdims=True)
    return np.asarray(weight)


def _strike(software: Software, incident: Incident, rows: Rows, weight: Floats) -> None:
    """Multiply the weights that an incident makes more expensive."""
    programs, builds, places = software.programs, software.builds, software.places
    program = int(rows.program[0])
    names = programs.code.name
    function = np.array([names[f] == incident.function for f in programs.functions(program)])
    struck = rows.day * DAY_S >= incident.from_s
    struck &= incident.application in {"", programs.names[program]}
    build = builds.of_image[programs.image_of_program[program], rows.build]
    for wanted, has in (
        (incident.revision, np.array(builds.revision)[build]),
        (incident.compiler, np.array(builds.compiler)[build]),
        (incident.platform, np.array(places.platforms)[rows.platform]),
        (incident.datacentre, np.array(places.datacentres)[rows.datacentre]),
    ):
        struck &= (has == wanted) | (not wanted)
    weight[np.ix_(struck, function)] *= incident.factor
