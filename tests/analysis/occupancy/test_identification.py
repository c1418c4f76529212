"""Policies and servers that logs speak for, and the likelihood that they are compared by."""

import numpy as np
import pytest

from analysis.occupancy import identification
from analysis.occupancy.curve import pairs
from analysis.occupancy.identification import agreement, identify
from analysis.occupancy.inversion import Reconstruction, reconstruct
from analysis.occupancy.likelihood import log_likelihood
from analysis.occupancy.trial import CandidateTrial
from models.queues.serve import serve
from tests.helpers.policy_logs import simulated

POLICIES = ["fcfs", "lcfs", "lcfs_pr", "ps", "rr", "fb", "srpt"]
LAWS = {
    "uniform": lambda rng, n: rng.uniform(1, 2, n),
    "exponential": lambda rng, n: rng.exponential(1.5, n),
    "pareto": lambda rng, n: np.minimum(0.75 * (1 - rng.random(n)) ** -0.5, 50.0),
}


def log(policy, servers, law, seed, *, n=1000, utilisation=0.75, **more):
    rng = np.random.default_rng([seed, servers])
    demand = LAWS[law](rng, n)
    arrival = np.cumsum(rng.exponential(demand.mean() / (utilisation * servers), n))
    return arrival, serve(policy, arrival, demand, servers, **more).departure_s, rng


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_thousand_requests_tell_policy_and_servers(policy, law):
    """Of 100 logs 1.5 are refused (benchmarks/identification.py); two of three happen once in 1500 times."""
    numbers = (1, 2, 3, 4, 5)
    found = [identify(*log(policy, k, law, 11)[:2], servers=numbers, simulate=False) for k in (1, 2, 4)]
    right = [(each.policy, each.servers) == (policy, k) for each, k in zip(found, (1, 2, 4), strict=True)]
    assert sum(right) >= 2


@pytest.mark.parametrize("policy", ["sjf", "random"])
def test_on_one_server_the_choice_among_the_waiting_is_told_too(policy):
    arrival, departure, _ = log(policy, 1, "exponential", 1, choice=np.random.default_rng(5).random(1000))
    found = identify(arrival, departure)
    assert (found.policy, found.servers) == (policy, 1)


@pytest.mark.parametrize("servers", [2, 8])
def test_shortest_job_first_is_told_on_several_servers(servers):
    arrival, departure = wide("sjf", servers, utilisation=0.9, demand=lognormal, n=3_000)
    found = identify(arrival, departure, expected_servers=servers)
    assert (found.policy, found.servers) == ("sjf", servers)


@pytest.mark.parametrize(("servers", "load", "tick", "policy"), [(64, 0.97, 0.01, "sjf"), (16, 0.7, 0.05, "lcfs")])
def test_logs_simulated_under_the_candidates_tell_what_rounding_hides_from_the_likelihood(servers, load, tick, policy):
    """What happens within a tick may have been in any order, which costs processor sharing nothing: it was named."""
    arrival, departure, *_ = simulated(servers, load, tick, policy, 0)
    found = identify(arrival, departure, expected_servers=servers)
    assert found.candidates.set_index("servers").loc[servers, "policy"].iloc[0] == "ps"
    assert (found.policy, found.servers, found.reason) == (policy, servers, "")
    assert found.score < 0


def test_random_order_on_several_servers_is_taken_for_no_other_policy():
    """Processor sharing was named: it explains any log, and its demands hardly depended on what requests met."""
    arrival, departure, *_ = simulated(4, 0.9, 0.2, "random", 1)
    assert identify(arrival, departure, expected_servers=4, simulate=False).policy == "ps"
    found = identify(arrival, departure, expected_servers=4)
    assert (found.policy, found.servers) == (None, None)
    assert found.reason.startswith("ps is likeliest, but logs simulated under it do not look like this one: those in r")


@pytest.mark.parametrize(
    ("tick_s", "score", "distance", "policy"),
    [(0.0, 0.65, 1.0, "ps"), (0.0, 0.75, 1.0, None), (0.0, 0.75, 2.0, None), (0.01, 0.65, 1.0, None)],
)
def test_with_exact_stamps_random_order_must_be_clearly_likelier(monkeypatch, tick_s, score, distance, policy):
    """A bursty log of processor sharing was refused although its likelihood is right."""
    places = np.array([[0.5, 1 - score], [score, 0.5]])
    trial = CandidateTrial((("ps", 2), ("random", 2)), places, np.ones((2, 2)), np.array([1.5, distance]))
    monkeypatch.setattr(identification, "discriminate", lambda *_: trial)
    arrival, departure, _ = log("ps", 2, "exponential", 3)
    if tick_s:
        arrival, departure = (np.floor(stamps / tick_s) * tick_s for stamps in (arrival, departure))
    assert identify(arrival, departure, expected_servers=2, tick_s=tick_s).policy == policy


def test_classes_make_priority_a_candidate():
    classes = np.random.default_rng(2).integers(0, 3, 1000)
    arrival, departure, _ = log("priority", 2, "uniform", 3, priority=classes)
    assert identify(arrival, departure, priority=classes).policy == "priority"
    assert identify(arrival, departure).policy != "priority"


def test_time_slices_of_another_length_are_taken_for_processor_sharing():
    arrival, departure, _ = log("rr", 2, "uniform", 1, quantum_s=0.02)
    found = identify(arrival, departure)
    assert (found.policy, found.servers) == ("ps", 2)


def test_wrong_stamps_of_milliseconds_do_not_hide_the_policy():
    arrival, departure, rng = log("fcfs", 2, "uniform", 1)
    found = identify(arrival, np.round(departure + rng.exponential(0.003, len(departure)), 3))
    assert (found.policy, found.servers) == ("fcfs", 2)


def test_equal_demands_make_policies_the_same_and_the_simplest_is_named():
    arrival = np.cumsum(np.random.default_rng(1).exponential(2.0, 1000))
    found = identify(arrival, serve("srpt", arrival, np.full(1000, 1.5), 1).departure_s)
    assert (found.policy, found.servers) == ("fcfs", 1)
    assert ("srpt", 1) in found.rivals


def test_shuffled_departures_of_uniform_demands_fit_nothing():
    arrival, departure, rng = log("fcfs", 2, "uniform", 4, n=2000)
    here, out, events = [], np.empty(len(arrival)), pairs(arrival, departure)
    for time, job in zip(events.time_s, events.job, strict=True):
        if job >= 0:
            here.append(job)
        else:
            out[here.pop(rng.integers(len(here)))] = time + arrival[0]
    found = identify(arrival, np.maximum(out, arrival))
    assert (found.policy, found.servers) == (None, None)
    assert found.reason.startswith("nothing fits: under ps")


def test_demands_that_grow_with_the_congestion_met_are_refused():
    rng = np.random.default_rng(3)
    arrival = np.cumsum(rng.exponential(2.0, 3000))
    quiet = serve("fcfs", arrival, rng.uniform(1, 2, 3000), 1).departure_s
    free, departure = 0.0, np.empty(3000)
    for i in range(3000):
        slow = 1.0 + 0.3 * (free > arrival[i])
        free = departure[i] = max(arrival[i], free) + slow * rng.uniform(1, 2)
    assert identify(arrival, quiet, servers=(1, 2, 3)).policy == "fcfs"
    assert identify(arrival, departure, servers=(1, 2, 3)).policy is None


@pytest.mark.statistical
def test_true_demands_are_seldom_held_against_their_policy():
    """100 logs, each refused with probability below 1%: more than 5 are refused once in 2000 times."""
    refused = 0
    for seed in range(100):
        arrival, departure, _ = log("ps", 2, "exponential", seed)
        findings = agreement(reconstruct("ps", arrival, departure, 2), pairs(arrival, departure), 2)
        assert [each.name for each in findings] == ["congestion", "waiting", "alone"]
        refused += any(each.against for each in findings)
    assert refused <= 5


@pytest.mark.parametrize(
    ("arrival", "departure", "said"),
    [
        (np.empty(0), np.empty(0), "there are no requests"),
        (np.arange(50.0), np.arange(50.0) + 0.5, "0 departures while more than 1 were present"),
        (np.arange(50.0), np.arange(50.0) * 1.5 + 1.4, "demands depend on congestion"),
        (np.arange(50.0), np.full(50, np.nan), "0 departures while more than"),
    ],
)
def test_a_log_that_tells_too_little_is_refused(arrival, departure, said):
    found = identify(arrival, departure)
    assert found.policy is None
    assert said in found.reason


def wide(policy, servers, *, utilisation, demand, n=10_000, seed=1):
    """A log of many servers, on which hardly any request meets nobody."""
    rng = np.random.default_rng([seed, servers])
    demand = demand(rng, n)
    arrival = np.cumsum(rng.exponential(demand.mean() / (utilisation * servers), n))
    choice = rng.random(n) if policy == "random" else None
    return arrival, serve(policy, arrival, demand, servers, choice=choice).departure_s


def lognormal(rng, n):
    return rng.lognormal(0.0, 1.0, n)


@pytest.mark.statistical
@pytest.mark.parametrize("servers", [24, 64])
def test_a_busy_server_of_many_cores_is_told_where_their_number_is_said(servers):
    """Fixed logs; with other seeds 6 of 6 were told."""
    some = ("fcfs", "lcfs", "ps")
    found = identify(
        *wide("fcfs", servers, utilisation=0.95, demand=lognormal),
        policies=some,
        expected_servers=servers,
        simulate=False,
    )
    assert (found.policy, found.servers, found.reason) == ("fcfs", servers, "")
    assert found.candidates["servers"].max() > servers


@pytest.mark.parametrize("policy", ["random", "lcfs", "sjf"])
def test_requests_that_could_not_have_left_out_of_turn_do_not_show_that_they_left_in_turn(policy):
    """Demands vary little and waits are short, so another order contradicts nothing: 0 misfits in 1,500 departures."""
    arrival, departure = wide(policy, 32, utilisation=0.8, demand=lambda rng, n: rng.uniform(1, 2, n))
    found = identify(arrival, departure, policies=("fcfs",), expected_servers=32, simulate=False)
    best = found.candidates[found.candidates["servers"] == 32].iloc[0]
    assert best["misfits"] == 0
    assert best["crowded"] > 1000
    assert found.policy is None


def test_milliseconds_do_not_hide_the_policy_where_the_servers_are_said():
    """Response times are multiples of the resolution, as no demands of processor sharing are, which looks likely."""
    rng = np.random.default_rng(2)
    demand = rng.exponential(0.02, 8_000)
    arrival = np.cumsum(rng.exponential(0.02 / 0.5, 8_000))
    departure = serve("ps", arrival, demand, 1).departure_s
    stamps = np.floor(1e3 * arrival) / 1e3, np.floor(1e3 * departure) / 1e3
    some = ("fcfs", "ps", "fb", "lcfs_pr")
    found = identify(*stamps, policies=some, expected_servers=1)
    assert (found.policy, found.servers) == ("ps", 1)


@pytest.mark.parametrize(("policy", "expected"), [("ps", 2), ("fcfs", 8), ("ps", 1)])
def test_a_log_may_still_speak_against_the_number_that_was_said(policy, expected):
    arrival, departure, _ = log(policy, 4, "exponential", 5, n=4000)
    found = identify(arrival, departure, expected_servers=expected)
    assert (found.policy, found.servers) == (policy, 4)


def test_more_servers_than_requests_ever_present_have_no_queue():
    arrival, departure, _ = log("ps", 2, "uniform", 1)
    found = identify(arrival, departure, expected_servers=500)
    assert found.policy is None
    assert found.reason.endswith("requests were present, so none waited on 500 servers")


def test_every_large_number_of_servers_can_be_found():
    """A step of a fifth is followed by halving: the likeliest number is among the candidates, with its neighbours."""
    arrival, departure = wide("fcfs", 45, utilisation=0.95, demand=lognormal, n=4000)
    table = identify(arrival, departure, policies=("fcfs",), simulate=False).candidates
    assert {44, 45, 46} <= set(table["servers"])
    assert table["servers"].iloc[0] == 45
    assert len(table) < 40


def test_a_window_is_not_cut_down_to_where_two_lone_requests_happen_to_be():
    arrival, departure = wide("fcfs", 8, utilisation=0.9, demand=lognormal, n=6_000)
    found = identify(arrival, departure, policies=("fcfs",), servers=(8,), most=2_000, simulate=False)
    assert found.candidates["crowded"].iloc[0] > 500


def test_a_long_log_is_judged_by_its_middle():
    arrival, departure, _ = log("ps", 2, "uniform", 1, n=5000)
    departure[:50] += 1e4  # what happens at the start is not looked at
    found = identify(arrival, departure, most=1000, servers=(1, 2, 3))
    assert (found.policy, found.servers) == ("ps", 2)
    assert found.candidates["crowded"].max() < 1000


def test_the_table_of_candidates_is_in_order_of_likelihood():
    found = identify(*log("lcfs", 1, "uniform", 1)[:2], servers=(1, 2))
    table = found.candidates
    assert list(table.iloc[0, :2]) == ["lcfs", 1]
    assert table["log_likelihood"].is_monotonic_decreasing
    assert table["misfits"].iloc[0] == 0
    assert len(table) == 2 * 8 + 1


def test_the_unit_of_time_is_a_matter_of_convention():
    arrival, departure, _ = log("ps", 2, "exponential", 5)
    one, thousand = (
        identify(c * arrival, c * departure, policies=("ps", "fcfs", "fb"), simulate=False) for c in (1.0, 1000.0)
    )
    assert one.score == pytest.approx(thousand.score, abs=1e-3)


def test_the_likelihood_is_that_of_departures_not_of_demands():
    """The same exponential demands explain both orders of service equally well but for the choice of who left."""
    arrival, departure, _ = log("fcfs", 1, "exponential", 1)
    longest = float((departure - arrival).max())
    first, shared = (log_likelihood(reconstruct(p, arrival, departure, 1), longest, 99) for p in ("fcfs", "ps"))
    present = np.array([((arrival < d) & (departure >= d)).sum() for d in departure])
    assert first - shared == pytest.approx(np.log(present).sum(), rel=0.35)


@pytest.mark.parametrize(
    "more", [{"policies": ()}, {"policies": ("random",), "servers": (2,)}, {"policies": ("priority",)}]
)
def test_no_candidate_is_an_error(more):
    with pytest.raises(ValueError, match="there is no candidate"):
        identify(np.array([0.0, 0.5]), np.array([1.0, 2.0]), **more)


def test_slices_much_shorter_than_stays_are_not_tried():
    arrival, departure, _ = log("ps", 2, "uniform", 1)
    assert "rr" in set(identify(arrival, departure, servers=(2,)).candidates["policy"])
    found = identify(3600 * arrival, 3600 * departure, servers=(2,))
    assert "rr" not in set(found.candidates["policy"])
    assert found.policy == "ps"


def made(demand, wrong=0, unfinished=0):
    """What a policy makes of a log of which the last requests contradict it, and those before them have not left."""
    fits, finished = np.full(len(demand), True), np.full(len(demand), True)
    fits[len(demand) - wrong :] = False
    finished[len(demand) - wrong - unfinished : len(demand) - wrong] = False
    return Reconstruction(np.asarray(demand, dtype=np.float64), fits, np.ones(len(demand)), finished)


@pytest.mark.parametrize("wrong", [0, 1, 7])
@pytest.mark.parametrize("unit", [1e-3, 60.0])
def test_another_unit_of_time_divides_the_density_of_every_departure_by_it_misfits_included(wrong, unit):
    demand = np.random.default_rng(1).exponential(1.0, 50)
    seconds = log_likelihood(made(demand, wrong, 3), 9.0, 9)
    others = log_likelihood(made(demand * unit, wrong, 3), 9.0 * unit, 9)
    assert seconds - others == pytest.approx(47 * np.log(unit))


def test_a_misfit_costs_its_share_as_it_is_learnt_spread_over_the_longest_stay():
    """Of ten departures while somebody waited none or one: the arcsine law's beta integrals have the ratio 1/19."""
    demand = np.random.default_rng(2).exponential(1.0, 50)
    without, one = log_likelihood(made(demand), 20.0, 10), log_likelihood(made([*demand, 1.0], wrong=1), 20.0, 10)
    assert one - without == pytest.approx(np.log(1 / 19 / 20.0))


def test_requests_that_have_not_left_do_not_count():
    demand = np.random.default_rng(3).exponential(1.0, 20)
    assert log_likelihood(made([*demand, 0.3], unfinished=1), 9.0, 9) == log_likelihood(made(demand), 9.0, 9)


@pytest.mark.parametrize(("policy", "servers"), [("fcfs", 4), ("lcfs", 1), ("ps", 16), ("lcfs_pr", 4), ("srpt", 1)])
def test_stamps_rounded_to_a_twentieth_of_the_mean_demand_do_not_hide_the_policy(policy, servers):
    arrival, departure = wide(policy, servers, utilisation=0.9, demand=lambda rng, n: rng.exponential(0.02, n), n=4000)
    stamps = (np.floor(1e3 * arrival) / 1e3, np.floor(1e3 * departure) / 1e3)
    found = identify(*stamps, expected_servers=servers)
    assert (found.policy, found.servers) == (policy, servers)


@pytest.mark.parametrize("policy", ["fcfs", "lcfs_pr", "priority"])
@pytest.mark.parametrize("servers", [1, 5])
def test_rounded_stamps_never_contradict_the_policy_that_served(policy, servers):
    """Rounding keeps the order of events or makes them equal, and the policy gets the order that suits it."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        arrival, demand = np.cumsum(rng.exponential(1 / servers, 400)), rng.exponential(0.9, 400)
        classes = rng.integers(0, 3, 400) if policy == "priority" else None
        departure = serve(policy, arrival, demand, servers, priority=classes).departure_s
        coarse = (0.5 * np.floor(2 * arrival), 0.5 * np.floor(2 * departure))
        assert reconstruct(policy, *coarse, servers, priority=classes, tick_s=0.5).fits.all()
