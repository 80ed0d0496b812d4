"""What a user may have meant by a name that is not known."""

import re
from collections.abc import Iterable
from difflib import get_close_matches


def unknown(what: str, name: str, names: Iterable[str]) -> str:
    """A sentence for a name that is not known, with the known ones that are most like it."""
    plain = {_plain(known): known for known in names}
    same = plain.get(_plain(name))
    likely = [same] if same else [plain[p] for p in get_close_matches(_plain(name), plain)]
    hint = f": did you mean {' or '.join(map(repr, likely))}?" if likely else "."
    return f"There is no {what} named {name!r}{hint} The names are {', '.join(plain.values())}."


def is_class(what: str, kind: type) -> str:
    """A sentence for a class where an object of it should be."""
    name = kind.__name__
    return f"{what} must be an object or a name, not the class {name}: did you mean {name}()?"


def _plain(name: str) -> str:
    """Only letters and digits, in one case: what people remember of a name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
