"""Jobs alone on the reference machine: their physics re-derived by hand."""

import numpy as np
import pytest

from models.fleet.inventory import build_jobs, build_machines
from models.fleet.world import Behaviour, Fleet, Population, World
from scenarios.papers.lone_jobs import alone_cpi, alone_facts, platform_facts


def small(**behaviour):
    return World(fleet=Fleet(40), population=Population(200, 100, behaviour=Behaviour(**behaviour)))


def jobs_of(world):
    return build_jobs(world, build_machines(world))


def test_cycles_of_one_job_are_those_of_the_formula():
    jobs = jobs_of(small())
    share, large = 5 * 2.0**20, jobs.working_set_bytes[3]

    def cacheable(size_bytes):
        return sum(0.5 * s**2 / (s**2 + size_bytes**2) for s in (large, 0.2 * large))

    streamed = jobs.streaming_share[3]
    misses = jobs.memory_accesses_per_instruction[3] * (
        streamed + (1 - streamed) * cacheable(share) / cacheable(4 * 2.0**20)
    )
    fetched = jobs.prefetched_share[3] * streamed * jobs.memory_accesses_per_instruction[3]
    by_hand = jobs.core_cpi[3] + (misses - fetched) * 90e-9 * 2.8e9 * 1.5 / jobs.overlap[3]
    assert alone_cpi(jobs, cache_share=1 / 16, latency_factor=1.5)[3] == pytest.approx(by_hand, rel=1e-12)


def test_jobs_that_only_stream_do_not_miss_the_cache():
    facts = dict(alone_facts(small(streaming_share=1.0))[["series", "value"]].to_numpy().tolist())
    assert facts["small_cache_slowdown_max"] == pytest.approx(1)
    assert facts["slow_memory_slowdown_p50"] > 1


def test_slower_memory_slows_by_the_share_of_time_that_waits_for_it():
    jobs = jobs_of(small())
    waits = 1 - jobs.core_cpi / alone_cpi(jobs)
    np.testing.assert_allclose(alone_cpi(jobs, latency_factor=1.5) / alone_cpi(jobs), 1 + 0.5 * waits, rtol=1e-12)


def test_cores_alike_to_all_jobs_differ_by_memory_alone_and_real_ones_by_more():
    alike, real = (
        dict(platform_facts(world)[["series", "value"]].to_numpy().tolist())
        for world in (small(core_trait_sd=0.0, memory_accesses_per_instruction=1e-9, inner_miss_cycles=0.0), small())
    )
    assert max(alike.values()) < 1e-5
    assert min(real.values()) > 0.02
