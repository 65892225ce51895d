"""Names of classes that say which of two is the positive one, in several languages."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from math import nan

POSITIVE = (
    # English
    "1 + abnormal affected bad case cases cancer dead death deceased died disease diseased event "
    "fail failed failure ill malignant pos positive present responder sick t treated treatment "
    "true y yes "
    # German
    "auffällig befallen behandelt bösartig ereignis erkrankt fall gestorben ja krank positiv tod "
    "tot verstorben vorhanden wahr "
    # French
    "cas décédé décédée décès evènement événement malade malin maligne mort morte oui positif "
    "présent traité vrai "
    # Spanish, Italian, Portuguese, Dutch
    "si sí sì sim caso enfermo enferma fallecido fallecida falleció maligno maligna malato malata "
    "muerto muerta morto morta deceduto deceduta óbito positivo positiva presente verdadero "
    "verdadera vero overleden ziek falecido falecida faleceu "
    # Polish, Czech, Hungarian
    "tak zgon zmarł zmarła chory chora ano zemřel zemřela nemocný igen meghalt elhunyt"
)
NEGATIVE = (
    # English
    "-1 0 - absent alive benign control controls f false good healthy n neg negative no none "
    "non-case noncase non-responder nonresponder normal ok placebo survived unaffected untreated "
    # German
    "falsch gesund gutartig kein keine kontrolle lebend lebt nein negativ unauffällig unbehandelt "
    "überlebt "
    # French
    "bénin bénigne faux négatif négative non sain saine survie témoin vivant vivante "
    # Spanish, Italian, Portuguese, Dutch
    "ausente benigno benigna falso falsa não nee negativo negativa sano sana vivo viva controllo "
    "gezond levend "
    # Polish, Czech, Hungarian
    "nie żyje zdrowy zdrowa ne žije zdravý nem él"
)


def is_known_pair(negative: str, positive: str) -> bool:
    """Return whether two names say that the second is the positive class, as no and yes do.

    >>> is_known_pair("nein", "Ja"), is_known_pair("Ja", "nein"), is_known_pair("f", "m")
    (True, False, False)
    """
    return _plain(negative) in NEGATIVE.split() and _plain(positive) in POSITIVE.split()


def suggests_positive(negative: str, positive: str) -> bool:
    """Return whether one of two names suggests that the second is the positive class."""
    return _plain(negative) in NEGATIVE.split() or _plain(positive) in POSITIVE.split()


def event_flags(values: Sequence[object]) -> list[float] | None:
    """Return 1 and 0 for names of what happened and what did not; None if others are among them.

    >>> event_flags(["ja", "nein", None]), event_flags(["ja", "perhaps"])
    ([1.0, 0.0, nan], None)
    """
    flags: dict[str | None, float] = {None: nan}
    flags.update(dict.fromkeys(NEGATIVE.split(), 0.0))
    flags.update(dict.fromkeys(POSITIVE.split(), 1.0))
    keys = [None if value is None or value != value else _plain(str(value)) for value in values]
    return [flags[key] for key in keys] if set(keys) <= set(flags) else None


def _plain(name: str) -> str:
    return unicodedata.normalize("NFC", name.strip()).casefold()
