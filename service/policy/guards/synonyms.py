"""Groups of common words that mostly may replace each other, as a small thesaurus lists them."""

from __future__ import annotations

from collections import defaultdict

from service.policy.guards.words import stem

_GROUPS = """
able capable; accept approve; accident crash; accomplish achieve; accurate correct right exact precise; add
append insert include; adjust change modify alter edit amend update; advantage benefit pro upside; afraid
scared; aim goal purpose objective; aircraft airplane aeroplane plane; allow permit let enable; amount
quantity sum; angry mad; answer reply respond response; apartment flat; appear show seem; appointment
meeting; approximately about roughly around; area region zone field domain; argue debate; arrive come reach;
article piece; ask inquire request query; assign allocate; attempt try; author writer; autumn fall; average
mean typical; avoid prevent; award prize; baby infant; bag sack; barrier obstacle; basic fundamental
elementary; beautiful pretty lovely; become turn; begin start commence initiate launch open; behave act; big
large huge great; bike bicycle; bill invoice; biggest largest greatest; born birth; boss manager; branch
office; brief short; broken faulty defective damaged; build construct create make; business company firm
enterprise corporation; buy purchase acquire order; calculate compute; call phone ring telephone; cancel
annul revoke abort stop undo; car automobile vehicle; career profession occupation job; careful cautious;
cash money fund; cause reason; cellphone mobile phone smartphone; charge fee cost price rate; cheap
inexpensive; check verify examine inspect look see view; child kid; choose select pick; city town; clever
smart intelligent; close shut; close near nearby; clothes clothing; collect gather; combine merge join;
comfortable comfy; command order instruction; common frequent usual; complete finish end conclude; complex
complicated; computer pc; concern worry; confirm verify; consequence result outcome effect; consider regard;
contact reach; contain hold include; continue proceed; copy duplicate; correct fix repair mend rectify;
country nation; couple pair; create make produce generate; customer client; damage harm; dangerous unsafe
risky hazardous; decide determine; decline refuse reject deny; decrease reduce lower; define meaning; delay
postpone; delete remove erase; deliver ship send dispatch; delivery shipment shipping; desire want; destroy
ruin; detect discover find spot locate; device gadget; difference distinction; different another other else;
difficult hard tough challenging; dinner supper; disappear vanish; discount reduction; discuss talk; disease
illness; distance far; doctor physician; dollar buck; drawback disadvantage con downside; earth world globe;
easy simple; effect impact influence; elevator lift; emergency urgent; exit quit leave; employ hire use; employee worker
staff; end finish; enquiry inquiry question; enough sufficient; error mistake fault bug; essential necessary
vital crucial important; exam test; example instance; exchange swap trade convert; expensive costly dear;
expert specialist; expertise speciality specialty; explain clarify describe; famous known popular; fast
quick rapid speedy; fault error; favourite favorite; film movie; find locate; finish complete; firm company;
flavour taste; football soccer; forbid prohibit ban; forget forgot; form shape; forward ahead; free gratis;
freedom liberty; freeze lock; friend buddy; fuel gas petrol; function role; funny amusing; garbage rubbish
trash waste; gasoline petrol gas; get obtain receive acquire; gift present; glad happy pleased; goal target;
good fine; grow rise increase; guess estimate; guide manual; happen occur; hard difficult; headquarter base;
heal cure; high tall; hear listen; help aid; holiday vacation; home house; hurt injure; idea thought concept; identify
recognize recognise; immediately instantly quickly soon urgently; improve enhance better; increase raise
boost grow; individual person; inform notify; injury wound; inside within; install setup; internet web
online; invent create; issue problem trouble; job work position; journey trip travel; kind type sort;
kitchen cook; lady woman; land country; last final; late delayed; laugh giggle; lawyer attorney; leader head
chief; learn study; leave depart quit; legal lawful; length long; link connect; list enumerate; little
small; live reside; locate situate; location place position; log sign; log-in login; lose miss; lost missing
gone; lucky fortunate; machine device; mad crazy; mail post; main major primary chief; maintain keep; make
build; male man; manage handle; market marketplace; marry wed; maths mathematics math; maximum most;
medicine medication drug; meeting conference; method way approach technique mean; middle centre center;
minimum least; mistake error; mix blend; modern contemporary; modify change switch; month monthly; mum mom
mother; dad father; name title call; nationality citizenship; native mother; near close; need require;
newspaper paper; nickname alias; normal usual typical regular; notice observe; now currently; nowadays
today; number figure; obvious clear; odd strange weird; often frequently; old elderly aged; open unlock;
opinion view; option choice; organise organize arrange; original first; own possess have; owner holder;
package parcel; part portion; password passcode pin; pay payment; people folk; percent percentage; perfect
ideal; perform do; person human; photo picture image photograph; plan scheme; play perform; point dot;
police cop; possible feasible; postcode zip; pot pan; powerful strong; price cost; print publish; produce
manufacture; profession occupation; program programme; pronounce say; protect guard; prove show; pupil
student; put place; quick fast; quiet silent; quit stop; rain rainfall; reach get; real true actual; recent
latest new; recipe instruction; recommend suggest advise; recover restore retrieve; refund reimburse
reimbursement repay; register enrol enroll signup; relate connect; relevant pertinent; religion faith;
remember recall; rent lease; repair fix; replace substitute; report statement; rescue save; reset restore;
residence home; restaurant diner; restore recover; result outcome; return back; reverse revert undo; rich
wealthy; rock stone; room space; rubbish trash; rule regulation law; run operate; sad unhappy; safe secure;
salary wage pay; say tell; schedule timetable; seat chair; send transfer ship; separate split; serve
function; set put; setting configuration option; several many multiple; ship vessel boat; shop store; show
display; shop buy; sick ill; sign symptom; similar alike; single one; site website; situation circumstance;
skill ability; sleep rest; smell odour odor scent; soil earth; solution answer; solve resolve; specialise
specialize; specialty speciality; speak talk; speed velocity; spell write; stage phase; state status;
statement declaration; stay remain; steal rob; stop halt cease; store shop keep save; story tale; student
pupil; subject topic theme; suggest propose; suitable appropriate; support help; surname last; sweet candy;
symptom sign; tablet pill; take bring; talk speak chat; teach instruct; team group; television tv; terrible
awful; test try; think believe; thankful grateful; throw toss; tired exhausted; today current; tool
instrument; total whole; tour trip; transaction payment; transfer move send; transport transportation;
travel go; tree plant; truck lorry; true correct; twice double; ugly hideous; underground subway metro;
understand comprehend; update upgrade; usage use utilise utilize; useful helpful; user customer; usual
normal; vacation holiday; various different; vegetable veg; vehicle car; very extremely; vet veterinarian;
visit see; voyage journey; wait hold; walk stroll; war conflict; wash clean; watch see; weak feeble; weather
climate; website site; weird strange; whole entire; win gain; winner champion; woman lady; word term; work function;
worker employee; world globe; worth value; write compose; wrong incorrect; year annual; yearly annually;
young youthful; zero nought; app application; info information; photo photograph; ad advertisement; bio
biography; lab laboratory; dept department; max maximum; min minimum; temp temperature; vs versus; asap
immediately; pc computer; dob birthday birthdate
"""


def _table() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for group in _GROUPS.replace("\n", " ").split(";"):
        stems = {stem(word) for word in group.split()}
        for word in stems:
            found[word] |= stems
    return {word: frozenset(group) for word, group in found.items()}


_SYNONYMS = _table()
_NONE: frozenset[str] = frozenset()


def synonymous(a: str, b: str) -> bool:
    """Whether the thesaurus lists the two stems in one group."""
    return b in _SYNONYMS.get(a, _NONE)


__all__ = ["synonymous"]
