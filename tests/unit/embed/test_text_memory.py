import numpy as np
import pytest

from service.embed.memory import TextMemory


def vector(number):
    return np.full(2, number, dtype=np.float32)


def test_the_least_recently_used_text_is_forgotten_first():
    memory = TextMemory(2)
    memory.put("a", vector(1))
    memory.put("b", vector(2))
    memory.get("a")
    memory.put("c", vector(3))
    assert memory.get("b") is None
    assert memory.get("a")[0] == 1
    assert memory.get("c")[0] == 3
    assert len(memory) == 2


def test_a_memory_of_no_texts_remembers_nothing():
    memory = TextMemory(0)
    memory.put("a", vector(1))
    assert memory.get("a") is None


def test_a_remembered_vector_cannot_be_written_by_one_of_its_readers():
    memory = TextMemory(1)
    memory.put("a", vector(1))
    with pytest.raises(ValueError, match="read-only"):
        memory.get("a")[0] = 5
