"""Every network, by name, of either framework."""

from __future__ import annotations

from tools.zoo.networks.network import Network


def network(framework: str, name: str) -> Network:
    """A network of ``torch`` or ``keras``; the packages it comes from are imported when it is built."""
    if framework == "keras":
        from tools.zoo.networks.keras_networks import KERAS_NETWORKS
        from tools.zoo.networks.legacy_keras_networks import LEGACY_KERAS_NETWORKS

        return {**KERAS_NETWORKS, **LEGACY_KERAS_NETWORKS}[name]
    from tools.zoo.networks.torch_networks import TORCH_NETWORKS

    return TORCH_NETWORKS[name]
