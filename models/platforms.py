"""Server platforms as their makers' spec sheets give them.

A platform is a whole machine: the caches, channels and cores of its sockets are pooled, as if the operating system
balanced them. Frequencies are the steps up to the all-core turbo. `core_cpi_factor` is core CPI relative to Haswell at
equal instructions; it follows published per-clock comparisons between generations.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Platform:
    """One server model: what its spec sheets say, units in the names."""

    name: str
    cores: int
    threads_per_core: int
    base_frequency_hz: float
    min_frequency_hz: float
    max_frequency_hz: float
    llc_bytes: float
    memory_latency_s: float
    memory_bandwidth_bytes_per_s: float
    memory_bytes: float
    tdp_w: float
    idle_power_w: float
    core_cpi_factor: float
    source: str
    frequency_step_hz: float = 1.0e8

    @property
    def vcpus(self) -> int:
        """Hardware threads of the machine, the unit of CPU quota.

        Examples
        --------
        >>> PLATFORMS["haswell_2698v3"].vcpus
        64
        """
        return self.cores * self.threads_per_core

    @property
    def peak_power_w(self) -> float:
        """Power with all cores busy at base frequency: idle power plus the switched part of the TDP.

        Examples
        --------
        >>> PLATFORMS["haswell_2698v3"].peak_power_w
        319.5
        """
        return self.idle_power_w + SWITCHED_SHARE_OF_TDP * self.tdp_w


SWITCHED_SHARE_OF_TDP = 0.85
"""Share of the TDP that busy cores add; the rest is drawn by uncore and leakage already when idle."""

_GIB = 2.0**30

_SPEC_SHEETS = (
    Platform("sandybridge_2670", 16, 2, 2.6e9, 1.2e9, 3.0e9, 40 * 2.0**20, 81e-9, 102.4e9, 128 * _GIB, 230.0, 80.0,
             1.12, "2 × Intel Xeon E5-2670: ARK; 4 channels DDR3-1600 a socket"),
    Platform("haswell_2698v3", 32, 2, 2.3e9, 1.2e9, 2.8e9, 80 * 2.0**20, 90e-9, 136.5e9, 256 * _GIB, 270.0, 90.0, 1.0,
             "2 × Intel Xeon E5-2698 v3: ARK; 4 channels DDR4-2133 a socket"),
    Platform("broadwell_2698v4", 40, 2, 2.2e9, 1.2e9, 2.7e9, 100 * 2.0**20, 90e-9, 153.6e9, 256 * _GIB, 270.0, 90.0,
             0.95, "2 × Intel Xeon E5-2698 v4: ARK; 4 channels DDR4-2400 a socket"),
    Platform("skylake_6148", 40, 2, 2.4e9, 1.0e9, 3.1e9, 55 * 2.0**20, 94e-9, 256.0e9, 384 * _GIB, 300.0, 100.0, 0.88,
             "2 × Intel Xeon Gold 6148: ARK; 6 channels DDR4-2666 a socket"),
    Platform("icelake_8380", 80, 2, 2.3e9, 0.8e9, 3.0e9, 120 * 2.0**20, 96e-9, 409.6e9, 512 * _GIB, 540.0, 150.0,
             0.76, "2 × Intel Xeon Platinum 8380: ARK; 8 channels DDR4-3200 a socket"),
    Platform("rome_7742", 64, 2, 2.25e9, 1.5e9, 3.2e9, 256 * 2.0**20, 104e-9, 204.8e9, 512 * _GIB, 225.0, 95.0, 0.86,
             "1 × AMD EPYC 7742: product page; 8 channels DDR4-3200"),
)  # fmt: skip

PLATFORMS: dict[str, Platform] = {platform.name: platform for platform in _SPEC_SHEETS}
"""Every platform by name."""
