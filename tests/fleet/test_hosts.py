"""Which workers can take part, as values."""

import pytest

from debug_spyre.fleet import board as moves
from debug_spyre.fleet.board import Board, Unit
from debug_spyre.fleet.hosts import Facts, Host, cards_of, differences, hosts_of, versions_differ
from debug_spyre.vocabulary.errors import EnvironmentTroubleError
from debug_spyre.vocabulary.masking import is_secret_file


def facts(**more):
    known = {
        "machine": "s390x",
        "python": "3.12.1",
        "torch": "2.13.0",
        "torch_spyre": "aa",
        "devices": ("/dev/vfio/7", "/dev/vfio/9"),
        "boot": "b",
    }
    return Facts(**{**known, **more})


def answer(name="w", offered=2, **more):
    told = facts(**more)
    return {
        "name": name,
        "resources": {"spyre": offered},
        "facts": {f: getattr(told, f) for f in Facts.__dataclass_fields__},
    }


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ({}, "no worker, so none with the resource 'spyre'"),
        ({"tcp://h:1": {"name": "w", "resources": {}}}, "1 workers, none with"),
        ({"tcp://h:1": answer(machine="x86_64")}, "worker w is a x86_64, and this host is a s390x"),
        ({"tcp://h:1": {"name": "w", "resources": {"spyre": 4}, "trouble": "no program there"}}, "worker w: no program there"),
        ({"tcp://h:1": answer(devices=())}, "offers spyre=2, and its host shows no card"),
    ],
)  # fmt: skip
def test_workers_that_can_not_take_part_are_named(answers, says):
    with pytest.raises(EnvironmentTroubleError, match=says) as caught:
        hosts_of(answers, facts(), address="tcp://s:1")
    assert caught.value.next


def test_a_worker_without_the_resource_beside_one_that_has_it_is_left_alone():
    hosts, notes = hosts_of(
        {"tcp://a:1": answer("a"), "tcp://b:1": {"name": "b", "resources": {}}}, facts(), address="s"
    )
    assert [host.name for host in hosts] == ["a"] and notes == []


def test_what_differs_is_said_once_with_who_has_it_and_what_is_not_installed_here_is_no_difference():
    hosts = [Host("1", "a", 1, facts(torch_spyre="bb")), Host("2", "b", 1, facts(torch_spyre="bb"))]
    assert differences(facts(), hosts) == ["torch-spyre differs: aa on here; bb on a, b"]
    assert differences(facts(torch_spyre=None), hosts) == []
    assert differences(facts(torch_spyre=None), [*hosts, Host("3", "c", 1, facts(torch_spyre=None))]) == [
        "torch-spyre differs: bb on a, b; none on c"
    ]


def test_two_workers_of_one_host_do_not_have_its_cards_twice_and_n_cards_are_of_different_hosts():
    a, b = Host("1", "a", 2, facts()), Host("2", "b", 1, facts(boot="other"))
    again = Host("3", "c", 2, facts())
    assert [card.name for card in cards_of([a, b, again])] == ["a card 0", "b card 0", "a card 1"]
    assert [card.name for card in cards_of([a, b], 2)] == ["a card 0", "b card 0"]
    _, notes = hosts_of({"tcp://a:1": answer("a"), "tcp://b:1": answer("b")}, facts(), address="s")
    assert notes == ["b offers spyre=2; 0 of its cards can be used"]


@pytest.mark.parametrize(
    ("theirs", "says"),
    [({"distributed": "2025.9.0", "python": "3.12.1"}, "distributed 2025.9.0"), ({"distributed": "2026.1.0", "python": "3.11.9"}, "python 3.11")],
)  # fmt: skip
def test_versions_that_can_not_work_together_are_one_line(theirs, says):
    mine = {"distributed": "2026.1.0", "python": "3.12.7"}
    with pytest.raises(EnvironmentTroubleError, match=says):
        versions_differ({"here": mine, "worker w": theirs})
    versions_differ({"here": mine, "worker w": mine | {"python": "3.12.1"}})


TWO = Board(("a 0", "a 1", "b 0", "b 1", "b 2"), hosts={"a 0": "a", "a 1": "a", "b 0": "b", "b 1": "b", "b 2": "b"})


def test_cards_for_one_test_are_of_one_host_and_never_more_than_one_host_has():
    board, lane = moves.open_lane(moves.add(TWO, Unit("three", cards=3)))
    assert lane.cards == ("b 0", "b 1", "b 2")
    assert moves.add(TWO, Unit("five", cards=5)).waiting[0].cards == 3
    assert moves.lose(moves.add(TWO, Unit("three", cards=3)), "b 1").waiting[0].cards == 2


def test_only_the_host_whose_cards_are_gathered_stops_taking_files():
    board = moves.add(TWO, *(Unit(f"f{n}") for n in range(9)))
    board, lanes = moves.open_lanes(board)
    for lane in lanes:
        board, _ = moves.ask(board, lane.number)
    board = moves.add(board, Unit("three", cards=3))
    board, on_a = moves.ask(board, lanes[0].number)
    board, on_b = moves.ask(board, lanes[2].number)
    assert on_a is not None and on_b is None


def test_a_card_that_is_lost_is_not_blamed():
    board = moves.lose(TWO, "a 0")
    assert "a 0" not in board.cards and board.out == {}


@pytest.mark.parametrize(
    ("name", "data", "is_secret"),
    [
        (".env", b"", True),
        ("id_ed25519", b"", True),
        ("host.pem", b"", True),
        ("credentials.json", b"{}", True),
        ("notes.txt", b"token gh" + b"p_" + b"a1B2" * 9, True),
        ("notes.txt", b"-----BEGIN " + b"PRIVATE KEY-----\nx", True),
        ("credentials.py", b"class Credentials: ...\n", False),
        ("test_keys.py", b"PAD_TOKEN = 0\nKEY = 'name'\n", False),
        ("environment.py", b"", False),
    ],
)
def test_files_that_look_like_secrets_by_name_or_content_stay_here_and_source_code_goes(name, data, is_secret):
    assert is_secret_file(name, data) is is_secret
