"""Which session a request belongs to."""

from service.cache.sessions import Sessions
from service.identity.model import ModelIdentity
from service.identity.request import Identity, KeyPolicy, Namespace, identify_chat

FIRST = [{"role": "user", "content": "Is it free?"}]
SECOND = [*FIRST, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Book it."}]


def identity(messages: list[dict[str, str]]) -> Identity:
    place = Namespace("north", "default")
    return identify_chat({"messages": messages}, namespace=place, model=ModelIdentity("m"), policy=KeyPolicy())


def test_a_conversation_goes_on_in_the_session_of_its_last_turn():
    sessions = Sessions()
    name = sessions.name(identity(FIRST), None)
    assert name is not None
    assert sessions.name(identity(SECOND), None) == name


def test_a_name_that_was_given_counts_and_is_kept_for_the_next_turn():
    sessions = Sessions()
    assert sessions.name(identity(FIRST), "visit-5") == "visit-5"
    assert sessions.name(identity(SECOND), None) == "visit-5"


def test_each_first_question_begins_a_session():
    sessions = Sessions()
    assert sessions.name(identity(FIRST), None) != sessions.name(identity(FIRST), None)


def test_a_turn_whose_earlier_one_is_not_known_is_left_to_the_log():
    assert Sessions().name(identity(SECOND), None) is None
