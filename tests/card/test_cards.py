"""The cards in the runtime's order: by rank, by the device plugin's PCI addresses (PF or VF), else by group."""

import os

import pytest

from debug_spyre.card import holders
from debug_spyre.card.holders import card_environment, choose_cards, visible_cards
from debug_spyre.vocabulary.errors import EnvironmentTroubleError, UsageError

GROUPS = {"0000:1a:00.0": "12", "0000:1b:00.0": "7", "0000:1c:00.0": "130", "0000:1d:00.0": "9"}


@pytest.fixture
def pci(monkeypatch, tmp_path):
    """A host of four cards: groups in /dev/vfio, addresses in /sys/bus/pci that lead to them."""
    vfio, bus = tmp_path / "vfio", tmp_path / "pci"
    vfio.mkdir()
    (vfio / "vfio").touch()
    for address, group in GROUPS.items():
        (vfio / group).touch()
        (tmp_path / f"iommu_groups/{group}").mkdir(parents=True)
        (bus / address).mkdir(parents=True)
        (bus / address / "iommu_group").symlink_to(tmp_path / f"iommu_groups/{group}")
    monkeypatch.setattr(holders, "VFIO", vfio)
    monkeypatch.setattr(holders, "PCI", bus)
    for name in list(os.environ):
        if name.startswith(("PCIDEVICE_", "AIU_")) or name in {"DEBUG_SPYRE_DEVICES", "SPYRE_DEVICES"}:
            monkeypatch.delenv(name)
    return monkeypatch


def groups():
    return [os.path.basename(card.device) for card in visible_cards()]


def test_without_addresses_groups_count_by_number_not_by_text(pci):
    assert groups() == ["7", "9", "12", "130"]


@pytest.mark.parametrize("name", ["PF", "VF"])
def test_the_device_plugin_s_addresses_give_the_order_and_others_follow(pci, name):
    pci.setenv(f"PCIDEVICE_IBM_COM_AIU_{name}", "0000:1c:00.0, 0000:1a:00.0,")
    assert groups() == ["130", "12", "7", "9"]
    assert [card.address for card in visible_cards()] == ["0000:1c:00.0", "0000:1a:00.0", None, None]
    assert [card.name for card in choose_cards("0,1")] == ["card 0", "card 1"]


def test_ranks_come_before_the_plugin_s_list_and_an_address_counts_once(pci):
    pci.setenv("PCIDEVICE_IBM_COM_AIU_VF", "0000:1a:00.0,0000:1b:00.0")
    pci.setenv("AIU_WORLD_RANK_1", "0000:1b:00.0")
    pci.setenv("AIU_WORLD_RANK_0", "0000:1d:00.0")
    assert groups() == ["9", "7", "12", "130"]


def test_an_address_that_leads_to_no_card_here_is_no_card(pci):
    pci.setenv("PCIDEVICE_IBM_COM_AIU_PF", "0000:ff:00.0,0000:1d:00.0,../../etc")
    assert groups() == ["9", "7", "12", "130"]


def test_the_place_in_that_order_is_what_a_process_is_told(pci):
    pci.setenv("PCIDEVICE_IBM_COM_AIU_PF", "0000:1c:00.0,0000:1a:00.0,0000:1b:00.0,0000:1d:00.0")
    (second,) = choose_cards("1,")
    assert os.path.basename(second.device) == "12"
    told = card_environment([second], {"TORCHINDUCTOR_CACHE_DIR": "/c"})
    assert told == {"SPYRE_DEVICES": "1", "TORCHINDUCTOR_CACHE_DIR": "/c/cards/1"}
    pci.setenv("SPYRE_DEVICES", "3,1")
    assert groups() == ["9", "12"]


@pytest.mark.parametrize(
    ("env", "text", "error"),
    [
        ({"AIU_WORLD_SIZE": "5"}, "all", EnvironmentTroubleError),
        ({"SPYRE_DEVICES": "4"}, "all", EnvironmentTroubleError),
        ({}, "5", UsageError),
        ({}, "0,4", UsageError),
    ],
)
def test_variables_that_contradict_the_host_are_no_guess(pci, env, text, error):
    for name, value in env.items():
        pci.setenv(name, value)
    with pytest.raises(error):
        choose_cards(text)
