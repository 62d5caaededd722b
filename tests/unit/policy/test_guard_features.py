import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.policy.guards.features import Features, extract
from service.policy.guards.scripts import foreign_scripts
from service.policy.guards.words import related, stem


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("a loan of 5k", ["5000"]),
        ("a loan of five thousand", ["5000"]),
        ("a loan of 5,000", ["5000"]),
        ("a loan of ５０００", ["5000"]),
        ("a loan of two hundred and five", ["205"]),
        ("a loan of 1.5 million dollars", ["1500000 dollar"]),
        ("a loan of $1.5m", ["1500000 dollar"]),
        ("a loan of USD 20", ["20 dollar"]),
        ("take 30mg", ["30 milligram"]),
        ("take 30 mg", ["30 milligram"]),
        ("grew by 12.50 %", ["12.5 percent"]),
        ("grew by 12.5 per cent", ["12.5 percent"]),
        ("an oven at 180°C", ["180 celsius"]),
        ("an oven at 180 degrees Celsius", ["180 celsius"]),
        ("the reign of Louis XIV", ["14"]),
        ("三百五十元", ["350 yuan"]),
        ("三百五", ["350"]),
        ("3.5万元", ["35000 yuan"]),
        ("一百二十平方米", ["120 square metre"]),
        ("百分之二十", ["20 percent"]),
        ("三分之一", ["33.333333 percent"]),
        ("零下五度", ["-5 degree"]),
        ("五千米", ["5 kilometre"]),
        ("一个半小时", ["90 minute"]),
        ("半个月", ["0.5 month"]),
        ("四十八小时", ["2 day"]),
        ("within fourteen days", ["2 week"]),
        ("an hour and a half", ["90 minute"]),
        ("2½ hours", ["150 minute"]),
        ("1 1/2 kg", ["1500 gram"]),
        ("three quarters of an hour", ["45 minute"]),
        ("three quarters of them", ["75 percent"]),
        ("1/3 of them", ["33.333333 percent"]),
        ("half of them", ["50 percent"]),
        ("the other half of them", []),
        ("half a million", ["500000"]),
        ("two dozen", ["24"]),
        ("0.5 g", ["500 milligram"]),
        ("100 km/h", ["100 kilometre per hour"]),
        ("100 kph", ["100 kilometre per hour"]),
        ("100 kilometres an hour", ["100 kilometre per hour"]),
        ("$5/month", ["5 dollar per month"]),
        ("50 mg daily", ["50 milligram per day"]),
        ("20 m²", ["20 square metre"]),
        ("20 square meters", ["20 square metre"]),
        ("minus five degrees", ["-5 degree"]),
        ("10 minus 5", ["10", "5"]),
        ("a dozen eggs", ["12"]),
        ("no one knows which one it is", []),
    ],
)
def test_numbers_agree_in_every_spelling(text, numbers):
    assert list(extract(text).numbers) == numbers


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("open on 3 May", ["may 3"]),
        ("open on May 3rd", ["may 3"]),
        ("open on the 3rd of May 2024", ["2024-05-03"]),
        ("open on May 3, 2024", ["2024-05-03"]),
        ("open at 5pm", ["17:00"]),
        ("open at 5 pm", ["17:00"]),
        ("open at 17:00", ["17:00"]),
        ("since 2024-05-03", ["2024-05-03"]),
        ("open on Mondays", ["monday"]),
        ("you may march on", []),
        ("at noon", ["12:00"]),
        ("at 12 midnight", ["00:00"]),
        ("at 3:30 p.m.", ["15:30"]),
        ("at five o'clock", ["05:00"]),
        ("at a quarter to five", ["04:45"]),
        ("on 13/01/2024", ["2024-01-13"]),
        ("on 1/13/2024", ["2024-01-13"]),
        ("on 02.01.2024", ["2024-01-02"]),
        ("on 1/2/2024", ["01/02/2024"]),
        ("on 13-Jan-2024", ["2024-01-13"]),
        ("in May 2023", ["2023-05"]),
        ("in May of 2023", ["2023-05"]),
        ("in 2023-05", ["2023-05"]),
        ("in 05/2023", ["2023-05"]),
        ("2024年1月13日", ["2024-01-13"]),
        ("二〇二四年一月十三日", ["2024-01-13"]),
        ("五月一号", ["may 1"]),
        ("下午三点半", ["15:30"]),
        ("晚上十二点", ["00:00"]),
        ("60年代", ["60s"]),
    ],
)
def test_dates_agree_in_every_spelling(text, dates):
    assert list(extract(text).dates) == dates


def test_what_is_written_exactly_is_kept_exactly():
    found = extract("Run `ls -a` on https://Example.org/A then mail a.b@c.de about AB-77x and --force in v3.10")
    assert found.code == ("ls -a",)
    assert found.urls == ("example.org/A",)
    assert found.identifiers == ("--force", "AB-77x", "a.b@c.de")
    assert found.versions == ("3.10",)
    assert extract("Python 3.10").versions != extract("Python 3.1").versions
    assert extract("rename “old” to 'new'").quotes == ("old", "new")


@pytest.mark.parametrize(
    ("text", "negated"),
    [
        ("Which birds do not fly?", ["fly"]),
        ("Which birds don't fly?", ["fly"]),
        ("bread without yeast", ["yeast"]),
        ("I can't log in", ["?log"]),
        ("I do not know how to bake", ["know"]),
        ("not only birds fly", []),
        ("Don't birds fly?", ["*bird"]),
        ("Birds fly, don't they?", []),
        ("whether birds fly or not", []),
        ("my payment is not going through", ["*payment"]),
        ("打不开", ["*打"]),
        ("这个蘑菇不能吃吗", ["吃"]),
        ("你能不能来", []),
        ("非常好", []),
    ],
)
def test_negation_knows_what_it_negates(text, negated):
    assert list(extract(text).negated) == negated


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("When does it open?", "when"),
        ("What year did it open?", "when"),
        ("Could you tell me why it opened?", "why"),
        ("How many doors has it?", "how many"),
        ("Is it open?", "whether"),
        ("When walking home I lost my keys", None),
        ("为什么天空是蓝的", "why"),
    ],
)
def test_question_type(text, question):
    assert extract(text).question == ((question,) if question else ())


def test_courtesy_leaves_no_trace():
    plain = extract("how do I prune a rose")
    for text in (
        "How can I prune a rose?",
        "Hi, please tell me how to prune my rose, thanks",
        "how do you prune roses",
    ):
        assert extract(text).content == plain.content


@given(st.text(max_size=300))
def test_any_text_has_features_and_names_those_that_it_has(text):
    found = extract(text)
    named = found.to_json()
    assert all(named.values())
    assert Features(**{name: tuple(items) for name, items in named.items()}) == found


def test_a_text_is_readable_in_the_scripts_of_the_declared_languages():
    english = frozenset({"en"})
    assert foreign_scripts("What is 北京?", english) == ["Han"]
    assert foreign_scripts("How wide is the River Neiße at Görlitz?", english) == []
    assert foreign_scripts("Wie breit ist die Neiße?", frozenset({"de"})) == []
    assert foreign_scripts("北京在哪里", frozenset({"en", "zh"})) == []
    assert foreign_scripts("Где это?", frozenset({"mul"})) == []


def test_stems_drop_inflection_only():
    assert stem("cancelled") == stem("cancels") == stem("cancelling") == "cancel"
    assert stem("berries") == "berry"
    assert stem("heaviest") == stem("heavier") == "heavy"
    assert stem("unsafe") != stem("safe")
    assert related(stem("renewal"), stem("renew"))
    assert related("transfer", "trasnfer")
    assert not related("germany", "german")
