"""Images: how much of each program lies in shared code, and what an own image is like."""

import numpy as np
import pytest
from scipy import stats

from models.profiling.images import MODULE, generated_code, own_image, shared_images
from models.profiling.world import Library, Programs

NAMES = tuple(f"program-{i}" for i in range(400))


def test_unlinked_programs_have_nothing_of_a_library():
    how = Programs(libraries=(Library("libhalf", 3, 0.1, 0.5, 0.3),))
    share = shared_images(how, 1, NAMES)[-1].share
    assert 0.35 < (share > 0).mean() < 0.65
    assert share[share > 0].min() > 0.03


@pytest.mark.statistical
@pytest.mark.parametrize("log_sd", [0.2, 0.7])
def test_shares_are_log_normal_with_the_mean_and_the_spread_asked_for(log_sd):
    """4,000 draws: mean or spread beyond five standard errors, or another law at 1e-6, once in 360,000 worlds."""
    how = Programs(libraries=(Library("libx", 3, 0.05, 1.0, log_sd),))
    share = np.concatenate([shared_images(how, seed, NAMES)[-1].share for seed in range(10)])
    assert abs(share.mean() - 0.05) < 5 * share.std() / np.sqrt(share.size)
    kept = np.log(share[share < 0.79])
    assert kept.size > 0.999 * share.size
    assert kept.std() == pytest.approx(log_sd, rel=5 / np.sqrt(2 * kept.size))
    assert stats.kstest((kept - np.log(0.05) + log_sd**2 / 2) / log_sd, "norm").pvalue > 1e-6


def test_a_further_program_changes_nothing_of_the_others_wherever_it_stands():
    for before, after in zip(shared_images(Programs(), 3, NAMES[:4]), shared_images(Programs(), 3, NAMES[7::-1]),
                             strict=True):  # fmt: skip
        np.testing.assert_array_equal(after.mix[:3:-1], before.mix)
        np.testing.assert_array_equal(after.share[:3:-1], before.share)


def test_mixes_sum_to_one():
    for part in shared_images(Programs(), 2, NAMES[:9]):
        assert part.mix.sum(axis=1) == pytest.approx(np.ones(9))
        assert part.code.count == part.mix.shape[1]


def test_few_kernel_functions_leave_the_module_none_of_the_instructions():
    assert (shared_images(Programs(kernel_functions=4), 2, NAMES[:9])[MODULE].share == 0).all()


def test_main_and_handlers_run_the_least_of_their_programs():
    own = own_image(Programs(), 3, "search")
    assert own.mix.sum() == pytest.approx(1.0)
    assert own.mix[0] == own.mix.min()
    assert own.mix[1:5].max() < np.median(own.mix)


def test_only_some_programs_generate_code():
    share = np.array([own_image(Programs(), 3, name).generated for name in NAMES[:300]]) > 0
    assert 0.0 < share.mean() < 0.1
    assert generated_code(Programs(), 3).count == 1
