"""The operators that are left to LiteRT, each with the reason that its message gives."""

from __future__ import annotations

UNNAMED = "the schema does not name it"
_STATE = "it keeps a state between calls"
_REASONS: dict[str, tuple[str, ...]] = {
    _STATE: (
        *("ASSIGN_VARIABLE", "CALL_ONCE", "HASHTABLE", "HASHTABLE_FIND", "HASHTABLE_IMPORT", "HASHTABLE_LOOKUP"),
        *("HASHTABLE_SIZE", "READ_VARIABLE", "VAR_HANDLE"),
    ),
    "the shape of its result depends on the data": (
        "NON_MAX_SUPPRESSION_V4",
        "NON_MAX_SUPPRESSION_V5",
        "UNIQUE",
        "WHERE",
    ),
    "it draws random numbers": (
        *("MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM", "STABLEHLO_RNG_BIT_GENERATOR"),
    ),
    "it works on complex numbers": ("COMPLEX_ABS", "IMAG", "REAL", "RFFT2D"),
    "it works on text or on lists of features": (
        *("CONCAT_EMBEDDINGS", "EMBEDDING_LOOKUP_SPARSE", "LSH_PROJECTION", "SKIP_GRAM"),
    ),
    "it chooses a subgraph when the network runs": ("CALL", "IF", "STABLEHLO_WHILE", "WHILE"),
    "its composite has no decomposition that fits": ("STABLEHLO_COMPOSITE",),
    "its code is not part of the format": ("CUSTOM", "DELEGATE", "STABLEHLO_CUSTOM_CALL"),
    "converters write it as other operators": (
        *("ATAN2", "BUCKETIZE", "DENSIFY", "FAKE_QUANT", "LSTM", "REDUCE_WINDOW"),
        *(
            f"STABLEHLO_{name}"
            for name in (
                *("ABS", "ADD", "AND", "BROADCAST_IN_DIM", "CBRT", "CLAMP", "COMPARE", "CONCATENATE", "CONVERT"),
                *("CONVOLUTION", "COSINE", "DIVIDE", "DOT_GENERAL", "DYNAMIC_SLICE", "DYNAMIC_UPDATE_SLICE"),
                *("EXPONENTIAL", "FLOOR", "GATHER", "IOTA", "LOG", "LOGISTIC", "MAXIMUM", "MINIMUM", "MULTIPLY"),
                *("NEGATE", "OR", "PAD", "POWER", "REDUCE", "REDUCE_WINDOW", "REMAINDER", "RESHAPE", "RSQRT"),
                *("SCATTER", "SELECT", "SHIFT_LEFT", "SLICE", "SORT", "SUBTRACT", "TANH", "TRANSPOSE"),
            )
        ),
    ),
    "its result must be known when the model is read": ("BROADCAST_ARGS", "RANK", "SHAPE"),
}
_REASON_OF = {kind: reason for reason, kinds in _REASONS.items() for kind in kinds}


def reason_of(kind: str) -> str:
    """Why an operator without a planner is refused."""
    name = kind.partition(":")[0]
    return _REASON_OF.get(name, UNNAMED)


def keeps_state(kind: str) -> bool:
    """Whether an operator has to do with what lives on between calls."""
    return kind in _REASONS[_STATE]
