"""A cross-platform method of your own: a request takes the same clock cycles on every platform."""


class ClockCycles:
    """CPU time of the mean request, scaled by clock cycles; the interval is ±25%."""

    def __init__(self, evidence):
        log, self.origin = evidence.log, evidence.platform
        self.service_time_s = (log.utilisation * log.interval_s).sum() / log.counts.sum()

    def predict(self, platform, counts, interval_s):
        time_s = self.service_time_s * cycles_per_s(self.origin) / cycles_per_s(platform)
        return {"service_time_s": time_s, "service_low_s": 0.75 * time_s, "service_high_s": 1.25 * time_s}


def cycles_per_s(platform):
    """Return the clock cycles of all hardware threads together."""
    return platform.vcpus * platform.base_frequency_hz
