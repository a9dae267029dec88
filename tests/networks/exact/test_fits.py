"""Where the proof that nothing is rounded holds, and where it stops: one above the limit."""

import numpy as np
import pytest

from byheart.errors import BadInput
from byheart.networks.exact import Embedding, Flatten, Positions, TokenSum, integers
from byheart.networks.exact.fits import mixing_matrix, require_fit

from .oracle import affine, feed_forward, hardmax, on_tokens, on_vectors, uniform

both_floats = pytest.mark.parametrize("bits", [24, 53])


def ids(*rows):
    return np.array(rows, dtype=np.int64)


def refused(network, inputs, mantissa, message):
    with pytest.raises(BadInput, match=f"^{message}"):
        require_fit(network, inputs, mantissa)


@both_floats
def test_the_limit_itself_fits_and_one_more_does_not(bits):
    """2 · 2^(p-1) = 2^p is held by p bits; 2^p + 1 is the first integer that is not."""
    half = 2 ** (bits - 1)
    require_fit(on_tokens(feed_forward(affine([[half]], [0]))), ids([2]), bits)
    require_fit(on_tokens(feed_forward(affine([[-half]], [0]))), ids([2]), bits)
    above = on_tokens(feed_forward(affine([[half]], [1], role="fold"), name="label"))
    refused(above, ids([2]), bits, "label.0.fold: values may need")
    require_fit(above, ids([1]), bits)


@both_floats
def test_the_refusal_says_how_many_bits(bits):
    """2^p + 1 has p + 1 bits, and so has 2^(p+1) - 1."""
    message = f"may need {bits + 1} bits; the float type holds {bits}; keep the exact network"
    for value in (2**bits + 1, 2 ** (bits + 1) - 1):
        constant = on_tokens(feed_forward(affine([[0]], [value])))
        refused(constant, ids([0]), bits, f"feed_forward.0.affine: values {message}")


@both_floats
def test_terms_that_cancel_do_not_count_less(bits):
    """x - x is 0, but the sum of the absolute values is 2x: fine up to x = 2^(p-1)."""
    difference = on_vectors(feed_forward(affine([[1, -1]], [0])), dim=2)
    half = 2.0 ** (bits - 1)
    require_fit(difference, np.array([[[half, half]]]), bits)
    refused(difference, np.array([[[half, half + 1]]]), bits, "feed_forward.0.affine: values may need")


@both_floats
def test_a_bias_counts_on_the_grid_of_the_values(bits):
    """Beside halves, a bias b is 2b: 2^(p-1) - 1 and a half is (2^p - 2 + 1)/2; 2^(p-1) and a half is one too many."""
    halves = np.array([[[0.5]]])
    for relu in (True, False):
        fits = on_vectors(feed_forward(affine([[1]], [2 ** (bits - 1) - 1], relu=relu)))
        require_fit(fits, halves, bits)
        above = on_vectors(feed_forward(affine([[1]], [-(2 ** (bits - 1))], relu=relu)))
        refused(above, halves, bits, "feed_forward.0.affine")


@both_floats
def test_division_that_comes_out_gives_its_bits_back(bits):
    """(4 · 3) / 4 = 3 is an integer again, and 3 + (2^p - 3) fits; 3 / 4 + … needs the two bits behind the point."""
    end = affine([[1]], [2**bits - 3])
    exact = on_tokens(feed_forward(affine([[4]], [0], shift=2), end))
    require_fit(exact, ids([3]), bits)
    refused(on_tokens(feed_forward(affine([[1]], [0], shift=2), end)), ids([3]), bits, "feed_forward.1.affine")
    refused(exact, ids([4]), bits, "feed_forward.1.affine")
    require_fit(on_tokens(feed_forward(affine([[1]], [0], shift=2), end)), ids([0], [4], [8])[:2], bits)


@both_floats
def test_embeddings_and_positions(bits):
    limit = 2**bits
    require_fit(on_tokens(Embedding(integers([[limit], [-limit]]))), ids([0], [1]), bits)
    refused(on_tokens(Embedding(integers([[0], [-limit - 1]]))), ids([0]), bits, "embedding.W_E: values may need")
    require_fit(on_tokens(Positions(integers([[limit - 1]]))), ids([1]), bits)
    refused(on_tokens(Positions(integers([[limit - 1]]))), ids([2]), bits, "positions: values may need")
    refused(on_vectors(Positions(integers([[limit // 2]]))), np.array([[[0.5]]]), bits, "positions: values may need")


@both_floats
def test_a_residual_is_a_sum_of_its_own(bits):
    double = on_tokens(feed_forward(affine([[1]], [0]), residual=True, name="twice"))
    half = 2 ** (bits - 1)
    require_fit(double, ids([half]), bits)
    refused(double, ids([half + 1]), bits, "twice: values may need")


@both_floats
def test_the_sum_over_the_sequence_has_to_fit(bits):
    """W_O W_V = 0 adds nothing, but the sum of four numbers is still taken: 4 · 2^(p-2) fits, and one more does not."""
    nothing = on_tokens(uniform([[0]], [[1]]), length=4)
    quarter = 2 ** (bits - 2)
    require_fit(nothing, ids([quarter] * 4), bits)
    refused(nothing, ids([quarter] * 3 + [quarter + 1]), bits, r"attention \(sum\): values may need")
    refused(
        nothing, ids([quarter, -quarter] * 2, [quarter, quarter, quarter, -quarter - 1]), bits, r"attention \(sum\)"
    )


def test_a_long_sum_does_not_wrap_around():
    """4096 · (2⁵² + 1) = 2⁶⁴ + 4096: in int64 that is 4096."""
    network = on_tokens(uniform([[1]], [[4096]]), length=4096)
    refused(network, ids([2**52 + 1] * 4096), 53, r"attention \(sum\): values may need")


def test_a_mean_has_to_be_a_sum():
    """n = 3: W_O W_V = 6 is 2 for every token; 6 and 4 in one matrix, or 2, would be thirds."""
    require_fit(on_tokens(uniform([[2]], [[3]]), length=3), ids([1, 2, 3]), 24)
    message = "attention: W_O W_V is not divisible by the length 3, so 1/n would be rounded"
    refused(on_tokens(uniform([[2]], [[1]]), length=3), ids([1, 2, 3]), 53, message)
    mixed = on_vectors(uniform([[1, 0], [0, 1]], [[6, 0], [4, 0]]), Flatten(), END, length=3, dim=2)
    refused(mixed, np.ones((1, 3, 2)), 53, message)


END = feed_forward(affine([[1] * 6], [0]))


def test_the_matrix_of_a_mean():
    """[[1], [2]] [[3, -6]] = [[3, -6], [6, -12]], a third of which is [[1, -2], [2, -4]]."""
    assert mixing_matrix(uniform([[3, -6]], [[1], [2]]), 3, 2).tolist() == [[1, -2], [2, -4]]
    assert mixing_matrix(TokenSum(), 3, 2).tolist() == [[2, 0], [0, 2]]


@both_floats
def test_vectors_on_too_fine_a_grid(bits):
    """1 and 2^-p need p bits in common, 2 and 2^-p one more, and so do 1 + ulp and its half."""
    network = on_vectors(feed_forward(affine([[1, 0]], [0])), dim=2)
    fine = 2.0**-bits
    message = f"the input vectors need more than {bits} bits on a common grid; keep the exact network"
    require_fit(network, np.array([[[1.0, fine]]]), bits)
    refused(network, np.array([[[2.0, fine]]]), bits, message)
    refused(network, np.array([[[0.0, fine / 2]]]), bits, message)
    refused(network, np.array([[[0.1, 3e-20]]]), bits, message)
    refused(network, np.array([[[5e-324, 0.0]]]), bits, message)
    refused(network, np.array([[[1e300, 0.0]]]), bits, message)


def test_vectors_beyond_all_grids_are_refused_quietly():
    network = on_vectors(feed_forward(affine([[1, 0]], [0])), dim=2)
    refused(network, np.array([[[1.7e308, 0.5]]]), 53, "the input vectors need more than 53 bits")


def test_token_ids_have_to_fit_even_where_nothing_is_computed():
    require_fit(on_tokens(), ids([2**53]), 53)
    with pytest.raises(BadInput):
        require_fit(on_tokens(), ids([2**53 + 1]), 53)


def test_the_smallest_machine_integer_has_an_absolute_value():
    with pytest.raises(BadInput):
        require_fit(on_tokens(feed_forward(affine([[1]], [1], relu=False))), ids([-(2**63)]), 53)


@both_floats
def test_a_weight_on_a_coordinate_that_is_zero_has_to_be_a_float(bits):
    """On 0 every weight gives 0, but 2^p + 1 cannot even be written down."""
    message = "feed_forward.0.affine: values may need"
    for weight in (2**bits + 1, -3 * (2**bits + 1)):
        refused(on_tokens(feed_forward(affine([[weight]], [0]))), ids([0]), bits, message)
    require_fit(on_tokens(feed_forward(affine([[3 * 2**bits]], [0]))), ids([0]), bits)


def test_hardmax_is_refused():
    network = on_tokens(hardmax([[1]], [[1]], [[1]], [[1]]), length=2)
    refused(network, ids([0, 1]), 53, "attention: hardmax attention has no float twin yet; keep the exact network")
