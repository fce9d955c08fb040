from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.data.characters import (
    as_text,
    character_classes,
    code_points,
    folded_code_points,
    joined_lines,
)
from longtail.kernels.handle import handle_of
from longtail.kernels.text import (
    CharacterClass,
    TokenKind,
    TokenRules,
    Vocabulary,
    emit_tokens,
    encode_text,
    encode_texts,
    mark_words,
    new_scratch,
)
from longtail.kernels.token_numbers import (
    NumberedTokens,
    new_tokens,
    number_texts,
    numbers_of_keys,
    weigh_numbers,
)
from longtail.kernels.token_tables import build_table, column_of

# Every class of character, markers and line feeds among them, in few enough characters to meet.
MIXED = st.text(st.sampled_from("abcß1 ++#<>-\n\u0301\u00ad\u200d字語かไท่ย😀👍🏽क्ष"), max_size=40)
TEXTS = st.one_of(MIXED, st.text(max_size=40))
BITS = (1 << 64) - 1
LETTER_OF_CLASS = dict(zip(CharacterClass, "SLUMIY", strict=True))


def rules_of(word_ngrams=2, shortest=3, longest=5):
    return TokenRules(character_classes(), word_ngrams, shortest, longest)


def twin_classes(text):
    classes = character_classes()
    return "".join(LETTER_OF_CLASS[CharacterClass(classes[ord(c)])] for c in text)


def visible(text, kept):
    return "".join(c for c, found in zip(text, kept, strict=True) if found != "I")


def twin_mark(text):
    """Words by a regular expression over the classes of the characters."""
    classes = twin_classes(text)
    words = re.finditer(r"L[LMI]*(?:Y++(?!L))?|U[UMI]*", classes)
    return "".join(f"<{visible(text[w.start() : w.end()], w.group())}>" for w in words)


def twin_hash(codes, state=0x243F6A8885A308D3):
    for code in codes:
        state = ((state ^ code) * 0x9E3779B97F4A7C15) & BITS
        state ^= state >> 32
    return state


def twin_words(marked):
    """Spans of the words of a marked text, each with whether it goes on with the one before."""
    classes = twin_classes(marked)
    for run in re.finditer(r"<([^>]+)>", marked):
        pattern = "UM*" if classes[run.start(1)] == "U" else ".+"
        for word in re.finditer(pattern, classes[run.start(1) : run.end(1)]):
            yield run.start(1) + word.start(), run.start(1) + word.end(), word.start() > 0


def twin_tokens(marked, rules):
    """(key, start, stop) of every token, in no order."""
    codes = [ord(c) for c in marked]
    found = []

    def put(state, kind, start, stop):
        found.append((state & ~3 | kind, start, stop))

    words = list(twin_words(marked))
    for start, stop, _ in words:
        put(twin_hash(codes[start:stop]), TokenKind.WORD, start, stop)
    for (start, middle, _), (second, stop, joined) in pairwise(words):
        if joined:
            put(twin_hash(codes[start:stop]), TokenKind.WORD, start, stop)
        elif rules.word_ngrams > 1:
            first = (twin_hash(codes[start:middle]) * 0xD6E8FEB86659FD93) & BITS
            put(twin_hash([twin_hash(codes[second:stop])], first), TokenKind.PAIR, start, stop)
    for run in re.finditer(r"<[^>]+>", marked):
        for length in range(rules.shortest, min(rules.longest, len(run.group()) - 1) + 1):
            for start in range(run.start(), run.end() - length + 1):
                state = twin_hash(codes[start : start + length])
                put(state, TokenKind.CHARACTERS, start, start + length)
    return sorted(found)


def keys_of(text, rules):
    return [key for key, _, _ in twin_tokens(twin_mark(text), rules)]


def folded(text):
    return "".join(map(chr, folded_code_points(text)))


@settings(max_examples=50, deadline=None)
@given(TEXTS)
def test_words_are_marked_as_the_twin_marks_them(text):
    codes = folded_code_points(text)
    marked = np.zeros(3 * codes.size, np.uint32)
    n_marked = mark_words(codes, 0, codes.size, character_classes(), marked)
    assert "".join(map(chr, marked[:n_marked])) == twin_mark(folded(text))


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("C++, C# und F#-Code: a+b", "<c++><c#><und><f#><code><a><b>"),
        ("Schiff\u00adfahrt über Größe", "<schifffahrt><über><grösse>"),
        ("\uff21\uff22\uff23 \ufb01n x\u00b2", "<abc><fin><x2>"),
        ("iPhone手機2020年", "<iphone><手機><2020><年>"),
        ("जलवायु परिवर्तन", "<जलवायु><परिवर्तन>"),
        ("مُدَرِّس مـدرس", "<مدرس><مدرس>"),
        ("ΟΔΟΣ οδός", "<οδοσ><οδόσ>"),
        ("\u0301 \u200d !?", ""),
        ("a\ud800b", "<a><b>"),
        ("a\ud83d\ude00b", "<a><\U0001f600><b>"),  # as a column of texts has it
    ],
)
def test_words_of_many_scripts(text, marked):
    codes = folded_code_points(text)
    out = np.zeros(3 * codes.size, np.uint32)
    n_marked = mark_words(codes, 0, codes.size, character_classes(), out)
    assert "".join(map(chr, out[:n_marked])) == marked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (":-) :-(", [":-)", ":-("]),
        ("<3> >:(", ["3"]),  # it has a word
        ("<> >_<", ["<>", ">_<"]),  # as the markers of words are
        ("++ \u2264\u200b\u2211", ["++", "\u2264", "\u2211"]),
        ("so :-) c++", ["so", "c++"]),
        ("\U0001f600 :-)", ["\U0001f600"]),
        ("\u0301 \u200d\n\U000f0041", []),
    ],
)
def test_symbols_are_words_where_a_text_has_no_other(text, words):
    codes = code_points(text)
    out = np.zeros(3 * codes.size, np.uint32)
    n_marked = mark_words(codes, 0, codes.size, character_classes(), out)
    assert as_text(out[:n_marked]) == "".join(f"<{word}>" for word in words)


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.sampled_from([(1, 1, 0), (1, 3, 5), (2, 2, 2), (2, 3, 9)]))
def test_tokens_are_the_twins(text, numbers):
    rules = rules_of(*numbers)
    codes = folded_code_points(text)
    scratch = new_scratch(codes.size, rules)
    n_marked = mark_words(codes, 0, codes.size, rules.classes, scratch.marked)
    n = emit_tokens(n_marked, rules, scratch)
    columns = (scratch.keys[:n], scratch.starts[:n], scratch.stops[:n])
    found = sorted(zip(*(column.tolist() for column in columns), strict=True))
    assert found == twin_tokens(twin_mark(folded(text)), rules)


def twin_spelling(text, rules):
    """How each token of a text is spelled, by its key."""
    marked = twin_mark(text)
    return {
        key: marked[start:stop].replace("><", " ") if key & 3 == TokenKind.PAIR else token
        for key, start, stop in twin_tokens(marked, rules)
        if (token := marked[start:stop])
    }


def numbered(texts, rules, parts=1):
    """What `number_texts` learns of texts in some steps; also the numbers of each text."""
    known, n_known, rows = new_tokens(), 0, []
    for start, stop in pairwise(np.linspace(0, len(texts), parts + 1).astype(int).tolist()):
        codes, offsets = joined_lines(texts, start, stop, folded_code_points)
        arrays, n_known, numbers, lengths = number_texts(
            codes, offsets, start, rules, known, n_known
        )
        known = NumberedTokens(*arrays)
        rows += np.split(numbers, np.cumsum(lengths)[:-1])[: stop - start]
    keys = [0] * n_known
    for key, entry in known.table[known.table[:, 0] != 0].tolist():
        keys[entry & 0xFFFFFFFF] = key
    return known, keys, rows


@settings(max_examples=25, deadline=None)
@given(st.lists(TEXTS, max_size=8), st.integers(1, 3))
def test_tokens_are_numbered_counted_and_spelled_as_the_twins_are(texts, parts):
    rules = rules_of()
    known, keys, rows = numbered(texts, rules, parts)
    expected = Counter(key for text in texts for key in set(keys_of(folded(text), rules)))
    assert dict(zip(keys, known.n_texts_of.tolist(), strict=False)) == expected
    spellings = {}
    for text, row in zip(texts, rows, strict=True):
        assert sorted(keys[number] for number in row) == sorted(keys_of(folded(text), rules))
        spellings |= twin_spelling(folded(text), rules)
    spelled = known.spelled.tobytes()
    for number, key in enumerate(keys):
        token = spelled[known.ends[number] : known.ends[number + 1]].decode()
        assert token == spellings[key]


def test_symbols_that_are_words_are_spelled_as_they_were():
    codes = code_points(":-\u2264 \U0001d100\n")
    arrays, n_known, _, _ = number_texts(
        codes, np.array([0, codes.size]), 0, rules_of(1, 1, 0), new_tokens(), 0
    )
    known = NumberedTokens(*arrays)
    spelled = known.spelled[: known.ends[n_known]].tobytes().decode()
    assert (n_known, spelled) == (2, ":-\u2264\U0001d100")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 2**62 - 1).map(lambda i: 4 * i + 1), max_size=60))
def test_keys_are_numbered_in_the_order_of_their_first(keys):
    numbers, n_different = numbers_of_keys(np.array(keys, np.uint64))
    order = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    assert n_different == len(order)
    assert numbers.tolist() == [order[key] for key in keys]


def test_the_table_of_numbers_grows():
    keys = np.random.default_rng(0).integers(1, 2**62, 20_000).astype(np.uint64)
    numbers, n_different = numbers_of_keys(np.concatenate([keys, keys]))
    assert n_different == np.unique(keys).size
    np.testing.assert_array_equal(numbers[:20_000], numbers[20_000:])


def twin_row(text, rules, column_of_key, weights):
    counts = Counter(column_of_key[key] for key in keys_of(text, rules) if key in column_of_key)
    columns = sorted(counts)
    values = np.array([(1 + math.log(counts[c])) * weights[c] for c in columns])
    return columns, values / max(np.linalg.norm(values), 1e-300)


@settings(max_examples=25, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=6), st.integers(1, 3))
def test_rows_are_the_twins_one_by_one_and_together(texts, every):
    rules = rules_of()
    keys = sorted({key for text in texts for key in keys_of(folded(text), rules)})[::every]
    weights = np.linspace(1, 2, len(keys)).astype(np.float32)
    table = build_table(np.array(keys, np.uint64))
    table.flags.writeable = weights.flags.writeable = False
    vocabulary = handle_of(Vocabulary(rules, table, weights))
    codes, offsets = joined_lines(texts, 0, len(texts), folded_code_points)
    lengths, indices, values = encode_texts(codes, offsets, rules, table, weights)
    ends = np.cumsum(lengths)
    for text, start, stop in zip(texts, ends - lengths, ends, strict=True):
        columns, expected = twin_row(
            folded(text), rules, {key: i for i, key in enumerate(keys)}, weights
        )
        assert indices[start:stop].tolist() == columns
        np.testing.assert_allclose(values[start:stop], expected, rtol=1e-6)
        alone = encode_text(vocabulary, folded_code_points(text))
        np.testing.assert_array_equal(alone[0], indices[start:stop])
        np.testing.assert_array_equal(alone[1], values[start:stop])
    _, numbered_keys, rows = numbered(texts, rules)
    column_of_key = {key: column for column, key in enumerate(keys)}
    column_of = np.array([column_of_key.get(key, -1) for key in numbered_keys], np.int32)
    row_lengths = np.array([len(row) for row in rows])
    numbers = np.concatenate(rows)
    room = np.zeros(len(numbers), np.int32), np.zeros(len(numbers), np.float32)
    again_lengths = weigh_numbers(numbers, row_lengths, column_of, weights, *room)
    again = again_lengths, *(part[: again_lengths.sum()] for part in room)
    for array, same in zip((lengths, indices, values), again, strict=True):
        np.testing.assert_array_equal(array, same)


@settings(max_examples=25, deadline=None)
@given(
    st.sets(st.integers(4, 2**62 - 1), max_size=60), st.sets(st.integers(4, 2**62 - 1), max_size=9)
)
def test_columns_of_known_and_unknown_keys(known, others):
    keys = [4 * key + 1 for key in known]  # the low bits of a key are its kind, never 0
    keys = list({key % 2**32: key for key in keys}.values())
    table = build_table(np.array(keys, np.uint64))
    assert [column_of(table, np.uint64(key)) for key in keys] == list(range(len(keys)))
    low_halves = {key % 2**32 for key in keys}  # all that a table keeps of a key
    unknown = [4 * key + 1 for key in others if (4 * key + 1) % 2**32 not in low_halves]
    assert {column_of(table, np.uint64(key)) for key in unknown} <= {-1}


def test_output_grows_with_a_text_of_many_tokens_and_every_one_is_spelled():
    rules = rules_of(2, 2, 9)
    text = " ".join(f"wort{number}" for number in range(300))
    keys = sorted(set(keys_of(text, rules)))
    table = build_table(np.array(keys, np.uint64))
    weights = np.ones(len(keys), np.float32)
    table.flags.writeable = weights.flags.writeable = False
    codes, offsets = joined_lines([text], 0, 1, folded_code_points)
    lengths, indices, _ = encode_texts(codes, offsets, rules, table, weights)
    assert indices.tolist() == list(range(len(keys)))
    assert lengths.tolist() == [len(keys)]
    known, numbered_keys, _ = numbered([text], rules)
    spelled = known.spelled.tobytes()
    ends = known.ends[: len(keys) + 1].tolist()
    tokens = [spelled[start:stop].decode() for start, stop in pairwise(ends)]
    assert dict(zip(numbered_keys, tokens, strict=True)) == twin_spelling(text, rules)
