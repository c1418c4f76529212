"""The table of policies: every name once, codes of the kernels, and what follows from what else is said."""

from pathlib import Path
from typing import get_args

import pytest

from models.queues.open import OPEN_POLICIES
from models.queues.policies import POLICIES, PolicyName
from sim.queues.readable import SHARES

ROOT = Path(__file__).parents[3]


def test_every_name_has_its_policy_and_every_policy_its_code():
    assert set(POLICIES) == set(get_args(PolicyName)) == set(SHARES)
    assert sorted(policy.code for policy in POLICIES.values()) == list(range(len(POLICIES)))


def test_what_is_proved_is_not_refuted():
    assert not [policy.name for policy in POLICIES.values() if set(policy.proved) & set(policy.refuted)]


def test_requests_move_to_faster_servers_where_nobody_keeps_a_core():
    assert {name for name, policy in POLICIES.items() if policy.migrates} == {"ps", "fb", "lcfs_pr", "srpt", "priority"}


@pytest.mark.parametrize(("kept", "names"), [("open", OPEN_POLICIES), ("hidden", ("random",))])
def test_lists_are_read_off_the_table(kept, names):
    listed = {"open": [policy.open_form for policy in POLICIES.values()]}
    listed["hidden"] = [not policy.reconstructed_on_several for policy in POLICIES.values()]
    assert [name for name, holds in zip(POLICIES, listed[kept], strict=True) if holds] == list(names)


def test_the_document_says_what_each_does():
    text = (ROOT / "docs" / "policies.md").read_text()
    assert all(f"| `{policy.name}` | {policy.words} |" in text for policy in POLICIES.values())
