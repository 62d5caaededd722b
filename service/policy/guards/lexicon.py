"""Closed-class words, units and common opposites of English and Chinese: what any grammar or dictionary lists."""

from __future__ import annotations

from types import MappingProxyType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _table(text: str) -> dict[str, str]:
    """Lines of `head: variant variant` as variant → head, the head included."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        head, _, variants = line.partition(":")
        found |= dict.fromkeys([head.strip(), *variants.split()], head.strip())
    return found


# Words that carry neither content nor relation: dropped from the frame of a sentence.
FILLERS = _words(
    """a an the this that these those do does did doing done is are was were be been being am has have had having
    will would shall should can could may might must ought i me my mine myself you your yours yourself we us our
    ours they them their theirs themselves it its itself he him his himself she her hers herself one ones
    here there so just also very really actually too quite even only still already yet well ok okay oh etc
    please kindly thanks thank hi hello hey dear sir madam now then again simply exactly basically currently
    some any such each ever s t ll d re ve get got getting let lets go going gonna wanna gotta as
    contain contains contained containing somehow indeed
    的 了 吗 呢 吧 啊 呀 哦 嘛 我 你 您 他 她 它 们 请 是 有 就 都 也 很 着 过 地 得 这 那 个 些 一 下 想 要 会
    能 可 以 所 之 其"""
)
# Words that a capital gives another sense.
CAPITONYMS = _words(
    """august bath bill buffalo cancer catholic china cologne cork cuba danish earth english general german god
    hamlet it japan job lent lima march mark mars mass may mercury mobile natal nice orient pole polish
    reading rust scone shell sierra slough swede swift tangier turkey us venus"""
)
# What a request is wrapped in; it says that something is asked, not what.
REQUESTS = _words(
    """tell know explain describe show say give want need like wish help assistance assist support ask question
    wonder wondering understand find learn advise advice way ways possible able possibly maybe perhaps
    somebody someone anyone anybody something anything thing things kind sort example info information detail
    details mean means meaning try trying provide"""
)
# What an order to who answers begins with.
ORDERS = _words(
    """act add answer assume avoid be cite do end finish format give ignore include keep leave limit list make mention
    output pretend put reply respond return speak start think use write"""
)
RELATIONS = _words(
    """of in on at by for with without from to into onto over under above below before after between among than
    or and but if unless while because although during until till since about against through across via per
    within up down off out near toward towards behind beyond beside inside outside upon versus vs instead not no
    never nor neither who whom whose which what when where why how
    在 于 从 由 自 到 至 往 向 对 比 和 与 或 跟 同 及 被 把 给 为 谁 哪 何 几 多 怎 什 么 如"""
)
# Attributes of which the thing without them is another one.
ATTRIBUTES = _words(
    """deputy vice assistant acting interim honorary half step foster adoptive fake mock former future potential average
    north south east west northern southern eastern western central greater upper lower inner outer"""
)
# Relations of place, time or side, and those that may stand for each other.
PLACED = _words(
    """above below under over behind beside near inside outside between through across against before after during
    until since without within beyond towards from up down off about"""
)
_PLACED_ALIKE = """
under below; over above; near beside at; inside in within into during on; through via by across on; until till before
to; towards toward to; from of on by in; outside out; between among; after on upon for; about on of
"""
PLACED_ALIKE = tuple(_words(group) for group in _PLACED_ALIKE.split(";"))
COORDINATORS = _words("and or nor & 和 与 或 及 跟")
ASYMMETRIC = _table(
    """from: 从 由 自
    to: into onto towards toward 到 至 往 向
    before:
    after:
    than: 比
    with:
    without:
    by: 被
    over: above
    under: below
    behind:"""
)
PASSIVE_AUXILIARIES = _words("be am is are was were been being get gets got getting gotten have has had having")
NEGATORS = _words(
    """not no never without cannot nor neither hardly barely non lack lacks lacking except impossible nobody nothing
    nowhere"""
)
# Those of other languages in Latin letters that are no English words.
FOREIGN_NEGATORS = _words(
    """nicht kein keine keinen keinem keiner keines nie niemals niemand ohne pas jamais sans aucun aucune ne
    nunca jamás ningún ninguna mai senza nessun nessuna não nunca jamais sem nenhum nenhuma niet geen nooit zonder
    inte ingen inget aldrig utan ikke aldri uten nie bez nigdy"""
)
CHINESE_NEGATORS = _words("不 没 无 非 未 别 勿 莫")
CHINESE_NEGATOR_IDIOMS = [
    "不同",
    "不但",
    "不仅",
    "不过",
    "不论",
    "不管",
    "不好意思",
    "不锈",
    "不断",
    "不少",
    "不久",
    "不得不",
    "对不起",
    "差不多",
    "无论",
    "无线",
    "无人机",
    "非常",
    "非洲",
    "未来",
    "没事",
    "别人",
    "特别",
    "分别",
    "区别",
    "级别",
    "性别",
    "类别",
    "识别",
    "别墅",
    "告别",
    "个别",
    "莫斯科",
]
# After these a negation denies knowledge or completeness, not the matter that is asked about.
KNOWLEDGE = _words("know sure idea clue understand remember certain get see only clear familiar")

SUBJECT_QUESTIONS = _words("who which what whose")  # may ask for who or what does it
QUESTION_WORDS = MappingProxyType(
    {"when": "when", "why": "why", "who": "who", "whom": "who", "whose": "who", "where": "where"}
    | {"what": "what", "which": "what", "how": "how"}
)
HOW_OF = MappingProxyType(
    {"many": "how many", "much": "how much", "long": "how long", "far": "how far", "old": "how old"}
    | {"often": "how often", "come": "why", "big": "how large", "large": "how large", "tall": "how tall"}
    | {"high": "how tall", "fast": "how fast", "deep": "how deep", "heavy": "how heavy", "soon": "when"}
)
WHAT_OF = MappingProxyType(
    dict.fromkeys(["time", "date", "day", "year", "month"], "when") | dict.fromkeys(["person", "people"], "who")
)
CHINESE_QUESTIONS = (
    ("什么时候", "when"), ("何时", "when"), ("几点", "when"), ("哪年", "when"), ("为什么", "why"), ("为何", "why"),
    ("谁", "who"), ("哪里", "where"), ("哪儿", "where"), ("何处", "where"), ("多少", "how many"), ("几个", "how many"),
    ("多久", "how long"), ("多长时间", "how long"), ("多远", "how far"),
    ("怎么", "how"), ("如何", "how"), ("怎样", "how"),
)  # fmt: skip

CONTRACTIONS = MappingProxyType(
    {"can't": "can not", "cannot": "can not", "cant": "can not", "won't": "will not", "wont": "will not"}
    | {"shan't": "shall not", "ain't": "is not", "let's": "let us", "dont": "do not", "doesnt": "does not"}
    | {"didnt": "did not", "isnt": "is not", "arent": "are not", "wasnt": "was not", "whats": "what is"}
    | {"im": "i am", "ive": "i have", "couldnt": "could not", "wouldnt": "would not", "hows": "how is"}
)

CONTRACTED = MappingProxyType({"s": "is", "re": "are", "ve": "have", "ll": "will", "d": "would", "m": "am"})
BEFORE_IS = _words("what who where when why how which it that there here he she")

_ONES = """zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = MappingProxyType(
    {word: value for value, word in enumerate(_ONES.split())}
    | {word: value * 10 for value, word in enumerate(_TENS.split(), 2)}
)
SCALES = MappingProxyType(
    {"dozen": 12, "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
    | {"k": 10**3, "mn": 10**6, "mio": 10**6, "bn": 10**9, "tn": 10**12}
)
_ORDINALS = """first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
    fifteenth sixteenth seventeenth eighteenth nineteenth twentieth"""
ORDINAL_WORDS = MappingProxyType(
    {word: value for value, word in enumerate(_ORDINALS.split(), 1)}
    | {"thirtieth": 30, "fortieth": 40, "fiftieth": 50, "hundredth": 100}
)
FRACTIONS = MappingProxyType({"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "tenth": 10})
CHINESE_DIGITS = MappingProxyType(
    {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"\u3007": 0, "两": 2}
)
CHINESE_SCALES = MappingProxyType({"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8})

UNITS = MappingProxyType(
    _table(
        """kilometre: km kms kilometer kilometers kilometres
        metre: m meter meters metres
        centimetre: cm centimeter centimeters centimetres
        millimetre: mm millimeter millimeters millimetres
        mile: miles mi
        foot: feet ft
        inch: inches
        yard: yards yd
        kilogram: kg kgs kilo kilos kilograms kilogramme kilogrammes
        gram: g grams gramme grammes gr
        milligram: mg milligrams
        microgram: mcg μg micrograms
        tonne: tonnes ton tons
        pound: lb lbs
        ounce: oz ounces
        stone:
        megalitre: megaliters megalitres
        litre: l liter liters litres
        millilitre: ml milliliter milliliters millilitres
        centilitre: cl centiliter centiliters centilitres
        decilitre: dl deciliter deciliters decilitres
        gallon: gallons gal
        celsius: °c centigrade ℃
        fahrenheit: °f ℉
        kelvin:
        degree: degrees °
        percent: % pct percentage
        second: seconds sec secs
        minute: minutes min mins
        hour: h hours hr hrs
        day: days
        week: weeks
        month: months
        year: years yr yrs
        decade: decades
        century: centuries
        dollar: dollars $ usd bucks us$
        euro: euros € eur
        pound sterling: £ gbp pounds quid
        yen: ¥ jpy
        yuan: rmb cny
        rupee: rupees ₹ inr
        cent: cents
        byte: bytes
        kilobyte: kb kilobytes
        megabyte: mb megabytes
        gigabyte: gb gigabytes gig gigs
        terabyte: tb terabytes
        bit: bits
        megabit: megabits
        gigabit: gigabits
        milliwatt: milliwatts
        watt: watts w
        kilowatt: kw kilowatts
        megawatt: mw megawatts
        volt: volts v
        ampere: amps amp amperes
        hertz: hz
        kilohertz: khz
        megahertz: mhz
        gigahertz: ghz
        calorie: calories kcal
        mile per hour: mph
        kilometre per hour: kmh kph
        square metre: m2 sqm
        cubic metre: m3 cbm
        square kilometre: km2
        square foot: sqft
        pixel: px pixels
        times: x"""
    )
)
# How often an amount is meant: 50 mg daily.
RATES = MappingProxyType(
    {"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annually": "year"}
)
CHINESE_UNITS = MappingProxyType(
    _table(
        """kilometre: 公里 千米
        metre: 米
        centimetre: 厘米 公分
        millimetre: 毫米
        mile: 英里
        foot: 英尺
        inch: 英寸
        square metre: 平方米 平米
        cubic metre: 立方米
        kilogram: 公斤 千克
        gram: 克
        milligram: 毫克
        microgram: 微克
        jin: 斤
        tonne: 吨
        pound: 磅
        ounce: 盎司
        litre: 升
        millilitre: 毫升
        celsius: 摄氏度
        fahrenheit: 华氏度
        degree: 度
        second: 秒 秒钟
        minute: 分钟
        hour: 小时 钟头
        day: 天
        week: 周 星期 礼拜
        month: 月
        year: 年
        year old: 岁
        dollar: 美元 美金
        euro: 欧元
        pound sterling: 英镑
        yen: 日元
        yuan: 元 块 块钱 人民币"""
    )
)
CURRENCIES = _words("$ € £ ¥ ₹ us$ usd eur gbp jpy inr cny")

MONTHS = MappingProxyType(
    _table(
        """january: jan
        february: feb
        march:
        april: apr
        may:
        june: jun
        july: jul
        august: aug
        september: sept sep
        october: oct
        november: nov
        december: dec"""
    )
)
WEEKDAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
CHINESE_WEEKDAYS = MappingProxyType(
    {"一": "monday", "二": "tuesday", "三": "wednesday", "四": "thursday", "五": "friday", "六": "saturday"}
    | dict.fromkeys("日天", "sunday")
)
MOMENTS = _words(
    """today tomorrow yesterday tonight morning afternoon evening weekday weekend christmas easter
    spring summer autumn winter 今天 明天 昨天 后天 前天 今年 明年 去年"""
)
PERIODS = _words("week month quarter year decade century season semester term")
# Which period is meant, told from the moment of asking.
RELATIVE = MappingProxyType(
    dict.fromkeys(["last", "previous", "past"], "last")
    | dict.fromkeys(["this", "current"], "this")
    | dict.fromkeys(["next", "coming", "following"], "next")
)
HOURS = MappingProxyType({"noon": "12:00", "midday": "12:00", "midnight": "00:00"})
# What is true at the moment of asking, and perhaps no more at the next.
PRESENT = _words("today tonight tomorrow current currently latest nowadays")
PRESENT_CHINESE = _words("今天 今晚 明天 现在 目前 当前 最新 如今")

HUMAN_LANGUAGES = _words(
    """arabic basque bengali bulgarian catalan chinese croatian czech danish dutch english estonian finnish french
    german greek hebrew hindi hungarian icelandic indonesian irish italian japanese korean latin latvian
    lithuanian malay mandarin cantonese marathi norwegian persian farsi polish portuguese punjabi romanian russian
    sanskrit serbian slovak slovenian spanish swahili swedish tamil telugu thai turkish ukrainian urdu vietnamese
    welsh yiddish zulu 英语 英文 中文 汉语 日语 日文 法语 法文 德语 德文 俄语 韩语 西班牙语 意大利语 葡萄牙语"""
)
PROGRAMMING_LANGUAGES = _words(
    """python java javascript typescript ruby rust golang kotlin scala perl php haskell erlang elixir clojure
    fortran cobol lua matlab bash powershell sql html css julia groovy ocaml c++ c# f#"""
)
LANGUAGES = HUMAN_LANGUAGES | PROGRAMMING_LANGUAGES

_IRREGULAR_FORMS = """
use: used using; go: went gone goes; get: got gotten; pay: paid; send: sent; buy: bought; make: made; lose:
lost; sell: sold; win: won; write: wrote written; take: took taken; give: gave given; find: found; see:
seen; come: came; keep: kept; hold: held; bring: brought; begin: began begun; run: ran running; eat: ate
eaten; drink: drank drunk; drive: drove driven; speak: spoke spoken; choose: chose chosen; fall: fell
fallen; fly: flew flown; grow: grew grown; know: knew known; rise: risen; sing: sang sung; break: broke
broken; build: built; catch: caught; teach: taught; think: thought; tell: told; say: said; meet: met; spend:
spent; lend: lent; sleep: slept; forget: forgot forgotten; hide: hid hidden; die: died dying; lie: lying;
steal: stole stolen; throw: threw thrown; wear: wore worn; withdraw: withdrew withdrawn; become: became;
show: shown; child: children; man: men; woman: women; person: people; mouse: mice; foot: feet; tooth: teeth;
goose: geese; ox: oxen; wife: wives; life: lives; knife: knives;
shelf: shelves; wolf: wolves; thief: thieves; loaf: loaves; bacterium: bacteria; criterion: criteria; phenomenon:
phenomena; fungus: fungi; nucleus: nuclei; stimulus: stimuli; analysis: analyses; crisis: crises; hypothesis:
hypotheses; thesis: theses; diagnosis: diagnoses; vertex: vertices; index: indices; bad: worse worst; good: better
best; far: farther further farthest furthest
"""
# Forms that no rule of inflection gives, with their dictionary form.
IRREGULAR = MappingProxyType(
    {
        form: lemma
        for lemma, _, forms in (entry.strip().partition(": ") for entry in _IRREGULAR_FORMS.split(";"))
        for form in forms.split()
    }
)
GRADABLE = _words(
    """large small big tall short long high low heavy light fast slow quick old young new cold hot warm cool cheap
    deep shallow wide narrow thick thin strong weak hard soft rich poor bright dark loud quiet clean dirty near
    close late early easy safe healthy happy sad busy noisy pretty ugly dry wet sharp smooth rough tight loose
    great few simple nice kind wise sweet sour bitter tough tiny lucky dense mild steep smart"""
)
# Endings that make another word of the same root.
DERIVED = _words(
    """ation ition tion ion ment al er or ance ence ancy ency ness ity ty ive able ible ly ally ful ous ise ize age
    ure ist ism ary ory"""
)
SYMMETRIC = _words(
    """married marry dating date friend friends related relative close connected similar equal equivalent identical
    different same near adjacent next sibling siblings cousin cousins neighbour neighbours neighbor neighbors
    acquaintance colleague compatible difference similarity compare comparison versus distance meet met agree
    parallel opposite partner twin"""
)

__all__ = [name for name in dir() if name.isupper()]
