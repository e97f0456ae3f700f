"""tools/choice_page.py: the page of named choices says of each one what it means."""

import re

from tools.choice_page import page


def test_every_choice_has_a_meaning() -> None:
    rows = re.findall(r'^\| `"(\w+)"` \| (.*) \|$', page(), re.MULTILINE)
    assert len(rows) > 40
    assert [value for value, meaning in rows if not meaning.strip()] == []
