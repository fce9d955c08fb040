"""The playground, in a real browser."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
import uvicorn
from scipy.sparse import csr_array

from chromium import NEEDS_CHROMIUM, sync_api
from conftest import HOSTILE
from longtail import Dataset, LongtailClassifier, load
from longtail.data.label_space import LabelSpace
from longtail.data.text_column import TextColumn
from longtail.serve import Limits, app

pytestmark = NEEDS_CHROMIUM


@contextmanager
def served(path, limits=None):
    """Serve a folder from a thread; yield the address."""
    application = app(path, limits=limits)
    config = uvicorn.Config(application, port=0, log_level="error", ws="none", lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def address(text_model_path):
    with served(text_model_path) as found:
        yield found


@pytest.fixture
def page(browser):
    """A page whose errors fail the test, and which may ask its own server only."""
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    found = context.new_page()
    found.set_default_timeout(10_000)
    problems = []
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("console", lambda m: problems.append(m.text) if "Content Security" in m.text else None)
    found.on("request", lambda r: found.asked.append(r.url))
    found.asked = []
    yield found
    context.close()
    assert not problems
    assert not [url for url in found.asked if not url.startswith(("http://127.0.0.1", "data:"))]


def labels(page, count):
    """Return the labels that are shown once there are so many."""
    sync_api.expect(page.locator(".label")).to_have_count(count)
    return page.locator(".name").all_text_contents()


def test_labels_come_while_typing_with_scores_and_time(page, address):
    page.goto(address)
    sync_api.expect(page.locator("#model")).to_have_text("11 labels, recipe longtail")
    page.locator("#text").press_sequentially("a glass of red wine", delay=20)
    # Answers to what was typed so far come before it.
    sync_api.expect(page.locator(".name", has_text="drink")).to_have_count(1)
    labels(page, 5)
    sync_api.expect(page.locator("#took")).to_contain_text("ms")
    scores = [float(text.split()[0]) for text in page.locator(".score").all_text_contents()]
    assert scores == sorted(scores, reverse=True)
    assert sum("/predict" in url for url in page.asked) < 19  # not one a key
    page.locator("#text").fill("")
    assert labels(page, 0) == []


def test_the_number_of_labels_can_be_switched_by_mouse_and_keys(page, address):
    page.goto(address)
    page.locator("#text").fill("red wine")
    labels(page, 5)
    page.locator("label:has(input[value='3'])").click()
    labels(page, 3)
    page.keyboard.press("ArrowRight")
    labels(page, 5)
    page.keyboard.press("ArrowRight")
    labels(page, 10)


@pytest.mark.parametrize(("most", "offered"), [(3, "3"), (4, "34"), (7, "357")])
def test_no_more_labels_are_offered_than_are_allowed(page, text_model_path, most, offered):
    with served(text_model_path, Limits(k=most)) as address:
        page.goto(address)
        assert page.locator("#sizes span").all_text_contents() == list(offered)
        page.locator("#text").fill("red wine")
        labels(page, min(5, most))
        page.locator("#sizes label").last.click()
        labels(page, most)
        sync_api.expect(page.locator("#trouble")).to_be_hidden()


def test_a_label_is_explained_by_keyboard_alone(page, address):
    page.goto(address)
    sync_api.expect(page.locator("#text")).to_be_focused()
    page.keyboard.type("old wine")
    labels(page, 5)
    page.keyboard.press("Tab")  # to the sizes
    page.keyboard.press("Tab")  # to the first label
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    words = page.locator(".why .word")
    sync_api.expect(words).to_have_count(2)
    assert {text.split("+")[0].split("\u2212")[0] for text in words.all_text_contents()} == {
        "old",
        "wine",
    }
    assert page.locator(".label[aria-expanded=true]").count() == 1
    assert page.locator(".near li").count() == 5
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Escape")  # closes what is open, wherever the focus is
    sync_api.expect(page.locator(".why")).to_have_count(0)
    assert page.locator(".label[aria-expanded=true]").count() == 0
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "text"
    assert page.locator("#text").input_value() == "old wine"


def test_nothing_that_comes_is_read_as_html(page, address):
    page.goto(address)
    page.locator("#text").fill(f"sweet wine {HOSTILE}")
    assert HOSTILE in labels(page, 5)
    page.locator(".label", has_text="<img").click()
    sync_api.expect(page.locator(".why .word").first).to_be_visible()
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_screen_shows_all_in_both_schemes(browser, address, scheme):
    context = browser.new_context(viewport={"width": 320, "height": 640}, color_scheme=scheme)
    page = context.new_page()
    page.goto(address)
    page.locator("#text").fill("sweet wine in a glass " + "w" * 60)
    labels(page, 5)
    page.locator(".label").first.click()
    sync_api.expect(page.locator(".why .word").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground[4:-1].split(","))
    assert brightness > 600 if scheme == "light" else brightness < 120
    context.close()


def test_what_is_written_from_the_right_keeps_its_numbers_behind_it(page, address):
    page.goto(address)
    name, word = "\u05d9\u05d9\u05df (\u05d0\u05d3\u05d5\u05dd)", "\u05d9\u05d9\u05df"
    words = [{"word": word, "effect": -0.5}]
    found = {"labels": [name], "scores": [0.5], "milliseconds": 1}
    points = [{"labels": [name, "wine"], "similarity": 0.5, "row": row} for row in (1234, None)]
    why = {"labels": [{"label": name, "words": words}], "near_points": points}
    page.route("**/predict", lambda route: route.fulfill(json=found))
    page.route("**/explain", lambda route: route.fulfill(json={**found, "explanation": why}))
    page.locator("#text").fill(word)
    page.locator(".label").click()
    sync_api.expect(page.locator(".word")).to_have_text(f"{word}\u22120.50")
    texts = [page.locator(".word span"), page.locator(".near span").first]
    behind = [page.locator(".word small"), page.locator(".near span").nth(1)]
    for one, other in zip(texts, behind, strict=True):
        assert one.bounding_box()["x"] < other.bounding_box()["x"]
    is_rtl = "node => getComputedStyle(node).direction"
    assert {page.locator(at).first.evaluate(is_rtl) for at in ("#text", ".name", ".word span")} == {
        "rtl"
    }
    assert page.locator(".word small").evaluate(is_rtl) == "ltr"
    told = [one.split("similarity ")[1] for one in page.locator(".near li").all_text_contents()]
    assert told == ["0.50, row 1,234 of the training data", "0.50"]


def test_a_broken_model_is_a_sentence(page, tmp_path, text_model_path):
    folder = tmp_path / "model"
    shutil.copytree(text_model_path, folder)
    (folder / "encoder.safetensors").write_bytes(b"damaged")
    with served(folder) as address:
        page.goto(address)
        trouble = page.locator("#trouble")
        sync_api.expect(trouble).to_contain_text("There is no model to answer with.")
        sync_api.expect(trouble).to_contain_text("encoder.safetensors")
        page.locator("#text").fill("red wine")
        sync_api.expect(trouble).to_be_visible()
        labels(page, 0)
    page.locator("#text").fill("red wine again")
    sync_api.expect(trouble).to_contain_text("The server does not answer")


def test_what_is_too_long_is_said(page, address):
    page.goto(address)
    page.locator("#text").fill("wine " * 5_000)
    sync_api.expect(page.locator("#trouble")).to_contain_text("at most 20,000 are allowed")
    page.locator("#text").fill("wine")
    labels(page, 5)
    sync_api.expect(page.locator("#trouble")).to_be_hidden()


def test_what_was_wrong_with_a_text_goes_with_it(page, address):
    page.goto(address)
    page.locator("#text").fill("zzz")
    sync_api.expect(page.locator("#empty")).to_contain_text("knows nothing of these words")
    page.locator("#text").fill("wine " * 5_000)
    sync_api.expect(page.locator("#trouble")).to_be_visible()
    sync_api.expect(page.locator("#empty")).to_be_empty()
    page.locator("#text").fill("wine")
    labels(page, 5)
    page.locator("#text").fill("wine " * 5_000)
    sync_api.expect(page.locator("#trouble")).to_be_visible()
    labels(page, 0)
    page.locator("#text").fill("")
    sync_api.expect(page.locator("#trouble")).to_be_hidden()


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """A model of labels of which three share a name."""
    texts = [f"{word} wine" for word in ("red", "white", "dry")] * 10
    labels = csr_array(np.eye(4, dtype=np.float32)[[0, 1, 2] * 10])
    space = LabelSpace.from_names(["wine", "wine", "wine", "car"])
    data = Dataset(TextColumn.from_strings(texts), None, labels, space)
    path = tmp_path_factory.mktemp("twins") / "model"
    LongtailClassifier(dimension=16).fit_dataset(data).save(path)
    return path


def test_labels_that_share_a_name_are_told_apart(page, twins):
    with served(twins) as address:
        page.goto(address)
        page.locator("#text").fill("red wine")
        assert labels(page, 4)[:3] == ["wine"] * 3
        explained = page.request.post(f"{address}explain", data={"text": "red wine", "k": 5}).json()
        words = explained["explanation"]["labels"][1]["words"]
        assert words != explained["explanation"]["labels"][0]["words"]
        page.locator(".label").nth(1).click()
        sync_api.expect(page.locator(".why .word")).to_have_count(2)
        shown = page.locator(".why .word small").all_text_contents()
        assert [float(text.replace("\u2212", "-")) for text in shown] == [
            pytest.approx(word["effect"], abs=0.006) for word in words
        ]
        page.locator("#text").press_sequentially(" glass")
        sync_api.expect(page.locator("#took")).to_contain_text("ms")
        rows = page.locator(".label")
        sync_api.expect(rows.nth(1)).to_have_attribute("aria-expanded", "true")
        assert page.locator(".label[aria-expanded=true]").count() == 1


def test_a_page_that_is_come_back_to_is_as_it_was(page, address):
    """Playwright's Chromium keeps no whole pages: it fills in the form when all has run."""
    page.goto(address)
    page.locator("#text").fill("red wine")
    page.locator("label:has(input[value='3'])").click()
    labels(page, 3)
    page.goto(f"{address}healthz")
    page.go_back()
    sync_api.expect(page.locator("#text")).to_have_value("red wine")
    labels(page, 3)
    assert page.locator("input[name=k]:checked").get_attribute("value") == "3"


def test_what_is_chosen_can_be_seen_in_forced_colours(browser, address):
    context = browser.new_context(forced_colors="active")
    page = context.new_page()
    page.goto(address)
    page.locator("#text").fill("red wine")
    labels(page, 5)
    ground = "node => getComputedStyle(node).backgroundColor"
    of_sizes = page.locator("#sizes span").evaluate_all(f"all => all.map({ground})")
    assert len(set(of_sizes)) == 2
    assert page.locator(".bar").first.evaluate(ground) != page.locator(".track").first.evaluate(
        ground
    )
    context.close()


def test_what_is_heard_is_the_answer_and_not_the_time(page, address):
    page.goto(address)
    page.locator("#text").fill("red wine")
    labels(page, 5)
    sync_api.expect(page.get_by_role("status")).to_have_text(
        f"5 labels, the best: {page.locator('.name').first.text_content()}"
    )
    page.locator("#text").fill("zzz")
    sync_api.expect(page.get_by_role("status")).to_contain_text("No label")
    assert page.locator("#took").get_attribute("aria-live") is None


@pytest.fixture
def replaced(text_model_path, tmp_path, monkeypatch):
    """A folder whose server looks often whether it has changed."""
    monkeypatch.setattr("longtail.serve.application.SECONDS_BETWEEN_LOOKS", 0.02)
    shutil.copytree(text_model_path, tmp_path / "model")
    return tmp_path / "model"


def until(page, address, status, n_labels):
    """Wait until the server has seen what is in its folder."""
    stop = time.monotonic() + 20
    while True:
        found = page.request.get(f"{address}healthz").json()
        if (found["status"], found["n_labels"]) == (status, n_labels):
            break
        assert time.monotonic() < stop
        time.sleep(0.02)


def test_a_label_that_has_gone_with_its_model_is_not_explained(page, replaced):
    with served(replaced) as address:
        page.goto(address)
        page.locator("#text").fill("red wine")
        assert "drink" in labels(page, 5)
        load(replaced).without_labels(["drink"]).save(replaced)
        until(page, address, "ok", 10)
        page.locator(".label", has_text="drink").click()
        sync_api.expect(page.locator(".name", has_text="drink")).to_have_count(0)
        labels(page, 5)
        sync_api.expect(page.locator(".why")).to_have_count(0)
        sync_api.expect(page.locator("#model")).to_contain_text("10 labels")


def test_the_head_is_of_the_model_that_answers(page, replaced):
    with served(replaced) as address:
        page.clock.install()
        page.goto(address)
        page.locator("#text").fill("red wine")
        sync_api.expect(page.locator("#model")).to_contain_text("11 labels")
        load(replaced).without_labels(["drink"]).save(replaced)
        until(page, address, "ok", 10)
        page.clock.fast_forward(10_000)
        page.locator("#text").fill("old car")
        page.clock.run_for(1_000)
        sync_api.expect(page.locator("#model")).to_contain_text("10 labels")


def test_a_model_that_could_not_be_replaced_is_told_until_it_is(page, replaced):
    manifest = replaced / "manifest.json"
    whole = manifest.read_bytes()
    with served(replaced) as address:
        manifest.write_bytes(b"{}")
        until(page, address, "outdated", 11)
        page.goto(address)
        sync_api.expect(page.locator("#trouble")).to_contain_text("An older model answers")
        page.locator("#text").fill("red wine")
        labels(page, 5)
        sync_api.expect(page.locator("#trouble")).to_contain_text("An older model answers")
        manifest.write_bytes(whole)
        until(page, address, "ok", 11)
        page.locator("#text").fill("red wine in a glass")
        sync_api.expect(page.locator("#trouble")).to_be_hidden()
