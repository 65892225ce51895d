"""Names of columns and values that mean the same in other languages."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence

from gosta.datasets.class_names import is_known_pair, suggests_positive
from gosta.datasets.columns import match_key, value_text

LIKE = 0.8  # how similar two words are that count as one
LIKE_VALUE = 0.75  # the same of values of a column, as "kardiologia" and "cardiology"
LEAST_VALUE = 6  # letters of such values
FEWEST_LETTERS = 4  # of words of which one may begin with the other, as in "verstorben_am"
# Words of the names of columns; those of a line mean the same.
NAMES = """
age alter edad idade eta leeftijd wiek vek kor alder alter_jahre
sex gender geschlecht sexe sexo sesso geslacht plec pohlavi nem kon
risk risiko risque riesgo risco rischio risico ryzyko riziko kockazat probability score
risk probability prob wahrscheinlichkeit prawdopodobienstwo probabilidad probabilite kans
score punkte punktwert puntaje pontuacao punteggio punkty skore
died dead death deceased verstorben gestorben tod tot decede deces mort fallecido fallecida muerte
died dead death deceased muerto obito morte falecido morto deceduto decesso overleden overlijden
died dead death deceased zgon zmarl smierc umrti zemrel halal
event ereignis evenement evento gebeurtenis zdarzenie udalost esemeny
days time followup follow fup nachbeobachtung suivi seguimiento seguimento obserwacji
days months mnd mies
days maanden monate mois meses mesi miesiace weeks wochen weken tygodnie semanas semaines
days tage jours dias giorni dagen dni dny dzien nap
months monate mois meses mesi maanden miesiace mesice honap
years jahre ans annees anos anni jaren lata roky ev
time zeit temps tiempo tempo tijd czas cas ido duration dauer duree
time followup follow nachbeobachtung suivi seguimiento seguimento obserwacji obserwacja
new neu nouveau nuevo nueva novo nova nuovo nieuw nowy nowe nowa nove uj 2
old alt ancien antiguo antigo vecchio oud stary stare regi 1
height grosse groesse taille altura estatura statura lengte wzrost vyska
weight gewicht poids peso masa waga hmotnost
outcome ergebnis resultado desfecho esito uitkomst wynik vysledek
site hospital klinik krankenhaus hopital hospital ospedale ziekenhuis szpital nemocnice
ward station abteilung service servico servicio afdeling oddzial reparto oddeleni department
id patient patnr patid pacjent pacient paciente paziente
"""
UNITS = {  # of times, in days
    1.0: "days day tage tag jours jour dias dia giorni dagen dni dny nap",
    7.0: "weeks week wochen semaines semanas settimane weken tygodnie",
    30.4375: "months month mths monate monat mois meses mes mesi maanden mnd miesiace mies honap",
    365.25: "years year yrs jahre jahr ans annees anos anni jaren lata roky",
}
MEANINGS = [set(line.split()) for line in NAMES.strip().splitlines()]
WOMEN = """
f w female woman weiblich frau femme feminin mujer femenino feminino femmina donna vrouw v
vrouwelijk kobieta k kob zena zensky no
"""
MEN = """
m male man mannlich mann homme h masculin hombre masculino homem maschio uomo mannelijk mezczyzna
mez muz muzsky ferfi
"""
# What stands for a missing value in columns of text.
CODES = """
k.a. ka b.d. bd brak nd n.d. s.d. n.a. na n/d nv ? - -- . x unknown unbekannt inconnu desconocido
desconhecido sconosciuto onbekend nieznany nieznana missing fehlt fehlend manquant falta mancante
"""
SEXES = set(WOMEN.split()), set(MEN.split())
PLAIN = str.maketrans({"ł": "l", "ß": "ss", "ø": "o", "æ": "ae", "đ": "d"})


def plain(text: str) -> str:
    """Return a text without capitals and accents.

    >>> plain("Zmarł"), plain("Größe")
    ('zmarl', 'grosse')
    """
    letters = unicodedata.normalize("NFKD", text.strip().casefold().translate(PLAIN))
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def likeness(wanted: str, name: str) -> float:
    """Return how much the name of a column means what a wanted one does: 1 for all its words.

    >>> likeness("risk", "Ryzyko zgonu") > likeness("age", "Ryzyko zgonu")
    True
    """
    theirs, found = words_of(name), 0
    others = len(theirs)
    for word in words_of(wanted):
        same = next((one for one in theirs if _is_same(word, one)), None)
        if same is not None:
            found, others = found + 1, others - 1
    return found / max(len(words_of(wanted)), 1) - 0.1 * others if found else 0.0


def words_of(name: str) -> list[str]:
    """Return the words and numbers in the name of a column, without capitals and accents."""
    return re.findall(r"[a-z]+|\d+", plain(name))


def _is_same(wanted: str, word: str) -> bool:
    meant = {wanted}.union(*(words for words in MEANINGS if wanted in words))
    return any(
        word == one
        or (min(len(word), len(one)) >= FEWEST_LETTERS and word.startswith(one))
        or difflib.SequenceMatcher(None, word, one).ratio() >= LIKE
        for one in meant
    )


def days_of(name: str) -> float | None:
    """Return how many days the unit of time in a name has; None if there is none.

    >>> days_of("follow_up_mnd"), days_of("Tempo (dias)"), days_of("age")
    (30.4375, 1.0, None)
    """
    words = {*words_of(name)}
    return next((days for days, units in UNITS.items() if words & {*units.split()}), None)


def is_code(value: str) -> bool:
    """Return whether a text is known to stand for a missing value."""
    return value.strip().casefold() in CODES.split()


def level_of(value: object, levels: Sequence[str | int | float]) -> str | int | float | None:
    """Return the declared value that a value of a file means; None if that is not clear.

    >>> level_of("Tak", ("no", "yes")), level_of("K", ("f", "m")), level_of("x", ("no", "yes"))
    ('yes', 'f', None)
    """
    text = plain(value_text(value))
    names = [plain(value_text(level)) for level in levels]
    if text in names:
        return levels[names.index(text)]
    for words in SEXES:
        own = [level for level, name in zip(levels, names, strict=True) if name in words]
        if text in words and len(own) == 1 and {*names} <= SEXES[0] | SEXES[1]:
            return own[0]
    if len(levels) == 2 and is_known_pair(value_text(levels[0]), value_text(levels[1])):
        spoken = value_text(value)
        if is_known_pair("no", spoken) or is_known_pair(spoken, "yes"):
            return levels[suggests_positive("", spoken)]
    begun = [level for level, name in zip(levels, names, strict=True) if name.startswith(text)]
    if len(begun) == 1 and len(text) > 1:
        return begun[0]
    near = difflib.get_close_matches(text, names, n=2, cutoff=LIKE_VALUE)
    return levels[names.index(near[0])] if len(near) == 1 and len(text) >= LEAST_VALUE else None


def unknown_values(values: Iterable[object], levels: Sequence[str | int | float]) -> list[object]:
    """Return the values that are none of the declared ones, in any form of these."""
    known = set(map(match_key, levels))
    return [value for value in dict.fromkeys(values) if match_key(value) not in known]
