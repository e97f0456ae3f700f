"""tools/choice_page.py: a page of named choices says of each one what it means."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import choice_page


def test_every_choice_has_a_meaning() -> None:
    rows = re.findall(r'^\| `"(\w+)"` \| (.*) \|$', choice_page.page(), re.MULTILINE)
    assert len(rows) > 40
    assert [value for value, meaning in rows if not meaning.strip()] == []
