"""The page: whole, safe, small, the same twice, and saying what was found."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest

from gpclf.report import make_report, nll
from report.stubs import subject_and_table

EVIL = (
    '<script>alert(1)</script>"><img src=x onerror=alert(2)> $x^2_ ]]> \x00\x07\ud800 &amp; \u202e'
)
VOID = {"meta", "link", "br", "hr", "col"}
SIZE = 1_000_000


class Reader(HTMLParser):
    """Tags in their order, those that are open, and the text."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.open, self.words, self.wrong = [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        self.words.append(data)


def made(subject, table, seed=0, title=None, date=None):
    return make_report(subject, table, title, date, seed, lambda stage, done: None)


@pytest.fixture(scope="module")
def page():
    return made(*subject_and_table(label="kind"))


@pytest.fixture(scope="module")
def evil():
    names = (EVIL, f"other {EVIL}", "idle")
    subject, table = subject_and_table(
        names=names, classes=(EVIL, "b"), levels=(None, [EVIL, "z", "zz"], None), label=EVIL
    )
    subject = replace(subject, card={EVIL: {EVIL: EVIL}})
    return made(subject, table, title=EVIL, date=EVIL)


def test_every_tag_is_closed_and_every_id_is_its_own(page, evil):
    for each in (page, evil):
        found = Reader(each.html)
        assert found.wrong == found.open == []
        ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
        assert len(set(ids)) == len(ids)
        targets = {attrs["href"][1:] for tag, attrs in found.tags if tag == "a"}
        used = {attrs["href"][1:] for tag, attrs in found.tags if tag == "use"}
        clips = set(re.findall(r"url\(#([^)]*)\)", each.html))
        assert targets | used | clips <= set(ids)


def test_nothing_is_asked_for_outside_the_file(page, evil):
    for each in (page, evil):
        for tag, attrs in Reader(each.html).tags:
            for name in ("src", "href", "action", "srcset", "data", "poster", "background"):
                value = attrs.get(name) or "#"
                assert value.startswith(("#", "data:")), (tag, name, value)
        assert "@import" not in each.html
        assert not re.search(r"url\((?!#)", each.html)
        assert "default-src 'none'" in each.html


def test_nothing_runs_whatever_names_and_values_are(evil):
    found = Reader(evil.html)
    assert not {"script", "img", "iframe", "object"} & {tag for tag, _ in found.tags}
    assert not [name for _, attrs in found.tags for name in attrs if name.startswith("on")]
    assert "<script" not in evil.html.lower()
    assert any("<script>alert(1)" in words for words in found.words)
    assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff\u202e]", evil.html)
    evil.html.encode()


def test_the_same_rows_and_seed_give_the_same_bytes(page):
    again = made(*subject_and_table(label="kind"))
    assert again.html == page.html
    other = made(*subject_and_table(label="kind"), seed=1, date="2030-01-31")
    assert other.html != page.html
    assert "2030-01-31" in other.html
    assert not re.search(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]", page.html)


def test_it_is_a_document_for_all_readers(page):
    found = Reader(page.html)
    tags = [tag for tag, _ in found.tags]
    assert page.html.startswith("<!DOCTYPE html>")
    assert dict(found.tags)["html"] == {"lang": "en"}
    assert tags.count("h1") == tags.count("main") == 1
    levels = [int(tag[1]) for tag in tags if re.fullmatch("h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    pictures = [attrs for tag, attrs in found.tags if tag == "svg"]
    assert all(attrs["role"] == "img" and attrs["aria-label"] for attrs in pictures)
    assert tags.count("figure") == tags.count("figcaption") == len(pictures)
    assert tags.count("table") == tags.count("caption")
    assert found.tags[tags.index("a")][1]["class"] == "skip"
    for words in ("prefers-color-scheme:dark", "@media print"):
        assert words in page.html


def test_its_numbers_are_those_of_the_rows(page):
    subject, table = subject_and_table(label="kind")
    logs = subject.log_proba(table.X, None)
    scores = page.figures["judged"]["scores"]
    assert scores["nll"]["value"] == nll(logs, table.y)
    assert scores["nll"]["low"] < scores["nll"]["value"] < scores["nll"]["high"]
    assert np.sum(page.figures["judged"]["confusion"]) == len(table.y)
    assert f"{nll(logs, table.y):.3f}" in page.html
    assert page.figures["classes"] == ["a", "b", "c"]


def test_without_labels_all_else_is_told():
    subject, table = subject_and_table()
    found = made(subject, replace(table, y=None))
    assert found.figures["judged"] is None
    assert "nothing is scored" in found.html
    for name in ("reliability", "confusion", "curves", "scores"):
        assert f'id="{name}"' not in found.html
    for name in ("summary", "importance", "dependence", "uncertainty", "drift", "history", "card"):
        assert f'id="{name}"' in found.html


def test_300_000_rows_stay_below_a_megabyte():
    subject, table = subject_and_table(300_000, trained=5000)
    found = made(subject, table)
    assert len(found.html.encode()) < SIZE / 2


def test_of_many_classes_and_features_the_top_dozen_is_shown():
    names = tuple(f"feature {i}" for i in range(300))
    classes = tuple(f"class {i:04}" for i in range(250))
    subject, table = subject_and_table(200, names, classes, trained=1500)
    found = made(subject, table)
    assert len(found.html.encode()) < SIZE
    assert "238 classes with fewer rows" in found.html
    assert "288 columns that differ less are left out" in found.html


def test_one_row_two_classes_and_gaps():
    subject, table = subject_and_table(1, classes=("no", "yes"))
    assert "1\u00a0row" in made(subject, table).html
    X = np.where(np.arange(3) == 2, table.X, np.nan)
    assert made(subject, replace(table, X=X)).html


def test_training_rows_are_recognised_and_others_not():
    subject, table = subject_and_table(500)
    assert "has learned from" not in made(subject, table).html
    summary = type(subject.summary).of(table.X, table.y, np.ones(500), subject.columns.counts, 3)
    found = made(replace(subject, summary=summary), table)
    assert "has learned from" in found.html
    assert all(each["psi"] == 0 for each in found.figures["drift"])


def test_a_notebook_shows_it_in_a_frame_in_which_nothing_runs(page):
    frame = Reader(page._repr_html_())
    assert [tag for tag, _ in frame.tags] == ["iframe"]
    assert frame.tags[0][1]["sandbox"] == ""
    assert frame.tags[0][1]["srcdoc"] == page.html
    assert "400" in repr(page)


def test_progress_is_told_from_start_to_end():
    told = []
    make_report(*subject_and_table(), None, None, 0, lambda stage, done: told.append(done))
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0, 1)
