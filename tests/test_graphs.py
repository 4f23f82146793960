"""Graphs of pages: what each format holds, worked out by hand, and the form that opens at once."""

from __future__ import annotations

import gzip
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

import pytest
from commands import Command

import hallumaze
from hallumaze import Graph, UsageError, load_graph, open_graph, read_graph

WIKISPEEDIA = Path(__file__).resolve().parents[2] / "shared" / "wiki"
needs_wikispeedia = pytest.mark.skipif(
    not (WIKISPEEDIA / "links.tsv").exists(), reason="the Wikispeedia data is not here"
)


def links(graph: Graph) -> dict[str, set[str]]:
    """All links by title."""
    return {
        graph.title(page): {graph.title(int(p)) for p in graph.ahead.of(page)}
        for page in range(len(graph))
    }


def linking(graph: Graph) -> dict[str, set[str]]:
    """The same against the links."""
    return {
        graph.title(page): {graph.title(int(p)) for p in graph.behind.of(page)}
        for page in range(len(graph))
    }


# -- a dump of twelve pages -----------------------------------------------------------------------
#
# Articles: 1 Alpha, 2 "Bob's, (Café)", 3 C\D, 4 Delta, 5 Eps"ilon; of namespace 1: 6 Alpha (talk).
# Redirects: 7 Al → 8 Alfa → 1 Alpha (a chain), 9 Round → 10 Circle → 9 (a cycle), 11 Gone →
# nothing.
# 12 Lonely links to Alpha, but nothing links to it.

PAGES = r"""
CREATE TABLE `page` (
  `page_id` int(10) unsigned NOT NULL AUTO_INCREMENT,
  `page_title` varbinary(255) NOT NULL DEFAULT '',
  `page_namespace` int(11) NOT NULL DEFAULT 0,
  `page_is_redirect` tinyint(1) unsigned NOT NULL DEFAULT 0,
  PRIMARY KEY (`page_id`),
  UNIQUE KEY `page_name_title` (`page_namespace`,`page_title`)
) ENGINE=InnoDB;
INSERT INTO `page` VALUES (1,'Alpha',0,0),(2,'Bob\'s,_(Café)',0,0),(3,'C\\D',0,0),(4,'Delta',0,0);
INSERT INTO `page` VALUES (5,'Eps\"ilon',0,0),(6,'Alpha',1,0),(7,'Al',0,1),(8,'Alfa',0,1),
(9,'Round',0,1),(10,'Circle',0,1),(11,'Gone',0,1),
(12,'Lonely',0,0);
"""
REDIRECTS = r"""
CREATE TABLE `redirect` (
  `rd_from` int(8) unsigned NOT NULL DEFAULT 0,
  `rd_namespace` int(11) NOT NULL DEFAULT 0,
  `rd_title` varbinary(255) NOT NULL DEFAULT '',
  `rd_interwiki` varbinary(32) DEFAULT NULL,
  `rd_fragment` varbinary(255) DEFAULT NULL,
  PRIMARY KEY (`rd_from`)
);
INSERT INTO `redirect` VALUES (7,0,'Alfa','',''),(8,0,'Alpha',NULL,'Part, (one)');
INSERT INTO `redirect` VALUES (9,0,'Circle','',NULL),(10,0,'Round','','');
INSERT INTO `redirect` VALUES (11,0,'Nothing\'s_here','','');
"""
# (from, namespace, title). Alpha → Bob, a talk page, itself, a red link; Bob → C\D twice, and by
# two redirects → Alpha; C\D → Delta, a circle; Delta → Al → Alpha; Eps ↔ Delta; a redirect's own.
LINKED = [
    (1, 0, "Bob's,_(Café)"),
    (1, 1, "Alpha"),
    (1, 0, "Alpha"),
    (1, 0, "Red_(link)"),
    (2, 0, "C\\D"),
    (2, 0, "C\\D"),
    (2, 0, "Alfa"),
    (2, 0, "Al"),
    (3, 0, "Delta"),
    (3, 0, "Round"),
    (3, 0, "Gone"),
    (4, 0, "Al"),
    (4, 0, 'Eps"ilon'),
    (5, 0, "Delta"),
    (6, 0, "Delta"),
    (7, 0, "Alfa"),
    (8, 0, "Delta"),
    (12, 0, "Alpha"),
]
WANTED = {
    "Alpha": {"Bob's, (Café)"},
    "Bob's, (Café)": {"C\\D", "Alpha"},
    "C\\D": {"Delta"},
    "Delta": {"Alpha", 'Eps"ilon'},
    'Eps"ilon': {"Delta"},
}


def quoted(title: str) -> str:
    return "'" + title.replace("\\", "\\\\").replace("'", "\\'").replace('"', '\\"') + "'"


def old_pagelinks() -> str:
    rows = ",".join(f"({page},{space},{quoted(title)},0)" for page, space, title in LINKED)
    extra = f"(1,0,{quoted('Delta')},1)"  # from another namespace
    return f"""
CREATE TABLE `pagelinks` (
  `pl_from` int(8) unsigned NOT NULL DEFAULT 0,
  `pl_namespace` int(11) NOT NULL DEFAULT 0,
  `pl_title` varbinary(255) NOT NULL DEFAULT '',
  `pl_from_namespace` int(11) NOT NULL DEFAULT 0
);
INSERT INTO `pagelinks` VALUES {rows};
INSERT INTO `pagelinks` VALUES {extra};
"""


def new_pagelinks() -> dict[str, str]:
    targets = list(dict.fromkeys((space, title) for _, space, title in LINKED))
    of_table = ",".join(f"({k + 70},{s},{quoted(t)})" for k, (s, t) in enumerate(targets))
    rows = ",".join(f"({page},0,{targets.index((s, t)) + 70})" for page, s, t in LINKED)
    return {
        "linktarget": f"""
CREATE TABLE `linktarget` (
  `lt_id` bigint(20) unsigned NOT NULL AUTO_INCREMENT,
  `lt_namespace` int(11) NOT NULL,
  `lt_title` varbinary(255) NOT NULL
);
INSERT INTO `linktarget` VALUES {of_table};
""",
        "pagelinks": f"""
CREATE TABLE `pagelinks` (
  `pl_from` int(8) unsigned NOT NULL DEFAULT 0,
  `pl_from_namespace` int(11) NOT NULL DEFAULT 0,
  `pl_target_id` bigint(20) unsigned NOT NULL
);
INSERT INTO `pagelinks` VALUES {rows};
INSERT INTO `pagelinks` VALUES (1,1,{targets.index((0, "Delta")) + 70}),(99,0,70),(1,0,9999);
""",
    }


def dump(folder: Path, schema: str, packed: bool = True) -> Path:
    """A folder of dumps in the old or the new schema."""
    tables = {"page": PAGES, "redirect": REDIRECTS}
    tables |= {"pagelinks": old_pagelinks()} if schema == "old" else new_pagelinks()
    for name, text in tables.items():
        data = text.encode()
        if packed:
            (folder / f"tinywiki-20260601-{name}.sql.gz").write_bytes(gzip.compress(data))
        else:
            (folder / f"{name}.sql").write_bytes(data)
    return folder


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("schema", ["old", "new"])
def test_a_dump_of_twelve_pages(schema: str, packed: bool, tmp_path: Path) -> None:
    graph = read_graph(dump(tmp_path, schema, packed))
    assert links(graph) == WANTED
    backwards = {title: {a for a, to in WANTED.items() if title in to} for title in WANTED}
    assert linking(graph) == backwards
    assert graph.find("Al") == graph.find("alfa") == graph.find("ALPHA") == graph.find("Alpha")
    assert graph.find("bob's,_(CAFÉ)") == graph.find("Bob's, (Cafe\u0301)") is not None
    for name in ("Lonely", "Round", "Circle", "Gone"):
        assert graph.exists(name) and graph.find(name) is None
    for name in ("Red (link)", "Nothing's here", "Alpha talk", ""):
        assert not graph.exists(name)


def test_both_schemas_hold_the_same_graph(tmp_path: Path) -> None:
    old, new = tmp_path / "a", tmp_path / "b"
    old.mkdir(), new.mkdir()
    assert read_graph(dump(old, "old")).sha256 == read_graph(dump(new, "new")).sha256


@pytest.mark.parametrize(
    ("table", "change", "said"),
    [
        ("page", lambda t: t.replace("'Alpha',0,0", "'Alpha',0"), "damaged or cut"),
        ("page", lambda t: t.replace("page_title", "page_name"), "no column page_title"),
        ("page", lambda t: t.replace("(4,", "(four,"), "page.sql: line 10: its rows are damaged"),
        ("page", lambda t: t.replace("'C\\\\D'", "'Alpha'"), "lists a title or an id twice"),
        ("page", lambda t: "hello", "no CREATE TABLE"),
        ("linktarget", lambda t: t[:-20], "damaged or cut"),
        (
            "pagelinks",
            lambda t: t.replace("(1,0,70)", "(1,0,seventy)"),
            "pagelinks.sql: line 7: its",
        ),
    ],
)
def test_a_damaged_dump_is_named(table: str, change, said: str, tmp_path: Path) -> None:
    dump(tmp_path, "new", packed=False)
    path = tmp_path / f"{table}.sql"
    path.write_text(change(path.read_text()))
    with pytest.raises(UsageError, match=said) as error:
        read_graph(tmp_path)
    assert f"{table}.sql" in str(error.value)


def test_a_dump_that_is_cut_or_lacks_a_table(tmp_path: Path) -> None:
    dump(tmp_path, "new")
    path = tmp_path / "tinywiki-20260601-pagelinks.sql.gz"
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(UsageError, match=r"pagelinks\.sql\.gz: cannot be read"):
        read_graph(tmp_path)
    path.write_bytes(whole)
    (tmp_path / "tinywiki-20260601-linktarget.sql.gz").unlink()
    with pytest.raises(UsageError, match=r"needs linktarget\.sql"):
        read_graph(tmp_path)
    path.unlink()
    with pytest.raises(UsageError, match=r"no pagelinks\.sql"):
        read_graph(tmp_path)


# -- the other formats ----------------------------------------------------------------------------

TRIANGLE = {"A b": {"C"}, "C": {"Dé"}, "Dé": {"A b", "C"}}  # and Q, to which nothing links


def wikispeedia(folder: Path) -> Path:
    (folder / "articles.tsv").write_text("# titles\n\nA_b\nC\nD%C3%A9\nQ\n")
    (folder / "links.tsv").write_text(
        "#\nA_b\tC\nC\tD%C3%A9\nD%C3%A9\tA_b\nD%C3%A9\tC\nQ\tC\nC\tC\n"
    )
    return folder


def snap(folder: Path) -> Path:
    (folder / "topcats-page-names.txt").write_text("3 A_b\n10 C\n20 Dé\n7 Q\n")
    edges = "# from to\n3 10\n10\t20\n20 3\n20 10\n7 10\n10 10\n3 10\n"
    (folder / "topcats.txt.gz").write_bytes(gzip.compress(edges.encode()))
    return folder


def adjacency(folder: Path) -> Path:
    (folder / "graph.tsv").write_text("A_b\t1\nC\t2 1\nDé\t0,1\nQ\t1\n")
    return folder / "graph.tsv"


def sqlite(folder: Path) -> Path:
    path = folder / "core.db"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE core_articles (title TEXT, links_json TEXT)")
        rows = [("A b", ["C", "Red"]), ("C", ["Dé", "C"]), ("Dé", ["A_b", "C", "C"]), ("Q", ["C"])]
        base.executemany(
            "INSERT INTO core_articles VALUES (?, ?)", [(t, json.dumps(to)) for t, to in rows]
        )
    base.close()
    return path


FORMATS = [wikispeedia, snap, adjacency, sqlite]


@pytest.mark.parametrize("made", FORMATS)
def test_formats(made, tmp_path: Path) -> None:
    graph = read_graph(made(tmp_path))
    assert links(graph) == TRIANGLE
    assert graph.exists("q") and graph.find("Q") is None and not graph.exists("Red")
    target = graph.find("A b")
    assert [int(graph.distances(target)[graph.find(t)]) for t in ("A b", "C", "Dé")] == [0, 2, 1]
    # 1, 1 and 2 links: two of three pages have one, half of them count as fewer.
    assert graph.percentile(graph.find("C")) == pytest.approx(1 / 3)
    assert graph.percentile(graph.find("Dé")) == pytest.approx(2.5 / 3)


@pytest.mark.parametrize(
    ("made", "name", "text", "said"),
    [
        (wikispeedia, "links.tsv", "A_b\tC\nC\tNobody\n", r"links.tsv: line 2: it must name"),
        (wikispeedia, "links.tsv", "A_b\n", r"links.tsv: line 1"),
        (wikispeedia, "links.tsv", "A_b\tC\n", "no two of its pages can reach each other"),
        (snap, "topcats-page-names.txt", "3 A\nten C\n", "names.txt: line 2: it must be an id"),
        (snap, "topcats-page-names.txt", "3 A\n", "the id 10 has no name"),
        (adjacency, "graph.tsv", "A\t1\nB\tx\n", "graph.tsv: line 2: it must be a title"),
        (adjacency, "graph.tsv", "A\t1\nB\t0 7\n", "graph.tsv: line 2: there is no page 7"),
        (adjacency, "graph.tsv", "hello\n", "no graph in a known format"),
        (sqlite, "core.db", "SQLite format 3\0 but not really", "no core_articles"),
    ],
)
def test_what_is_damaged_is_named(made, name: str, text: str, said: str, tmp_path: Path) -> None:
    path = made(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(UsageError, match=said):
        read_graph(path)


def test_an_edge_list_of_words(tmp_path: Path) -> None:
    snap(tmp_path)
    (tmp_path / "topcats.txt.gz").write_bytes(gzip.compress(b"3 10\n10 x\n"))
    with pytest.raises(UsageError, match=r"txt\.gz: line 2: it must be two ids"):
        read_graph(tmp_path)


# -- distances, by a search of our own ------------------------------------------------------------


def independent_distances(graph: dict[str, set[str]], target: str) -> dict[str, int]:
    """Breadth first over plain sets."""
    found, queue = {target: 0}, deque([target])
    while queue:
        page = queue.popleft()
        for other in graph:
            if page in graph[other] and other not in found:
                found[other] = found[page] + 1
                queue.append(other)
    return found


def test_distances_in_the_atlas() -> None:
    atlas = load_graph("")
    graph = links(atlas)
    for target in ("Portugal", "China", "Lesotho"):
        moves = atlas.distances(atlas.find(target))
        mine = {atlas.title(page): int(moves[page]) for page in range(len(atlas))}
        assert mine == independent_distances(graph, target)


# -- the form that opens at once ------------------------------------------------------------------


def test_the_command_writes_what_opens_again(command: Command, tmp_path: Path) -> None:
    source = tmp_path / "s"
    source.mkdir()
    made = command("graph", str(dump(source, "new")), "-o", "g", "--license", "CC BY-SA 4.0")
    assert (made.code, made.err.count("reading")) == (0, 4)
    assert made.out.strip().endswith("5 pages, 7 links")
    folder = command.folder / "g"
    graph, read = open_graph(folder), read_graph(source)
    assert links(graph) == WANTED and graph.sha256 == read.sha256
    assert graph.find("Al") == graph.find("Alpha") and graph.exists("Gone")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["license"], manifest["pages"], manifest["links"]) == ("CC BY-SA 4.0", 5, 7)
    assert manifest["sha256"] == graph.sha256
    again = command("graph", str(source), "-o", "g")
    assert again.code == 2 and "exists" in again.err
    played = command(
        "--world", "wiki", "--graph", "g", "--games", "1", "--model", "reference/oracle"
    )
    assert played.code == 0, played.err


def test_a_damaged_graph_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "g"
    folder.mkdir()
    hallumaze.write_graph(load_graph(""), folder, {})
    assert links(open_graph(folder)) == links(load_graph(""))
    path = folder / "ahead_indices.npy"
    whole = path.read_bytes()
    os.utime(path)  # another time, the same content: it is looked into
    assert len(open_graph(folder)) == len(load_graph(""))
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(UsageError, match=r"ahead_indices\.npy: is damaged"):
        open_graph(folder)
    path.write_bytes(whole[:-4])
    with pytest.raises(UsageError, match=r"ahead_indices\.npy: is damaged"):
        open_graph(folder)
    path.write_bytes(whole)
    (folder / "keys.bin").unlink()
    with pytest.raises(UsageError, match=r"keys\.bin: is damaged or missing"):
        open_graph(folder)
    (folder / "manifest.json").write_text('{"graph": 1}')
    with pytest.raises(UsageError, match=r"manifest\.json: is no manifest"):
        open_graph(folder)


def test_a_build_that_is_killed_leaves_no_graph(tmp_path: Path) -> None:
    source = tmp_path / "s"
    source.mkdir()
    dump(source, "old", packed=False)
    table = source / "pagelinks.sql"
    table.unlink()
    os.mkfifo(table)  # it waits here
    program = [sys.executable, hallumaze.__file__, "graph", str(source), "-o", str(tmp_path / "g")]
    with subprocess.Popen(program, stderr=subprocess.DEVNULL) as running:
        while not list(tmp_path.glob(".g.building-*")):
            time.sleep(0.05)
        running.send_signal(signal.SIGKILL)
    assert not (tmp_path / "g").exists() and list(tmp_path.glob(".g.building-*"))
    table.unlink()
    table.write_text(old_pagelinks())
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["g", "s"]
    assert links(open_graph(tmp_path / "g")) == WANTED


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["graph", "nowhere", "-o", "g"], "no such file or folder"),
        (["graph", ".", "-o", "g"], "no graph in a known format"),
        (["graph", "."], "--output"),
        (["--world", "wiki", "--graph", "nowhere"], "no such file or folder"),
    ],
)
def test_bad_use(arguments: list[str], said: str, command: Command) -> None:
    done = command(*arguments)
    assert done.code == 2 and said in done.err and "Traceback" not in done.err
    assert not (command.folder / "g").exists()


# -- real data ------------------------------------------------------------------------------------


@needs_wikispeedia
def test_wikispeedia_as_others_counted_it() -> None:
    import numpy as np

    graph = read_graph(WIKISPEEDIA)
    assert (len(graph), len(graph.ahead.indices)) == (4051, 111_795)
    assert int((graph.out_degrees > 50).sum()) == 453
    pairs = np.zeros(256, np.int64)
    for page in range(len(graph)):
        pairs += np.bincount(graph.distances(page), minlength=256)
    assert [int(pairs[a : a + 2].sum()) for a in (3, 5, 7)] == [12_737_138, 815_338, 12_313]
