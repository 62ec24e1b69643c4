"""Formulas become MathML when the site is built: they show without scripts, and without a network."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Replace what arithmatex marked."""

    def as_mathml(match: re.Match[str]) -> str:
        display = "block" if match[2] == "[" else "inline"
        return str(convert(html.unescape(match[3]), display=display))

    return FORMULA.sub(as_mathml, content)
