"""The scheduling policies that a station of servers knows, by name."""

from typing import Literal

Policy = Literal["fcfs", "lcfs", "lcfs_pr", "ps", "rr", "srpt", "sjf", "fb", "priority", "random"]
"""First come first served; last come first served without and with preemption; processor sharing; round robin; shortest
remaining processing time; shortest job first; feedback (least attained service); static preemptive priority; random."""
