"""The page of a review, in a real browser."""

from __future__ import annotations

import json

import pytest

from chromium import NEEDS_CHROMIUM, sync_api
from conftest import HOSTILE
from longtail.cli.review_page import write_review_page

pytestmark = NEEDS_CHROMIUM

POINTS = ["my train.jsonl", "--labels", "labels.txt"]
ENDS_SCRIPT = "</script><script>window.hacked=2</script><!--"


def row(kind, point, text, label, **more):
    given, answers = ["drink", label][: 1 + (kind == "doubtful")], ["vehicle", HOSTILE]
    return {
        "kind": kind,
        "point": point,
        "text": text,
        "label": label,
        "probability": 0.875,
        "given": given,
        "answers": answers,
        "label_id": point,
    } | more


ROWS = [
    row("missing", 3, f"old car {ENDS_SCRIPT}", "vehicle"),
    row("missing", 5, "an old\ncar", HOSTILE),
    row("doubtful", 7, "new car", "drink", probability=0.0),
    row("doubtful", 9, "fast car", "wine " * 40, answers=[]),
]


@pytest.fixture
def address(tmp_path):
    path = tmp_path / "review.html"
    write_review_page(
        path, ROWS, title="2 labels may be missing", points=POINTS, target="new.jsonl"
    )
    return path.as_uri()


@pytest.fixture
def page(browser, address):
    """The page, whose errors fail the test, and which may ask nobody."""
    context = browser.new_context(viewport={"width": 900, "height": 700})
    found = context.new_page()
    found.set_default_timeout(10_000)
    problems = []
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("console", lambda message: problems.append(message.text))
    found.on("request", lambda r: problems.extend([r.url] * (r.url[:5] not in {"file:", "data:"})))
    found.goto(address)
    yield found
    assert found.evaluate("window.hacked") is None
    context.close()
    assert not problems


def count(page, text):
    sync_api.expect(page.locator("#count")).to_have_text(text)


def saved(page):
    with page.expect_download() as download:
        page.locator("#save").click()
    assert download.value.suggested_filename == "review.accepted.jsonl"
    return [json.loads(line) for line in download.value.path().read_text().splitlines()]


def test_texts_stay_texts(page):
    items = page.locator("li")
    sync_api.expect(items).to_have_count(4)
    sync_api.expect(items.nth(0).locator(".text")).to_have_text(ROWS[0]["text"])
    sync_api.expect(items.nth(1).locator(".label")).to_have_text(HOSTILE)
    assert items.nth(0).locator(".answer").all_text_contents() == ["drink", "vehicle", HOSTILE]
    sync_api.expect(items.nth(2)).to_contain_text("may be wrong, 0.0 % probable")
    sync_api.expect(items.nth(3)).to_contain_text("A model says: nothing")


def test_keys_decide_and_what_is_to_be_changed_is_saved(page):
    count(page, "0 of 4 decided, 0 to change")
    sync_api.expect(page.locator("#save")).to_be_disabled()
    for key in ("y", "n", "y"):
        page.keyboard.press(key)  # each goes on to the next
    count(page, "3 of 4 decided, 2 to change")
    assert saved(page) == [ROWS[0], ROWS[2]]
    command = "longtail review 'my train.jsonl' --labels labels.txt"
    command += " --apply review.accepted.jsonl --output new.jsonl"
    sync_api.expect(page.locator("#next")).to_contain_text(command)


def test_a_decision_can_be_changed_and_undone(page):
    page.keyboard.press("y")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("n")
    count(page, "1 of 4 decided, 0 to change")
    page.keyboard.press("k")
    page.keyboard.press("u")
    count(page, "0 of 4 decided, 0 to change")


def test_buttons_decide_too(page):
    page.get_by_role("button", name="Put it in").nth(1).click()
    page.get_by_role("button", name="Keep it").nth(0).click()
    count(page, "2 of 4 decided, 1 to change")
    pressed = page.locator("[aria-pressed=true]").all_text_contents()
    assert pressed == ["Put it in", "Keep it"]
    page.get_by_role("button", name="Keep it").nth(0).click()  # once more takes it back
    count(page, "1 of 4 decided, 1 to change")


def test_what_was_decided_is_there_when_the_page_is_opened_again(page, address):
    page.keyboard.press("y")
    count(page, "1 of 4 decided, 1 to change")
    page.goto(address)
    count(page, "1 of 4 decided, 1 to change")
    assert page.locator("[aria-pressed=true]").all_text_contents() == ["Put it in"]


def test_one_kind_alone_or_what_is_open_can_be_shown(page):
    page.keyboard.press("y")
    shown = page.locator("li:visible")
    for kind, n in (("doubtful", 2), ("missing", 2), ("open", 3), ("all", 4)):
        page.locator("#shown").select_option(kind)
        sync_api.expect(shown).to_have_count(n)


def test_a_narrow_screen_needs_no_scrolling_to_the_side(browser, address):
    context = browser.new_context(viewport={"width": 340, "height": 600}, color_scheme="dark")
    page = context.new_page()
    page.goto(address)
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
    context.close()
