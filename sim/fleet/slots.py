"""Columns of the kernel's arrays: what it keeps of each resident, and what it adds up."""

# What the resident of a slot is; also columns of the table of jobs: core CPI; streaming floor, gain and squared size of
# two working sets; 1 / overlap; SMT slowdown; busy threads at mean load; 1 if a faster machine makes it less busy; pace
# of its mean load (seconds per instruction); instructions and network wait (s) of a request; share of instructions spun
# on a full machine; CPU quota; spread of its own behaviour over time; part of the floor that is prefetched; 1 if
# latency-critical.
CORE, FLOOR, GAIN1, SET1, GAIN2, SET2, STALL, SMT = range(8)
BUSY, ELASTIC, PACE, INSTR, SPIN, NETWORK, QUOTA, NOISE_SD, AHEAD, CRITICAL = range(8, 18)
TRAITS = INPUT_SD = 18  # INPUT_SD: column of the table of jobs alone: spread between shards
# What it does now: own behaviour, cache share, busy threads, misses per instruction, CPI, misses per second, frequency,
# core CPI and relative memory accesses without co-runners' part, 1 / overlap on this core, and the share of its cycles
# in which it waited for memory when its governor looked last; share of its accesses to other nodes' memory; part
# of its misses on each of its slices; when it leaves, in seconds; on the event-driven machine, where WAITED is what its
# governor saw last, the share of its cycles in which it waits now; threads that
# are runnable and do not run: because others do, and because the quota is used up.
WANDER, SHARE, USE, MPI, CPI, RATE, FREQUENCY, CORE_NOW, ACCESS_NOW, STALL_NOW, WAITED = range(18, 29)
REMOTE, PART, UNTIL_S, STALLED, QUEUED, THROTTLED = range(29, 35)
# What it has done since it was last written out.
CYCLES, INSTRUCTIONS, MISSES, CPU_S, REQUESTS, CORE_CYCLES, WAIT_S, THROTTLED_S = range(35, 43)
FIELDS, MARKS, SUMS, EPOCH_COLUMNS = 43, 11, 8, 9
# Integers of a slot: job, epoch in which it leaves, epoch from which it runs new code, counter row minus window, trace
# row minus epoch, key of its noise, shard; first cache slice that it lives on (NOWHERE: none yet) and how many, and
# the memory of the first one; its station, on the event-driven machine, if its requests are served one by one (NOWHERE:
# they are not).
JOB, END, SOFT_FROM, ROW, TRACE, KEY, SHARD, SLICE, SPAN, HOME, STATION = range(11)
# Columns of the sums of a domain's epoch, and of a machine's window.
E_INSTANCES, E_QUOTA, E_CYCLES, E_INSTRUCTIONS, E_MISSES, E_CPU_S, E_ENERGY_J, E_CAPPED, E_RESIDUAL = range(9)
M_ENERGY_J, M_CAPPED = range(2)
NOWHERE = -1
NO_TRACE = -(2**40)
