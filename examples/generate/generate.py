"""Greedy and sampled generation by two kinds of decoders, compared with the frameworks that run them.

    python examples/generate/generate.py                     # tiny decoders with random weights
    python examples/generate/generate.py --model model.onnx  # a decoder that onnxruntime-genai's builder wrote
    python examples/generate/generate.py --temperature 0.8   # sampled
    python examples/generate/generate.py --inductor          # torch.compile too, which needs a C++ compiler

A decoder in ONNX has caches that grow with every token.  The ranges of its lengths are given to `qdialect.compile`, so
that nothing is compiled between two tokens.  A program of PyTorch has caches of one size, into which it copies the rows
of a token at its position.  Both need numpy, onnx, onnxruntime and torch.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

import qdialect

Array = NDArray[Any]
Run = Callable[[Sequence[Array]], Sequence[Array]]
"""All inputs in the order of the model; gives all outputs: logits, then caches."""
Choose = Callable[[Array], int]
"""The next token of its logits."""

LAYERS, HEADS, KEY_HEADS, WIDTH, HIDDEN, VOCABULARY, LONGEST = 2, 4, 2, 16, 64, 256, 256


def weight(*shape: int) -> Array:
    return (np.random.default_rng(sum(shape)).normal(size=shape) / math.sqrt(shape[0])).astype(np.float32)


# Which token comes next.


def greedy(logits: Array) -> int:
    return int(logits.argmax())


def sampler(temperature: float, seed: int = 0) -> Choose:
    rng = np.random.default_rng(seed)

    def sample(logits: Array) -> int:
        scaled = np.exp((logits - logits.max()) / temperature)
        return int(rng.choice(len(scaled), p=scaled / scaled.sum()))

    return sample


# A decoder in ONNX, in the form of onnxruntime-genai.


def decoder() -> ModelProto:
    """Normalization, GroupQueryAttention with a rotary embedding, and a layer of SiLU, twice."""
    nodes, constants = [], []

    def node(kind: str, *inputs: str | Array, outputs: Sequence[str] = (), domain: str = "", **attributes: Any) -> str:
        names = []
        for one in inputs:
            if not isinstance(one, str):
                constants.append(numpy_helper.from_array(one, f"constant.{len(constants)}"))
                one = constants[-1].name
            names.append(one)
        nodes.append(helper.make_node(kind, names, outputs or [f"value.{len(nodes)}"], domain=domain, **attributes))
        return nodes[-1].output[0]

    one = np.array([1])
    x = node("Gather", weight(VOCABULARY, HIDDEN), "input_ids")
    last = node("Cast", node("Sub", node("ReduceSum", "attention_mask", one), one), to=TensorProto.INT32)
    total = node("Gather", node("Shape", "attention_mask"), np.array(1))
    lengths = last, node("Cast", total, to=TensorProto.INT32)
    angles = np.arange(LONGEST)[:, None] / 10000 ** (np.arange(WIDTH // 2) * 2 / WIDTH)
    turns = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    past, present, ports = ["batch_size", KEY_HEADS, "past_sequence_length", WIDTH], [], []
    for layer in range(LAYERS):
        y = node("SimplifiedLayerNormalization", x, np.ones(HIDDEN, np.float32), axis=-1, epsilon=1e-5)
        rows = [node("MatMul", y, weight(HIDDEN, count * WIDTH)) for count in (HEADS, KEY_HEADS, KEY_HEADS)]
        caches = [f"past_key_values.{layer}.{kind}" for kind in ("key", "value")]
        results = [f"present.{layer}.{kind}" for kind in ("key", "value")]
        how = {"num_heads": HEADS, "kv_num_heads": KEY_HEADS, "do_rotary": 1}
        outputs = [f"heads.{layer}", *results]
        heads = node(
            "GroupQueryAttention", *rows, *caches, *lengths, *turns, outputs=outputs, domain="com.microsoft", **how
        )
        x = node("Add", x, node("MatMul", heads, weight(HEADS * WIDTH, HIDDEN)))
        y = node("MatMul", x, weight(HIDDEN, 2 * HIDDEN))
        x = node("Add", x, node("MatMul", node("Mul", y, node("Sigmoid", y)), weight(2 * HIDDEN, HIDDEN)))
        ports += [helper.make_tensor_value_info(name, TensorProto.FLOAT, past) for name in caches]
        grown = ["batch_size", KEY_HEADS, "total_sequence_length", WIDTH]
        present += [helper.make_tensor_value_info(name, TensorProto.FLOAT, grown) for name in results]
    node("MatMul", x, weight(HIDDEN, VOCABULARY), outputs=["logits"])
    tokens = {"input_ids": "sequence_length", "attention_mask": "total_sequence_length"}
    ports = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch_size", e]) for n, e in tokens.items()] + ports
    shape = ["batch_size", "sequence_length", VOCABULARY]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape), *present]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "decoder", ports, outputs, constants)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def generate(run: Run, prompt: Sequence[int], count: int, choose: Choose, caches: Sequence[Array]) -> list[int]:
    """`count` tokens behind the prompt; `caches` are those of no token."""
    tokens, own = list(prompt), np.array([prompt])
    for _ in range(count):
        logits, *caches = run([own, np.ones((1, len(tokens)), np.int64), *caches])
        tokens.append(choose(logits[0, -1]))
        own = np.array([tokens[-1:]])
    return tokens[len(prompt) :]


# A decoder of PyTorch with caches of one size.


class StaticDecoder(torch.nn.Module):
    """One token at a time; its keys and values are copied into the caches at its position."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, HIDDEN)
        self.joined = torch.nn.ModuleList(torch.nn.Linear(HIDDEN, 3 * HIDDEN) for _ in range(LAYERS))
        self.after = torch.nn.ModuleList(torch.nn.Linear(HIDDEN, HIDDEN) for _ in range(LAYERS))
        self.head = torch.nn.Linear(HIDDEN, VOCABULARY)

    def forward(self, token: torch.Tensor, position: torch.Tensor, caches: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Token [1, 1], position [1] and caches [2 * LAYERS, HEADS, LONGEST, WIDTH]."""
        x, kept = self.embedding(token), []
        counts = torch.arange(LONGEST) <= position
        for layer, (joined, after) in enumerate(zip(self.joined, self.after, strict=True)):
            rows = (one.reshape(HEADS, 1, WIDTH) for one in joined(x).chunk(3, dim=-1))
            query, *own = rows
            keys, values = (caches[2 * layer + i].index_copy(1, position, one) for i, one in enumerate(own))
            kept += [keys, values]
            heads = torch.nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=counts)
            x = x + after(heads.reshape(1, 1, HIDDEN))
        return self.head(x), torch.stack(kept)


def generate_static(run: Run, prompt: Sequence[int], count: int, choose: Choose) -> list[int]:
    """`count` tokens behind the prompt, whose tokens are read one after the other."""
    tokens, caches = list(prompt), np.zeros((2 * LAYERS, HEADS, LONGEST, WIDTH), np.float32)
    for position in range(len(prompt) + count - 1):
        logits, caches = run([np.array([[tokens[position]]]), np.array([position]), caches])
        if position + 1 == len(tokens):
            tokens.append(choose(logits[0, -1]))
    return tokens[len(prompt) :]


# What both print.


def timed(name: str, generation: Callable[[], list[int]]) -> list[int]:
    """The tokens of a generation; prints how many it makes in a second."""
    generation()
    start = time.perf_counter()
    tokens = generation()
    print(f"{name:14} {len(tokens) / (time.perf_counter() - start):9.0f} tokens/s   {tokens[:12]} ...")
    return tokens


def run_onnx(path: Path, prompt: Sequence[int], count: int, choose: Callable[[], Choose]) -> list[list[int]]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names, past = [one.name for one in session.get_inputs()], len(prompt) + count
    lengths = {"past_sequence_length": (0, past), "total_sequence_length": (1, past + len(prompt))}
    executable = qdialect.compile(path, dims={**lengths, "sequence_length": (1, len(prompt))})
    caches = [np.zeros((1, *port.shape[1:2], 0, *port.shape[3:]), port.dtype) for port in executable.inputs[2:]]
    runs: dict[str, Run] = {
        "qdialect": lambda arrays: executable(*arrays),
        "ONNX Runtime": lambda arrays: session.run(None, dict(zip(names, arrays, strict=True))),
    }
    return [timed(name, lambda run=run: generate(run, prompt, count, choose(), caches)) for name, run in runs.items()]


def run_torch(
    folder: Path, prompt: Sequence[int], count: int, choose: Callable[[], Choose], has_inductor: bool
) -> list[list[int]]:
    torch.manual_seed(0)
    example = torch.zeros(1, 1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    caches = torch.zeros(2 * LAYERS, HEADS, LONGEST, WIDTH)
    program = torch.export.export(StaticDecoder().eval(), (*example, caches))
    torch.export.save(program, folder / "decoder.pt2")
    executable, module = qdialect.compile(folder / "decoder.pt2"), program.module()

    def run_by(function: Callable[..., Any]) -> Run:
        def run(arrays: Sequence[Array]) -> Sequence[Array]:
            with torch.inference_mode():
                return [one.numpy() for one in function(*map(torch.from_numpy, arrays))]

        return run

    runs: dict[str, Run] = {"qdialect": lambda arrays: executable(*arrays), "PyTorch": run_by(module)}
    if has_inductor:
        runs["torch.compile"] = run_by(torch.compile(module))
    return [timed(name, lambda run=run: generate_static(run, prompt, count, choose())) for name, run in runs.items()]


def main(arguments: Sequence[str] | None = None) -> list[list[int]]:
    """The tokens of each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a decoder in the form of onnxruntime-genai")
    parser.add_argument("--prompt", type=int, nargs="+", default=[1, 17, 42, 5], help="tokens")
    parser.add_argument("--tokens", type=int, default=32, help="how many are generated")
    parser.add_argument("--temperature", type=float, default=0.0, help="0 takes the most likely token")
    parser.add_argument("--inductor", action="store_true", help="torch.compile too, which needs a C++ compiler")
    options = parser.parse_args(arguments)

    def choose() -> Choose:
        return sampler(options.temperature) if options.temperature else greedy

    if options.model is not None:
        return run_onnx(options.model, options.prompt, options.tokens, choose)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decoder.onnx"
        path.write_bytes(decoder().SerializeToString())
        print("a decoder in ONNX, its caches grow")
        found = run_onnx(path, options.prompt, options.tokens, choose)
        print("a program of PyTorch, its caches have one size")
        return found + run_torch(Path(folder), options.prompt, options.tokens, choose, options.inductor)


if __name__ == "__main__":
    main()
