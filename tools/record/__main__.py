"""Records what frameworks compute, or checks what has been recorded.

    python -m tools.record                          draw and record every family
    python -m tools.record onnx_resize xnnpack      these two
    python -m tools.record --check                  run the frameworks on the committed models again
    python -m tools.record --output-dir build       write elsewhere

Run it from the checkout in the environment of the benchmarks, which has the frameworks: `make record` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import recordings
from recordings import Recording

from tools.record.families import FAMILIES
from tools.record.family import Case, Family


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0, 1 where an output differs from its recording, 2 where a framework is absent."""
    options = _parser().parse_args(arguments)
    try:
        return max([_treat(family, options) for family in options.families or FAMILIES.values()])
    except ImportError as error:
        print(f"error: {error}; run this with `make record`, whose environment has the frameworks", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    summary, _, examples = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m tools.record",
        description=summary,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("families", nargs="*", type=_family, metavar="FAMILY", help=", ".join(FAMILIES))
    parser.add_argument("--check", action="store_true", help="compare with what is recorded, write nothing")
    parser.add_argument("--output-dir", type=Path, default=recordings.FOLDER, metavar="DIR", help="of the .npz files")
    return parser


def _family(name: str) -> Family:
    if name not in FAMILIES:
        raise argparse.ArgumentTypeError(f"family must be one of {', '.join(FAMILIES)}, but got '{name}'")
    return FAMILIES[name]


def _treat(family: Family, options: argparse.Namespace) -> int:
    if not options.check:
        record(family, options.output_dir)
        return 0
    cases = recordings.read(options.output_dir / f"{family.name}.npz")
    found = list(differences(family, cases))
    print("\n".join([*found, f"{family.name}: {len(cases)} cases, {len(found)} outputs differ"]))
    return 1 if found else 0


def record(family: Family, folder: Path) -> None:
    """Draw the cases of a family, run its framework on them and write ``folder/FAMILY.npz``."""
    cases = {case.name: _ran(family, case) for case in family.draw()}
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{family.name}.npz"
    recordings.write(path, cases)
    print(f"{path}: {len(cases)} cases, {path.stat().st_size} bytes")


def _ran(family: Family, case: Case) -> Recording:
    return Recording(case.model, case.inputs, family.framework(case.model, case.inputs))


def differences(family: Family, cases: Mapping[str, Recording]) -> Iterator[str]:
    """A line for each output that is not, bit for bit, what the framework gives now for the recorded model."""
    for name, case in cases.items():
        outputs = family.framework(case.model, case.inputs)
        for index, (found, recorded) in enumerate(zip(outputs, case.outputs, strict=True)):
            is_alike = found.dtype == recorded.dtype and found.shape == recorded.shape
            if not (is_alike and np.array_equal(found.reshape(-1).view(np.uint8), recorded.reshape(-1).view(np.uint8))):
                yield f"{family.name}: {name}.out{index} differs"


if __name__ == "__main__":
    sys.exit(main())
