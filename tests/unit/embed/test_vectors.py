import numpy as np
import pytest

from service.embed.vectors import TextTooLong, encodable, same_generation, text_key, unit
from service.errors import Code, SemcacheError


def rows(*values):
    return np.stack([unit(np.array(value, dtype=np.float64), len(value)) for value in values])


def test_a_vector_is_scaled_to_unit_length_in_float32():
    vector = unit(np.array([3.0, 4.0]), 2)
    assert vector.dtype == np.float32
    assert vector.tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_very_small_and_very_large_numbers_keep_their_direction(scale):
    assert unit(np.array([3.0, 4.0], dtype=np.float32) * np.float32(scale), 2).tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("values", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]], []])
def test_what_is_no_vector_is_an_error_and_never_a_vector(values):
    result = unit(np.array(values, dtype=np.float64), 2)
    assert isinstance(result, SemcacheError)
    assert result.code is Code.EMBEDDER_UNAVAILABLE


def test_the_same_model_in_another_number_format_is_the_same_generation():
    probe = np.random.default_rng(1).normal(size=(4, 64))
    assert same_generation(rows(*probe), rows(*probe.astype(np.float16)))


def test_one_changed_row_or_another_shape_is_another_generation():
    probe = np.random.default_rng(1).normal(size=(4, 64))
    changed = probe.copy()
    changed[2] += 0.1 * np.random.default_rng(2).normal(size=64)
    assert not same_generation(rows(*probe), rows(*changed))
    assert not same_generation(rows(*probe), rows(*probe[:3]))
    assert not same_generation(rows(*probe), rows(*probe[:, :32]))


def test_lone_surrogates_become_the_replacement_character_and_pairs_stay():
    assert encodable("a\ud800b") == "a\ufffdb"
    assert encodable("\udc00") == "\ufffd"
    assert encodable("\U0001f6a2 é \x00") == "\U0001f6a2 é \x00"


def test_texts_that_differ_in_a_lone_surrogate_have_different_keys():
    assert text_key("a\ud800") != text_key("a\ud801")


def test_a_text_that_is_too_long_says_so_without_its_words():
    error = TextTooLong(300, 256)
    assert error.code is Code.TEXT_TOO_LONG
    assert error.extra == {"limit": 256, "tokens": 300}
    assert "256" in error.detail
    assert TextTooLong(None, 256).extra == {"limit": 256}
