"""Everything that can be measured."""

from __future__ import annotations

from qdialect.bench.cases import Source
from qdialect.bench.drawn import layer_sources, network_sources
from qdialect.bench.float_functions import function_sources
from qdialect.bench.model_networks import model_sources
from qdialect.bench.smallest_call import call_sources
from qdialect.bench.transformers import transformer_sources


def all_sources() -> tuple[list[Source], dict[str, str]]:
    """Every workload, in the order of the report, and the reasons why others are absent."""
    models, absent = model_sources()
    drawn = [*layer_sources(), *network_sources(), *transformer_sources()]
    return [*drawn, *models, *function_sources(), *call_sources()], absent
