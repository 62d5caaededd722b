import time

import pytest

from service.policy.guards import literal_rules
from service.policy.guards.checks import Guard, Outcome, check
from service.policy.guards.features import extract

APART = [
    (Guard.NUMBERS, "Boil the eggs for 6 minutes", "Boil the eggs for 9 minutes"),
    (Guard.NUMBERS, "Take 30 mg of it daily", "Take 30 g of it daily"),
    (Guard.NUMBERS, "What can I buy for 5k euros?", "What can I buy for five hundred euros?"),
    (Guard.DATES, "Is the museum open on Tuesday?", "Is the museum open on Thursday?"),
    (Guard.DATES, "Tides in Cork on 3 June", "Tides in Cork on 4 June"),
    (Guard.ORDINALS, "Who was the third king?", "Who was the 4th king?"),
    (Guard.ORDINALS, "Who was the first king?", "Who was the last king?"),
    (Guard.NEGATION, "I remember the code", "I can't remember the code"),
    (Guard.NEGATION, "We know the rules", "We don't know the rules"),
    (Guard.NEGATION, "I know how to skate", "I don't know how to skate"),
    (Guard.VERSIONS, "What is new in version 3.1?", "What is new in version 3.10?"),
    (Guard.IDENTIFIERS, "Where is parcel ZX-4411?", "Where is parcel ZX-4114?"),
    (Guard.IDENTIFIERS, "What does grep -v do?", "What does grep -V do?"),
    (Guard.IDENTIFIERS, "Cancel order 000123", "Cancel my order"),
    (Guard.URLS, "Summarise https://a.example/x", "Summarise https://a.example/y"),
    (Guard.QUOTES, 'Move "north" below "south"', 'Move "south" below "north"'),
    (Guard.CODE, "What does `a += 1` do?", "What does `a -= 1` do?"),
    (Guard.CODE, "Simplify x = a - b", "Simplify x = b - a"),
    (Guard.SCRIPT, "Where is the station?", "车站在哪里?"),
    (Guard.LANGUAGE, "say good morning in polish", "say good morning in czech"),
    (Guard.NEGATION, "Which birds fly?", "Which birds don't fly?"),
    (Guard.NEGATION, "Is the bridge stable?", "Is the bridge unstable?"),
    (Guard.NEGATION, "How to encrypt a disk", "How to decrypt a disk"),
    (Guard.NEGATION, "Was he careful?", "Was he careless?"),
    (Guard.NEGATION, "Is it possible to swim there?", "Is it impossible to swim there?"),
    (Guard.NEGATION, "cakes with sugar", "sugar-free cakes"),
    (Guard.NEGATION, "这种蘑菇能吃吗", "这种蘑菇不能吃吗"),
    (Guard.OPPOSITES, "Where can I buy stamps?", "Where can I sell stamps?"),
    (Guard.OPPOSITES, "Stretch before the run", "Stretch after the run"),
    (Guard.OPPOSITES, "Is Ben a pilot or a cook?", "Is Ben surely a pilot and a cook?"),
    (Guard.OPPOSITES, "Should I always wash rice?", "Should I never wash rice?"),
    (Guard.OPPOSITES, "Who is her uncle?", "Who is her aunt?"),
    (Guard.OPPOSITES, "这里的山高吗", "这里的山低吗"),
    (Guard.PERSONS, "Ann and Bob met; did he pay?", "Ann and Bob met; did she pay?"),
    (Guard.PERSONS, "If Ann and Bob met, would his sister know?", "If Ann and Bob met, would Ann's sister know?"),
    (Guard.PERSONS, "他是谁", "她是谁"),
    (Guard.DIRECTION, "A bus from York to Leeds", "A bus from Leeds to York"),
    (Guard.DIRECTION, "从北京到上海的火车", "从上海到北京的火车"),
    (Guard.ORDER, "Does Tom trust Ben?", "Does Ben trust Tom?"),
    (Guard.ORDER, "Did the dog chase the cat?", "Was the dog chased by the cat?"),
    (Guard.ORDER, "Does Tom need Ben?", "Is Tom needed by Ben?"),
    (Guard.ORDER, "The trout was eaten", "The trout ate"),
    (Guard.ORDER, "Who was invited?", "Who invited?"),
    (Guard.COMPARISON, "Which river is longer?", "Which river is shorter?"),
    (Guard.COMPARISON, "Which of the rivers is more salty?", "Which of the rivers is most salty?"),
    (Guard.ASPECT, "Is Ben a pilot?", "Did Ben use to be a pilot?"),
    (Guard.ASPECT, "Is Ben a pilot?", "Is Ben becoming a pilot?"),
    (Guard.QUESTION, "When was the tunnel closed?", "Why was the tunnel closed?"),
    (Guard.QUESTION, "什么时候开会", "为什么开会"),
    (Guard.WORDING, "The price in US dollars", "The price in Canadian dollars"),
    (Guard.IDENTIFIERS, "Open the file a.txt", "Open the file b.txt"),
    (Guard.NAMES, "How long did Ada stay in Rome?", "How long did Ada stay in Oslo?"),
    (Guard.LETTER_CASE, "Where do I get a Polish rug?", "Where do I get a polish rug?"),
    (Guard.LETTER_CASE, "Where can I find a Polish teacher?", "Where do I find a good polish teacher?"),
    (Guard.ACCENTS, "Write a résumé for me", "Write a resume for me"),
    (Guard.ACCENTS, "¿Cuántos años tienes?", "¿Cuántos anos tienes?"),
    (Guard.ACCENTS, "が", "か"),
    (Guard.SYMBOLS, "Rate this: 👍", "Rate this: 👎"),
    (Guard.SYMBOLS, "Is A ⊂ B or not?", "Is A ⊄ B or not?"),
    (Guard.SYMBOLS, "What is \u202e for?", "What is \ufeff for?"),
    (Guard.SYMBOLS, "Wave 👋🏻 back", "Wave 👋🏿 back"),
    (Guard.MOMENT, "What is today's price of gold?", "What is the current gold price?"),
    (Guard.MOMENT, "今天的金价是多少", "现在的黄金价格是多少"),
    (Guard.WORDING, "Can a hamster eat carrots?", "Can a parrot eat carrots?"),
    (Guard.NUMBERS, "May I return it within 2 weeks?", "May I return it within 12 days?"),
    (Guard.NUMBERS, "The lease runs 18 months", "The lease runs 18 weeks"),
    (Guard.NUMBERS, "Does -20 °C hurt?", "Does 20 °C hurt?"),
    (Guard.NUMBERS, "Does it take half an hour?", "Does it take an hour?"),
    (Guard.NUMBERS, "A quarter of the people", "A third of the people"),
    (Guard.NUMBERS, "I walk 100 km", "I drive 100 km/h"),
    (Guard.NUMBERS, "Is the room 20 square metres?", "Is the room 20 square feet?"),
    (Guard.NUMBERS, "I pay $5 a month", "I pay $5 yearly"),
    (Guard.DATES, "Is the shop open at noon?", "Is the shop open at midnight?"),
    (Guard.DATES, "Does it start at half past five?", "Does it start at half past six?"),
    (Guard.DATES, "Was it signed in May 2023?", "Was it signed in 2023-06?"),
    (Guard.DATES, "Was it signed on 01/02/2024?", "Was it signed on 2024-02-01?"),
    (Guard.ORDINALS, "Who won the twenty-first final?", "Who won the 22nd final?"),
    (Guard.NEGATION, "Why is my payment going through?", "Why is my payment not going through?"),
    (Guard.NEGATION, "Don't cats eat birds that can't fly?", "Do cats eat birds that can't fly?"),
    (Guard.NEGATION, "手机打得开吗", "手机打不开吗"),
    (Guard.NUMBERS, "两周内可以退货吗", "12天内可以退货吗"),
    (Guard.NUMBERS, "零下5度冷吗", "5度冷吗"),
    (Guard.DATES, "下午三点开会吗", "上午三点开会吗"),
    (Guard.DATES, "周一营业吗", "星期日营业吗"),
    (Guard.DATES, "礼拜三天气怎么样", "礼拜四天气怎么样"),
    (Guard.OPPOSITES, "How do I check in to the hostel?", "How do I check out of the hostel?"),
    (Guard.OPPOSITES, "Where do I sign in to the forum?", "Where do I sign off the forum?"),
    (Guard.OPPOSITES, "Which path leads into the wood?", "Which path leads out of the wood?"),
    (Guard.OPPOSITES, "最贵的茶是哪种", "最便宜的茶是哪种"),
    (Guard.ORDER, "Feed 3 cats and 2 dogs", "Feed 2 cats and 3 dogs"),
    (Guard.ORDER, "A tent for two adults and one child", "A tent for one adult and two children"),
    (Guard.ORDINALS, "Which is the longest cave?", "Which is the third longest cave?"),
    (Guard.ORDINALS, "Who was the third wife?", "Who was the wife?"),
    (Guard.ORDINALS, "When does the ferry leave?", "When does the last ferry leave?"),
    (Guard.ORDINALS, "Where is the next pharmacy?", "Where is the pharmacy?"),
    (Guard.DATES, "Show me last month's orders", "Show me this month's orders"),
    (Guard.DATES, "Who plays next week?", "Who played the previous week?"),
    (Guard.NEGATION, "Should hens ever eat avocado?", "Should hens never eat avocado?"),
    (Guard.NEGATION, "Who can see my posts?", "Who can't see my posts?"),
    (Guard.NEGATION, "Why can guests see the ledger?", "Why can't guests see the ledger?"),
    (Guard.NEGATION, "What can I carry on board?", "What can I not carry on board?"),
    (Guard.NEGATION, "I can whistle, what next?", "I can't whistle, what next?"),
    (Guard.OPPOSITES, "Do all ferns flower?", "Do no ferns flower?"),
    (Guard.OPPOSITES, "May I swim during the storm?", "May I swim after the storm?"),
    (Guard.ORDER, "Walk from quay A to quay B", "Walk from quay B to quay A"),
    (Guard.ORDER, "Move it from shelf D to shelf C", "Move it from shelf C to shelf D"),
    (Guard.WORDING, "Is vitamin A soluble?", "Is vitamin K soluble?"),
    (Guard.DIRECTION, "May I swim behind the dam?", "May I swim below the dam?"),
    (Guard.DIRECTION, "Who sang for the harbour?", "Who sang against the harbour?"),
    (Guard.DIRECTION, "A tale about a goose", "A tale with a goose"),
    (Guard.QUESTION, "Is the weir open?", "When is the weir open?"),
    (Guard.QUESTION, "Do swans sing at night?", "Why do swans sing at night?"),
    (Guard.QUESTION, "Do swans sing at night?", "How do swans sing at night?"),
    (Guard.QUESTION, "Is my boat seized?", "Why is my boat seized?"),
    (Guard.QUESTION, "Write a log of the tides", "How do I write a log of the tides?"),
    (Guard.MODALITY, "Will the crew leave the boat?", "Must the crew leave the boat?"),
    (Guard.QUESTION, "How was the bell hung?", "Where was the bell hung?"),
    (Guard.WORDING, "Is the tune in A minor?", "Is the tune in B minor?"),
    (Guard.CODE, "What does `len` do?", "What does `min` do?"),
    (Guard.CODE, "What does `Len` do?", "What does len do?"),
    (Guard.DIRECTION, "Is A nearer than B?", "Is B nearer than A?"),
    (Guard.COMPARISON, "Is she older than her cousin?", "Is her cousin older than she?"),
    (Guard.COMPARISON, "Which is larger?", "Which is largest?"),
    (Guard.LETTER_CASE, "Where is the field userId set?", "Where is the field userid set?"),
    (Guard.MANNER, "Explain briefly how dew forms", "Explain in detail how dew forms"),
    (Guard.MANNER, "How does dew form? Answer yes or no.", "How does dew form? Explain your answer."),
    (Guard.MANNER, "How does dew form?", "How does dew form? Answer in one sentence."),
    (Guard.MANNER, "How does dew form?", "How does dew form? Please reply as a sailor."),
    (Guard.MANNER, "Give the ferry times in JSON", "Give the ferry times in YAML"),
    (Guard.MANNER, "Show how to tie a bowline", "Show how to tie a bowline step by step"),
    (Guard.BOUNDS, "Which boats sailed before 1950?", "Which boats sailed since 1950?"),
    (Guard.BOUNDS, "Which boats sailed in 1950?", "Which boats sailed until 1950?"),
    (Guard.BOUNDS, "Must it weigh up to 5 kg?", "Must it weigh over 5 kg?"),
    (Guard.BOUNDS, "Is it free for children of 12?", "Is it free for children under 12?"),
    (Guard.BOUNDS, "Is it free at 12 and under?", "Is it free at 12 and over?"),
    (Guard.BOUNDS, "May I bring 2 litres of oil?", "May I bring more than 2 litres of oil?"),
    (Guard.BOUNDS, "No more than 20 words", "More than 20 words"),
    (Guard.BOUNDS, "Is the kiosk open till 8 pm?", "Is the kiosk open from 8 pm?"),
    (Guard.BOUNDS, "Do I pay within 14 days?", "Do I pay after 14 days?"),
    (Guard.QUANTIFIERS, "Do all ducks dive?", "Do some ducks dive?"),
    (Guard.QUANTIFIERS, "Do any ducks dive?", "Do all ducks dive?"),
    (Guard.QUANTIFIERS, "List every lock on the canal", "List one lock on the canal"),
    (Guard.QUANTIFIERS, "May only anglers use the pier?", "May anglers use the pier?"),
    (Guard.MODALITY, "What may I feed a duck?", "What must I feed a duck?"),
    (Guard.MODALITY, "Do I have to moor at the quay?", "Can I moor at the quay?"),
    (Guard.MODALITY, "Should I oil the hinge daily?", "Can I oil the hinge daily?"),
    (Guard.ASPECT, "Who is the harbour master of Riga?", "Who was the harbour master of Riga?"),
    (Guard.ASPECT, "When does the lock in Riga open?", "When did the lock in Riga open?"),
    (Guard.ASPECT, "How many people live in Riga?", "How many people lived in Riga?"),
    (Guard.ASPECT, "What's the capital of Riga's county?", "What was the capital of Riga's county?"),
    (Guard.PERSONS, "What is my name?", "What is your name?"),
    (Guard.NAMES, "Who directed Gremlin?", "Who directed Gremlins?"),
    (Guard.NAMES, "who wrote the novel orlando", "who wrote the novel orlandos"),
    (Guard.NAMES, "Who is the mayor of Halifax?", "Who is the mayor of Halifax, Yorkshire?"),
    (Guard.ORDER, "Turn a text file into a scan", "Turn a scan into a text file"),
    (Guard.NEGATION, "Which cakes contain nuts?", "Which cakes are free of nuts?"),
    (Guard.NEGATION, "I have received my scarf", "I have not received my scarf yet"),
    (Guard.NEGATION, "Somebody mended the net", "Nobody mended the net"),
    (Guard.NEGATION, "How do I bake bread?", "How do I bake bread without an oven?"),
    (Guard.NEGATION, "Ist der Hafen offen?", "Ist der Hafen nicht offen?"),
    (Guard.QUOTES, "Translate into Dutch: I row", "Translate into Dutch: I rowed"),
    (Guard.QUOTES, "Correct the spelling: seperate", "Correct the spelling: separate"),
    (Guard.QUOTES, "Write in capitals and count the letters: Rye", "Write in capitals and count the letters: rye"),
    (Guard.WORDING, "What rhymes with the word oar?", "What rhymes with the word oars?"),
    (Guard.WORDING, "Spell the word harbour", "Spell the word harbor"),
    (Guard.WORDING, "Is the letter a in it?", "Is the letter n in it?"),
    (Guard.NUMBERS, "Is 5 mW much?", "Is 5 MW much?"),
    (Guard.NUMBERS, "How fast is 10 Mb/s?", "How fast is 10 MB/s?"),
    (Guard.CODE, "What does f(a, b) give?", "What does f(b, a) give?"),
    (Guard.CODE, "What does cd .. do?", "What does cd . do?"),
    (Guard.CODE, "What is t[i][j]?", "What is t[j][i]?"),
    (Guard.CODE, "What does i++ do?", "What does ++i do?"),
    (Guard.CODE, "What does & do in it?", "What does && do in it?"),
    (Guard.IDENTIFIERS, "Write the date as DD/MM/YY", "Write the date as MM/DD/YY"),
    (Guard.DIRECTION, "A poem about a goose", "A poem for a goose"),
    (Guard.IDENTIFIERS, "Is grade A rare?", "Is grade A- rare?"),
    (Guard.MANNER, "A short explanation of dew", "An explanation of dew"),
    (Guard.MANNER, "How many moons has Mars? Just the number.", "How many moons has Mars?"),
    (Guard.WORDING, "...", ".."),
    (Guard.ORDER, "The oar is red and the mast is blue", "The oar is blue and the mast is red"),
    (Guard.ORDER, "Draw a red oar and a blue mast", "Draw a blue oar and a red mast"),
    (Guard.QUANTIFIERS, "Some of my ducks dive", "None of my ducks dive"),
    (Guard.WORDING, "can i moor for free in the us", "can i moor for free in the uk"),
    (Guard.WORDING, "Who is the deputy mayor of Riga?", "Who is the mayor of Riga?"),
    (Guard.WORDING, "How big is South Holland?", "How big is Holland?"),
    (Guard.WORDING, "Is a small boat dear?", "Is a boat dear?"),
]

ALIKE = [
    ("Keys of which old song", "Key of which old song"),
    ("I don't know how to prune a rose", "How do I prune a rose?"),
    ("I can't see my bill", "see my bill"),
    ("I didn't get the correct rate for cash at the bank", "When I got cash at the bank the rate was odd"),
    ("I can't remember where the key is", "Do you remember where the key is"),
    ("How long does the first match last?", "How long will the first match last?"),
    ("Has the parcel arrived?", "Is the parcel arriving?"),
    ("How do I prune a rose?", "How can I prune a rose?"),
    ("When did the fair take place?", "When did the fair happen?"),
    ("What is the weather today?", "What is the weather today?"),
    ("Why was the bridge closed today?", "Why was the bridge closed?"),
    ("What is the tallest tree?", "Please tell me, what's the tallest tree?"),
    ("Could you describe how glaciers move?", "Can you describe how glaciers move?"),
    ("What do I pay for $5k?", "What do I pay for 5,000 dollars?"),
    ("Who was born on 2001-02-03?", "Who was born on February 3, 2001?"),
    ("Who was born on Feb 3 2001?", "Who was born on the 3rd of February 2001?"),
    ("I can't log in to my account", "How do I log in to my account?"),
    ("I don't know how to bake rye bread", "how to bake rye bread"),
    ("Is Ann married to Bob?", "Is Bob married to Ann?"),
    ("Is Ann a baker or a nurse?", "Is Ann a nurse or a baker?"),
    ("Does Tom trust Ben?", "Is Ben trusted by Tom?"),
    ("What is the capital of France?", "what is the capital of france"),
    ("How do I modify the delivery address?", "How do I change the delivery address?"),
    ("What does the word “moot” mean?", "What does the word moot mean?"),
    ("Why do leaves change color?", "Why do leaves change colour?"),
    ("What is 2+2?", "What is 2 + 2?"),
    ("怎么去火车站？", "请问怎么去火车站"),
    ("how do i reset my iphone", "How do I reset my iPhone"),
    ("Tell me the capital of france", "What is the capital of France?"),
    ("Polish the silver tray", "polish the silver tray"),
    ("Which trains go to Zürich?", "Which trains go to Zurich?"),
    ("Is e\u0301te\u0301 French?", "Is été French?"),
    ("Bake it at 180 ℃", "Bake it at 180 °C"),
    ("Would ❤️ fit here?", "Would ❤ fit here?"),
    ("How do we co\u00adoperate?", "How do we cooperate?"),
    ("It opens at eight in the morning", "In the morning it opens at eight"),
    ("Isn't Oslo the capital?", "Is Oslo not the capital?"),
    ("Why can't hens fly?", "Why can hens not fly?"),
    ("Rye is very healthy, isn't it?", "Rye is very healthy"),
    ("Who was Pope John XXIII?", "Who was Pope John the 23rd?"),
    ("手机打不开怎么办", "手机无法打开怎么办"),
    ("为什么不能登录?", "为什么登录不了?"),
    ("Is the museum open on Sundays?", "Is the museum open on Sunday?"),
    ("周日开门吗", "星期天开门吗"),
    ("A tent for 3 adults and 2 dogs", "A tent for 2 dogs and 3 adults"),
    ("Add 1, 2 and 3 eggs", "Add 3, 2 and 1 eggs"),
    ("How do I clean a brush properly?", "How do I properly clean a brush?"),
    ("What time is it in Lima?", "What's the time in Lima?"),
    ("Explain tides in simple terms", "Explain tides in simple words"),
    ("How harmful are bacteria?", "How harmful is a bacterium?"),
    ("What is a reef?", "what is a reef"),
    ("What does the past year look like?", "What does the last year look like?"),
    ("How do I tie a bowline?", "Please show me how to tie a bowline"),
    ("How do I tie a bowline?", "How do I tie a bowline? Please help me."),
    ("Explain dew in brief", "Briefly explain dew"),
    ("What fits in 5M bytes?", "What fits in 5 million bytes?"),
    ("Which boats weigh over 5 tonnes?", "Which boats weigh more than 5 tonnes?"),
    ("Open from 8 am to 5 pm", "From 8 am until 5 pm open"),
    ("How can I oil a hinge?", "How should I oil a hinge?"),
    ("Can I moor at the quay?", "May I moor at the quay?"),
    ("Is each duck ringed?", "Is every duck ringed?"),
    ("What do I do if I miss my ferry?", "What do I do if I missed my ferry?"),
    ("How do I oil my hinge?", "How do you oil your hinge?"),
    ("Which file(s) may I send?", "Which files may I send?"),
    ("What is literature?", "What's literature?"),
    ("Which tower in Riga is tallest?", "Which tower in Riga is the highest?"),
    ("Is milk, salt and rye in it?", "Is rye, salt and milk in it?"),
    ("Is red rope or white rope better?", "Is white rope or red rope better?"),
    ("¿Cuál es el puerto de Italia?", "Cuál es el puerto de Italia?"),
    ("¡Qué bonito es el río!", "Qué bonito es el río"),
    ("What is 12 divided by 4?", "What's 12 divided by 4?"),
    ("Is Llama 3.1 open?", "is llama 3.1 open?"),
    ("How do I write 車 in Japanese?", "how do i write 車 in japanese?"),
    ("Who lives near the quay?", "Who lives beside the quay?"),
    ("What grows on the roof in May?", "What grows on the roof during May?"),
    ("How can I find the bell?", "Where can I find the bell?"),
    ("Can I moor my boat there?", "How can I moor my boat there?"),
    ("Could you write a log of the tides?", "Write a log of the tides"),
    ("Is the weir open on holidays?", "Is the weir open during holidays?"),
    ("How long does it take to row there?", "How much time does it take to row there?"),
    ("What does the function len() do?", "What does the function len do?"),
    ("What does `len` do?", "What does len do?"),
    ("Convert 9 miles to km", "Convert 9 miles to kilometres"),
    ("Is entry free of charge?", "Is entry free?"),
    ("Do I have any messages?", "Do I have some messages?"),
]


def fired(a: str, b: str) -> dict[Guard, Outcome]:
    return {v.guard: v.outcome for v in check(extract(a), extract(b)) if v.outcome is not Outcome.PASS}


@pytest.mark.parametrize(("guard", "a", "b"), APART)
def test_a_guard_fires_both_ways_round(guard, a, b):
    assert guard in fired(a, b)
    assert guard in fired(b, a)


@pytest.mark.parametrize(("a", "b"), ALIKE)
def test_light_paraphrases_pass_every_guard(a, b):
    assert fired(a, b) == {}
    assert fired(b, a) == {}


def test_what_may_be_the_same_is_gray():
    assert fired("I forgot my PIN", "I can't remember my PIN") == {Guard.OPPOSITES: Outcome.GRAY}
    assert fired("Signed on 01/02/2024", "Signed on 2024-02-01") == {Guard.DATES: Outcome.GRAY}
    assert fired("How do you bake bread?", "How is bread baked?") == {Guard.ORDER: Outcome.GRAY}
    assert fired("How do I reset my phone?", "How do I get my phone reset?") == {Guard.ORDER: Outcome.GRAY}
    assert fired("The shop was closed early", "The shop closed early") == {Guard.ORDER: Outcome.GRAY}
    assert fired("Is the dog chasing a cat?", "Does the cat chase a dog?") == {Guard.ORDER: Outcome.BLOCK}
    assert fired("Signed on 01/13", "Signed on 13/01") == {Guard.DATES: Outcome.GRAY}
    assert fired("Return it within 14", "Return it within 2 weeks") == {Guard.NUMBERS: Outcome.GRAY}
    assert fired("Signed on 01/02/2024", "Signed on 2024-02-03") == {Guard.DATES: Outcome.BLOCK}


def test_every_guard_is_covered_above():
    assert {guard for guard, _, _ in APART} == set(Guard)


def test_a_verdict_shows_the_values():
    verdicts = check(extract("a crate of 20 kg"), extract("a crate of 30 kg"))
    assert [v.guard for v in verdicts] == list(Guard)
    assert verdicts[0].evidence == "20 kilogram ≠ 30 kilogram"


def test_long_texts_that_differ_throughout_are_in_doubt_and_their_numbers_are_compared():
    letters = "abcdefghij"
    here, there = (" ".join(f"{kind}{a}{b}o" for a in letters for b in letters) for kind in "st")
    found = fired(f"{here} weighs 5 kg", f"{there} weighs 6 kg")
    assert (found[Guard.WORDING], found[Guard.NUMBERS]) == (Outcome.GRAY, Outcome.BLOCK)


def test_a_failing_guard_blocks_and_tells_its_name(monkeypatch):
    def fail(*_args, **_kwargs):
        raise RuntimeError

    monkeypatch.setattr(literal_rules, "_apart", fail)
    verdicts = check(extract("bake 5 rolls"), extract("bake 6 rolls"))
    assert (verdicts[0].outcome, verdicts[0].evidence) == (Outcome.BLOCK, "guard failed: RuntimeError")


def test_guards_cost_far_less_than_a_lookup():
    query = "Which of the hotels near the old harbour can take 12 guests on 3 May for less than $200?"
    stored = [extract(query.replace("12", str(n))) for n in range(4)]
    check(extract(query), stored[0])
    best = min(_timed(query, stored) for _ in range(50))
    assert best < 1e-3  # some 0.3 ms: `python -m benchmarks.quality` has it by policy


def _timed(query, stored):
    start = time.perf_counter()
    features = extract(query)
    for entry in stored:
        check(features, entry)
    return time.perf_counter() - start
