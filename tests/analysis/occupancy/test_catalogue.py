"""The catalogue of policies: examples that break, searches that find none smaller, theorems that hold where tried."""

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.occupancy.catalogue import broken, catalogue, finding, never_more_work
from models.queues.policies import POLICIES, Claim, Counterexample
from models.queues.serve import serve
from tests.helpers.integer_queues import broken_workloads

CLAIMS = get_args(Claim)
KNOWN = [finding(policy, claim) for policy in POLICIES for claim in CLAIMS]
REFUTED = [known for known in KNOWN if known.verdict == "refuted"]
PROVED = [known for known in KNOWN if known.verdict == "proved"]
named = {"ids": lambda known: f"{known.policy}, {known.claim}"}


@pytest.mark.parametrize("known", REFUTED, **named)
def test_the_example_breaks_the_claim(known):
    assert broken(known.policy, known.claim, known.example)


@pytest.mark.parametrize("known", [known for known in REFUTED if "speed" not in known.claim], **named)
def test_no_workload_with_fewer_jobs_breaks_the_claim(known):
    """Every one with whole-numbered arrivals up to 4 (rr 8) and demands up to 4 (rr 6) was served."""
    example, wide = known.example, known.policy == "rr"
    fewer = range(2, len(example.arrival_s))
    grid = {"last": 8, "most": 6, "quantum": 2} if wide else {"last": 4, "most": 4}
    ways = {"servers": example.servers, "to": example.to}
    assert [broken_workloads(known.policy, known.claim, jobs=jobs, **ways, **grid) for jobs in fewer] == [
        0 for _ in fewer
    ]


@pytest.mark.parametrize(("policy", "claim", "most"), [("sjf", "completions", 3), ("lcfs", "each job", 2)])
def test_the_search_finds_what_there_is(policy, claim, most):
    assert broken_workloads(policy, claim, jobs=5, last=1, most=most, servers=1, to=2) > 0


def test_one_round_robin_server_broke_nothing_in_the_search():
    found = {
        claim: broken_workloads("rr", claim, jobs=4, last=8, most=6, servers=1, to=2, quantum=2) for claim in CLAIMS[:3]
    }
    assert found == dict.fromkeys(found, 0)


@pytest.mark.parametrize("known", PROVED, **named)
@given(data=st.data())
def test_a_proved_claim_holds_wherever_it_is_tried(known, data):
    jobs = data.draw(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=8))
    servers = 1 if known.claim == "speed of one" else data.draw(st.integers(1, 3))
    change = {"speed": data.draw(st.sampled_from([1.1, 1.5, 3.0]))} if "speed" in known.claim else {"to": servers + 1}
    arrival, demand = zip(*sorted(jobs), strict=True)
    priority = tuple(data.draw(st.permutations(range(len(jobs)))))
    assert not broken(known.policy, known.claim, Counterexample(servers, arrival, demand, priority=priority, **change))


def test_claims_follow_from_each_other():
    table = catalogue().pivot(index="policy", columns="claim", values="verdict")
    assert (table.loc[table["each job"] == "proved", "completions"] == "proved").all()
    assert (table.loc[table["completions"] == "proved", "expansion"] == "proved").all()
    assert (table.loc[table["speed"] == "proved", "speed of one"] == "proved").all()
    assert (table.loc[table["speed of one"] == "refuted", "speed"] == "refuted").all()


def test_an_example_about_speed_says_nothing_about_servers():
    with pytest.raises(ValueError, match="an example for completions needs a number `to`"):
        broken("lcfs", "completions", finding("lcfs", "speed").example)


def test_the_document_shows_the_catalogue():
    text = (Path(__file__).parents[3] / "docs" / "policies.md").read_text()
    table = catalogue().pivot(index="policy", columns="claim", values="verdict")[list(CLAIMS)]
    rows = [
        f"| `{policy}` | {POLICIES[policy].words} | {' | '.join(verdicts)} |"
        for policy, verdicts in zip(table.index, table.to_numpy(), strict=True)
    ]
    assert "\n".join(rows) in text


def test_the_document_shows_every_example():
    text = (Path(__file__).parents[3] / "docs" / "policies.md").read_text()
    for known in REFUTED:
        times = (
            ", ".join(f"{value:g}" for value in np.asarray(side))
            for side in (known.example.arrival_s, known.example.demand_s)
        )
        assert all(part in text for part in times)


@pytest.mark.parametrize("policy", [policy for policy in POLICIES if never_more_work(policy)])
@given(data=st.data())
def test_no_more_work_is_left_wherever_it_is_tried(policy, data):
    """The work done by every event, a sum of busy servers over the steps between events, is no less."""
    jobs = data.draw(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), min_size=1, max_size=8))
    servers = data.draw(st.integers(1, 3))
    arrival, demand = (np.array(side, dtype=float) for side in zip(*sorted(jobs), strict=True))
    priority = np.array(data.draw(st.permutations(range(len(jobs)))))
    ends = [serve(policy, arrival, demand, k, priority=priority).departure_s for k in (servers, servers + 1)]
    times = np.unique(np.concatenate([arrival, *ends]))
    done = []
    for k, left in zip((servers, servers + 1), ends, strict=True):
        present = ((arrival <= times[:-1, None]) & (left > times[:-1, None])).sum(axis=1)
        done.append(np.cumsum(np.minimum(present, k) * np.diff(times)))
    assert (done[1] >= done[0] - 1e-9).all()


def test_the_policies_of_b3_are_those_of_each_job_and_srpt():
    assert {policy for policy in POLICIES if never_more_work(policy)} == {
        *("fcfs", "lcfs_pr", "priority", "ps", "fb", "srpt")
    }
