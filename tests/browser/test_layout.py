"""The page in a browser: everything fits, on screens of every width, on a phone and on paper."""

import itertools
import json
import re
import shutil

import numpy as np
import pytest

from invariantnet.app.runs import write_report
from invariantnet.estimator.persistence import RUN
from invariantnet.report.charts import Bar, Line, bars, lines

pytestmark = pytest.mark.usefixtures("annotations_unchecked")
brief = pytest.mark.usefixtures("brief_comparison")


@brief
@pytest.mark.parametrize("width", [360, 768, 1280])
@pytest.mark.parametrize("state", ["decided", "inconclusive", "partial", "nothing learned"])
def test_a_page_fits_every_width_in_every_state(run, tmp_path, visit, width, state):
    shutil.copytree(run, tmp_path / "run")
    record = json.loads((run / RUN).read_text())
    if state == "inconclusive":
        record["posterior"]["probabilities"] = [0.2, 0.2, 0.35, 0.25]
        record["posterior"]["at_least"] = [1.0, 0.45, 0.6, 0.25]
    if state == "partial":
        record["posterior"]["refuted_by"] = {"rot90": ["8"]}
    record["posterior"]["learned"] = state != "nothing learned"
    (tmp_path / "run/run.json").write_text(json.dumps(record))
    page = visit(write_report(tmp_path / "run"), viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    first = page.inner_text("header")
    assert {
        "decided": "You need not add copies",
        "inconclusive": "does not decide",
        "partial": "Only some classes",
    }.get(state, "No network") in first
    assert page.locator("header li").count() >= 3, "what to do"
    # Everything that can be operated is reached by the keyboard, and has a name.
    for element in page.locator("button, select, a, summary, [tabindex='0']").all():
        assert (
            element.inner_text().strip()
            or element.get_attribute("aria-label")
            or element.evaluate("e => e.labels?.length")
        )
    for link in page.locator("nav a").all():
        assert page.locator(link.get_attribute("href")).count() == 1


def test_long_names_and_many_lines_stay_inside_their_pictures(tmp_path, visit):
    rows = [Line(f"reversal+sign+cyclic {i}", ((0.0, 0.0), (1.0, -float(i)))) for i in range(20)]
    bar = [Bar("reversal+sign+permutations", 0.5, "0.500")]
    (tmp_path / "page.html").write_text(
        f"<style>text.label {{text-anchor: end}}</style>{lines(rows, 'ab', '')}{bars(bar, '')}"
    )
    page = visit(tmp_path / "page.html", viewport={"width": 900, "height": 1400})
    outside = page.evaluate(
        """() => [...document.querySelectorAll("svg")].flatMap(svg => {
            const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number)
            return [...svg.querySelectorAll("text")].filter(text => {
                const box = text.getBBox()
                return box.x < 0 || box.y < 0 || box.x + box.width > width || box.y + box.height > height
            }).map(text => text.textContent)
        })"""
    )
    assert outside == []


@pytest.mark.parametrize("count", [1, 4, 16])
def test_names_of_lines_neither_touch_nor_leave_the_chart(count):
    rows = [Line(f"group {k}", [(0.0, 0.0), (1.0 + k % 3, -1.0 - (k % 2))]) for k in range(count)]
    chart = str(lines(rows, ["0", "1", "2", "3"], "a race"))
    height = int(re.search(r'viewBox="0 0 \d+ (\d+)"', chart)[1])
    names = sorted(float(y) for y in re.findall(r'y="([\d.]+)" class="name"', chart))
    assert len(names) == count
    assert names[0] > 0
    assert names[-1] < height - 24, "below are the ticks"
    assert all(below - above > 15 for above, below in itertools.pairwise(names))


def test_the_prices_of_four_symmetries_need_no_scrolling_on_a_desktop(run, visit):
    page = visit(run / "report.html", viewport={"width": 1280, "height": 800})
    widths = "(table => [table.scrollWidth, table.clientWidth])(document.querySelector('#prices .scroll'))"
    needed, given = page.evaluate(widths)
    assert needed <= given


def test_print_shows_wide_tables_whole(run, visit):
    page = visit(run / "report.html", viewport={"width": 794, "height": 1123}, color_scheme="dark")
    page.emulate_media(media="print")
    ten_symmetries = "while (row.cells.length < 13) row.append(row.lastElementChild.cloneNode(true))"
    page.evaluate(f"document.querySelectorAll('#prices tr').forEach(row => {{ {ten_symmetries} }})")
    edges = "[...document.querySelectorAll('table')].map(table => table.getBoundingClientRect().right)"
    right = page.evaluate(f"Math.max(...{edges})")
    assert right <= 794
    loss = "getComputedStyle(document.querySelector('td.loss, .wrong')).color"
    assert page.evaluate(loss) == "rgb(181, 42, 85)", "as on white, although the screen is dark"


def test_print_unfolds_what_the_screen_folds(run, visit):
    page = visit(run / "report.html")
    verdict = page.locator("details p").first
    assert not verdict.is_visible()
    page.emulate_media(media="print")
    assert verdict.is_visible()
    assert not page.locator("nav").is_visible()


def test_print_fills_its_pages_and_breaks_no_short_word(run, visit):
    page = visit(run / "report.html", viewport={"width": 718, "height": 1000})
    page.emulate_media(media="print")
    height = page.evaluate("document.documentElement.scrollHeight")
    pages = len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4")))
    assert pages <= 1.2 * height / 1000 + 1
    for word in ("elements", "price"):
        header = page.locator("#prices thead th", has_text=word).first
        assert (
            header.evaluate("""e => {
            const text = document.createRange();
            text.selectNodeContents(e);
            return new Set([...text.getClientRects()].map(line => line.top)).size
        }""")
            == 1
        )


def test_letters_of_charts_can_be_read_on_a_phone(run, visit):
    page = visit(run / "report.html", viewport={"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    measured = page.evaluate("""() => [...document.querySelectorAll("svg.chart text")].map(text => {
        const svg = text.ownerSVGElement, chart = svg.getBoundingClientRect(), box = text.getBoundingClientRect();
        const scale = chart.width / svg.viewBox.baseVal.width;
        const size = scale * parseFloat(getComputedStyle(text).fontSize);
        return [size, box.left - chart.left, chart.right - box.right];
    })""")
    sizes, left, right = np.array(measured).T
    assert sizes.min() > 9.5
    assert min(left.min(), right.min()) > -0.5, "inside the chart"
