"""Opposites: a general lexicon of antonyms, and those that a prefix or suffix makes."""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from service.policy.guards.words import stem

_PAIRS = """
able unable; above below; absent present; all none; all no; every no; accept reject; accept decline; accept refuse;
active passive; add
remove; add subtract; admit deny; advance retreat; advantage drawback; after before; after during; before during;
agree disagree; alive
dead; and or; allow forbid; allow prevent; allow prohibit; allow block; allow deny; always never; ancestor
descendant; ancient modern; answer question; appear vanish; approve reject; arrive depart; arrive leave;
arrival departure; asleep awake; attach detach; attack defend; aunt uncle; back front; bad good; beautiful
ugly; begin end; best worst; better worse; big small; big little; big tiny; birth death; bitter sweet; black
white; blunt sharp; borrow lend; bottom top; boy girl; brave cowardly; bride groom; bright dark; bright dim;
broad narrow; brother sister; build destroy; bull bear; busy idle; buy sell; call put; calm stormy; cause
effect; cheap expensive; cheap dear; child adult; clean dirty; clean filthy; clear cloudy; clear opaque;
clever stupid; close open; close far; close distant; cold hot; cold warm; combine separate; compress expand;
cool hot; cool warm; connect separate; construct demolish; contract expand; create delete; create destroy;
create remove; credit debit; cruel kind; cry laugh; customer supplier; damp dry; danger safety; dangerous
safe; dark light; daughter son; dawn dusk; day night; dead living; debtor creditor; deep shallow; defeat
victory; delete restore; delete keep; demand supply; deny grant; deposit withdraw; deposit withdrawal; die
live; difficult easy; domestic foreign; domestic international; down up; downstairs upstairs; drunk sober;
dry wet; dull bright; dull sharp; early late; earliest latest; east west; eastern western; easy hard; easy
tough; elder younger; emigrate immigrate; employer employee; empty full; end start; end beginning; enemy
friend; enter exit; enter leave; entrance exit; evil good; exact approximate; even odd; external internal;
fail pass; fail succeed; failure success; fall rise; fall climb; false true; fancy plain; far near; fast
slow; fat thin; fat lean; father mother; female male; few many; few lots; fewer more; find lose; finish
start; finish begin; first last; fixed variable; fixed floating; flexible rigid; float sink; follow lead;
follow precede; forget remember; forward backward; forwards backwards; found lost; free paid; freeze melt;
freeze thaw; frequent rare; fresh stale; full partial; future past; gain loss; gain lose; general specific;
gentle rough; gift theft; give take; give receive; good poor; grandfather grandmother; guilty innocent;
happy sad; hard soft; hate love; he she; healthy sick; healthy ill; heaven hell; heavy light; height depth;
her his; hers his; herself himself; hero villain; hide show; hide reveal; high low; hire fire; hire sack;
hit miss; hold release; him her; horizontal vertical; host guest; huge tiny; husband wife; ignore notice;
import export; in out; in off; into out; include omit;
increase reduce; increase lower; increase drop; inferior superior;
inner outer; input output; inside outside; join leave; join quit; join separate; joy sorrow; junior senior;
keep discard; keep lose; king queen; large little; large small; large tiny; latter former; least most; left
right; leave stay; left-hand right-hand; length width; less more; lesser greater; liability asset; like
dislike; loan deposit; local remote; local global; lock unlock; long short; loose tight; lose win; loser
winner; loss profit; loud quiet; loud silent; low tall; lower raise; lower upper; lower higher; major minor;
majority minority; man woman; mandatory optional; manual automatic; married single; married divorced; master
slave; maximum minimum; max min; mean kind; men women; merge split; mild severe; mild harsh; morning
evening; much little; multiply divide; mute unmute; narrow wide; natural artificial; near distant; negative
positive; nephew niece; new old; noisy quiet; north south; northern southern; obey disobey; off on; offline
online; everybody nobody; everyone nobody; everything nothing; something nothing; somebody nobody; both neither; often
seldom; often rarely; old young; opponent ally; optimist pessimist; optional required; oral
written; over under; partial complete; past present; patient doctor; pause resume; peace war; permit forbid;
permit prohibit; permanent temporary; plural singular; plus minus; polite rude; poor rich; poverty wealth;
powerful weak; praise blame; predator prey; predecessor successor; prefix suffix; private public; prince
princess; prosecute defend; prove disprove; pull push; pupil teacher; push pop; qualitative quantitative;
quick slow; raise drop; rapid slow; raw cooked; read write; rear front; receive send; recent old; right
wrong; rise sink; rough smooth; rural urban; safe risky; save spend; save delete; seller buyer; sender
recipient; sender receiver; serial parallel; shorten lengthen; sick well; simple complex; simple
complicated; sit stand; slim thick; sour sweet; start stop; static dynamic; steep flat; strengthen weaken;
stop begin; stop continue; strong weak; student teacher; summer winter; sunrise sunset; synchronous
asynchronous; tall short; take bring; teach learn; tenant landlord; thick thin; tie untie; tight slack;
together apart; transparent opaque; true untrue; ugly pretty; under above; useful useless; vacant occupied;
victim culprit; victory loss; virtual physical; weakness strength; wealthy poor; wholesale retail; wild
tame; with without; zip unzip; long-term short-term; part-time full-time; actor actress; waiter waitress;
widow widower; heir heiress; lad lass; gentleman lady; mum dad; mom dad; nun monk; hen rooster; bull cow;
stallion mare; ram ewe; boyfriend girlfriend; stepfather stepmother; grandson granddaughter; ascend descend;
subject object; cathode anode; acid base; acid alkali; concave convex; latitude longitude; import smuggle;
lend lent; landlord lodger; lessor lessee; guilty blameless; ante post; nominal real; bullish bearish;
long-range short-range; surplus deficit; floor ceiling; dawn sunset; am pm; bc ad
"""

_CHINESE = "大小 多少 高低 上下 前后 左右 买卖 开关 男女 父母 爸妈 进出 来去 早晚 长短 快慢 新旧 冷热 胖瘦 强弱 增减 加减 乘除 远近 深浅 轻重 内外 东西 南北 里外 真假 对错 好坏 贵贱 贵便 生死 胜负 输赢 收发 借还 哥弟 姐妹 夫妻 儿女 先后 升降 涨跌 正负 公私 是否 有无 难易 厚薄 宽窄 粗细 明暗 黑白 日夜 昼夜 始终 起止 存取 阴阳 软硬 干湿 松紧 美丑 善恶 爱恨 哭笑 攻守 教学 问答 主客 古今"  # noqa: E501 - one lexicon of pairs

# A prefix of one word against a prefix of the other, before an equal rest.
_PREFIXES = (
    ("un", ""), ("in", ""), ("im", ""), ("il", ""), ("ir", ""), ("dis", ""), ("non", ""), ("mis", ""), ("de", ""),
    ("anti", ""), ("counter", ""), ("a", ""), ("dis", "en"), ("un", "en"), ("de", "en"), ("de", "in"), ("de", "ac"),
    ("ex", "in"), ("ex", "im"), ("out", "in"), ("down", "up"), ("out", "over"), ("under", "over"), ("post", "pre"),
    ("de", "as"), ("intra", "inter"), ("hypo", "hyper"), ("micro", "macro"), ("pro", "anti"),
    ("dis", "as"), ("dis", "con"), ("dis", "em"), ("bottom", "top"), ("off", "on"),
    ("post", "ante"), ("dys", "eu"), ("dis", "ap"),
)  # fmt: skip
_MIN_REST = 3
_SUFFIXES = (("less", "ful"), ("less", ""), ("less", "y"))


def _lexicon() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for pair in [*_PAIRS.replace("\n", " ").split(";"), *(f"{pair[0]} {pair[1]}" for pair in _CHINESE.split())]:
        a, b = (stem(word) for word in pair.split())
        found[a].add(b)
        found[b].add(a)
    return {word: frozenset(others) for word, others in found.items()}


_LEXICON = _lexicon()
_NONE: frozenset[str] = frozenset()


@lru_cache(maxsize=65536)
def by_affix(a: str, b: str) -> bool:
    """Whether one word is the other denied or reversed by an affix: unsafe/safe, disable/enable, careless/careful."""
    if a[-_MIN_REST:] != b[-_MIN_REST:] and a[:_MIN_REST] != b[:_MIN_REST]:
        return False  # which is so of nearly all pairs: what the affix leaves is the same
    return _affixed(a, b) or _affixed(b, a)


def _affixed(denied: str, other: str) -> bool:
    for prefix, counterpart in _PREFIXES:
        if denied.startswith(prefix) and other.startswith(counterpart):
            rest = denied[len(prefix) :]
            if len(rest) >= _least(prefix) and rest == other[len(counterpart) :]:
                return True
    return any(
        denied.endswith(suffix)
        and other.endswith(counterpart)
        and len(denied) > len(suffix) + _MIN_REST - 1
        and denied.removesuffix(suffix) == other.removesuffix(counterpart)
        for suffix, counterpart in _SUFFIXES
    )


def _least(prefix: str) -> int:
    return 6 if len(prefix) == 1 else _MIN_REST


def opposites_of(word: str) -> frozenset[str]:
    """The stems that a dictionary lists as opposites of a stem."""
    return _LEXICON.get(word, _NONE)


__all__ = ["by_affix", "opposites_of"]
