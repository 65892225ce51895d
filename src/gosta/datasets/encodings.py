"""The encoding of a text, as far as its letters tell it."""

from __future__ import annotations

import codecs
import re

MOST_BYTES = 1 << 16  # of other than ASCII, and what follows them, that are looked at
FEWEST_ZEROS = 0.3  # of the bytes of a text in UTF-16
# The letters of a language beyond ASCII, and its encodings, the likeliest first.
WESTERN = ("latin-1", "cp1252", "mac-roman")
CENTRAL = ("cp1250", "iso8859-2")
LETTERS = (
    ("äöüß", WESTERN),
    ("éèêëàâçîïôùûœ", WESTERN),
    ("áéíóúñüªº", WESTERN),
    ("ãõáéíóúâêôçàªº", WESTERN),
    ("àèéìòù", WESTERN),
    ("åäöæøé", WESTERN),
    ("áéíóúýþæöð", WESTERN),
    ("ëïéöüáóíè", WESTERN),
    ("ąćęłńóśźż", CENTRAL),
    ("áčďéěíňóřšťúůýžäľĺôŕ", CENTRAL),
    ("áéíóöőúüű", CENTRAL),
    ("ăâîşţ", CENTRAL),
    ("čćđšž", CENTRAL),
)
SIGNS = frozenset("°²³µ§±×€–—‘’“”„«»…·\xa0£¿¡")
MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
UNIT = re.compile("(?<![a-z])[cdkm]?m[²³]", re.IGNORECASE)


def likely(content: bytes) -> str:
    """Return the encoding that the bytes of a text are likely in.

    Examples
    --------
    >>> likely("Größe".encode("latin-1")), likely("zmarł".encode("cp1250"))
    ('latin-1', 'cp1250')
    """
    for mark, encoding in MARKS.items():
        if content.startswith(mark):
            return encoding
    zeros = [content[k::2].count(0) / max(len(content), 1) for k in (0, 1)]
    if max(zeros) > FEWEST_ZEROS:
        return "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    if _is_utf8(content):
        return "utf-8"
    costs = _costs(content)
    return min(costs, key=lambda encoding: costs[encoding])


def better(content: bytes, encoding: str) -> str:
    """Return the encoding whose letters fit a text better than those of one; "" if none does."""
    if content.isascii() and 0 not in content:  # the same in all encodings but UTF-16
        return ""
    found, name = likely(content), codecs.lookup(encoding).name
    if found.startswith("utf") or name == "utf-8":
        return "" if codecs.lookup(found).name == name else found
    costs = _costs(content)
    own = next((cost for one, cost in costs.items() if codecs.lookup(one).name == name), 0.0)
    return found if own > costs[found] else ""


def _is_utf8(content: bytes) -> bool:
    """Return whether bytes are UTF-8, but for a letter that their end cuts."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(content)
    except UnicodeError:
        return False
    return True


def _costs(content: bytes) -> dict[str, float]:
    """Return how many characters no language has, by encoding: of that which fits best."""
    parts = b" ".join(re.findall(rb"[A-Za-z]{0,3}[\x80-\xff]+[A-Za-z]?", content))[:MOST_BYTES]
    costs = dict[str, float]()
    for letters, encodings in LETTERS:
        for encoding in encodings:
            text = UNIT.sub("m", parts.decode(encoding, "replace"))
            cost = sum(_cost(text, place, letters) for place in range(len(text)))
            costs[encoding] = min(cost, costs.get(encoding, cost))
    return costs


def _cost(text: str, place: int, letters: str) -> float:
    sign, after = text[place], text[place + 1 : place + 2]
    if sign.isascii() or sign.lower() in letters:
        return 0.0
    return 0.5 if sign in SIGNS and not after.isalpha() else 1.0
