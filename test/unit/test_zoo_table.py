"""tools/zoo/table.py: the table names networks and flows that exist, and leaves none out."""

from itertools import pairwise

from tools.zoo.flows.registry import FLOWS
from tools.zoo.networks.keras_networks import KERAS_NETWORKS
from tools.zoo.networks.legacy_keras_networks import LEGACY_KERAS_NETWORKS
from tools.zoo.networks.torch_networks import TORCH_NETWORKS
from tools.zoo.table import chosen, entries

NETWORKS = {"torch": TORCH_NETWORKS, "keras": {**KERAS_NETWORKS, **LEGACY_KERAS_NETWORKS}}


def test_every_entry_can_be_made() -> None:
    for entry in entries():
        assert entry.network in NETWORKS[FLOWS[entry.flow].framework], entry


def test_every_network_and_every_flow_is_in_the_table() -> None:
    assert {entry.network for entry in entries()} == {name for networks in NETWORKS.values() for name in networks}
    assert {entry.flow for entry in entries()} == set(FLOWS)


def test_no_model_is_there_twice_and_those_of_a_network_follow_each_other() -> None:
    found = entries()
    assert len(set(found)) == len(found)
    changes = sum(one.network != other.network for one, other in pairwise(found))
    assert changes == len({entry.network for entry in found}) - 1


def test_networks_and_flows_are_chosen_by_name() -> None:
    assert [entry.flow for entry in chosen(["mlp"], ["dynamic_s8", "qdq_u8s8"])] == ["qdq_u8s8", "dynamic_s8"]
    assert {entry.network for entry in chosen(["mlp", "lstm"], [])} == {"mlp", "lstm"}
    assert chosen([], []) == entries()
