"""Rewrites keep the order of reads and writes, whatever op writes, by whatever view."""

import numpy as np
import pytest
from drawn_vector import DOT, HOST_TARGETS, assert_same_on_targets, module_of

from qdialect.lowering.threads.divided_network import to_threads

STORES = {
    "memref.store": "memref.store %two, %n[%c0] : memref<4xf32>",
    "affine.store": "affine.store %two, %n[0] : memref<4xf32>",
    "affine.vector_store": "affine.vector_store %twos, %n[0] : memref<4xf32>, vector<4xf32>",
    "vector.store": "vector.store %twos, %n[%c0] : memref<4xf32>, vector<4xf32>",
    "vector.maskedstore": "vector.maskedstore %n[%c0], %all, %twos : memref<4xf32>, vector<4xi1>, vector<4xf32>",
    "vector.scatter": "vector.scatter %n[%c0] [%at], %all, %twos"
    " : memref<4xf32>, vector<4xi32>, vector<4xi1>, vector<4xf32>",
    "memref.atomic_rmw": "%old = memref.atomic_rmw addf %two, %n[%c0] : (f32, memref<4xf32>) -> f32",
    "memref.generic_atomic_rmw": """%old = memref.generic_atomic_rmw %n[%c0] : memref<4xf32> {
      ^bb0(%was: f32):
        %sum = arith.addf %was, %two : f32
        memref.atomic_yield %sum : f32
      }""",
    "memref.copy": "memref.copy %m, %n : memref<4xf32> to memref<4xf32>",
    "a view": """%v = memref.subview %n[0] [2] [1] : memref<4xf32> to memref<2xf32>
      affine.store %two, %v[0] : memref<2xf32>""",
    "a branch": """%is = arith.cmpi eq, %c0, %c0 : index
      scf.if %is {
        affine.store %two, %n[0] : memref<4xf32>
      }""",
    "any memory": """%is = arith.cmpi eq, %i, %c0 : index
      %any = arith.select %is, %n, %m : memref<4xf32>
      memref.store %two, %any[%c0] : memref<4xf32>""",
}
REPEATED = """
func.func @main(%x: memref<64xf32>, %n: memref<4xf32>, %m: memref<4xf32>, %y: memref<64xf32>) {{
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %twos = arith.constant dense<2.0> : vector<4xf32>
  %all = arith.constant dense<true> : vector<4xi1>
  %at = arith.constant dense<[0, 1, 2, 3]> : vector<4xi32>
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {{
    %a = vector.transfer_read %x[%i], %zero {{in_bounds = [true]}} : memref<64xf32>, vector<16xf32>
    %s = vector.transfer_read %n[%c0], %zero {{in_bounds = [true]}} : memref<4xf32>, vector<1xf32>
    %b = vector.broadcast %s : vector<1xf32> to vector<16xf32>
    %p = arith.{op} %a, %b : vector<16xf32>
    vector.transfer_write %p, %y[%i] {{in_bounds = [true]}} : vector<16xf32>, memref<64xf32>
    {store}
  }}
  return
}}
"""
DOT_STORES = {
    "affine.store": "affine.store %zero, %x[0, 0] : memref<3x4xi8>",
    "affine.vector_store": "affine.vector_store %zeros, %x[1, 0] : memref<3x4xi8>, vector<4xi8>",
    "memref.atomic_rmw": "%old = memref.atomic_rmw assign %zero, %x[%c0, %c0] : (i8, memref<3x4xi8>) -> i8",
}
PAIRS = """
func.func @main(
  %x: memref<1x4xi8>, %w: memref<66xi8> {{qnn.pair_sums_fit}}, %at: memref<1xi32>, %y: memref<1x1x8xi32>
) {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %o32 = memref.load %at[%c0] : memref<1xi32>
  %o = arith.index_cast %o32 : i32 to index
  {view}
  %a = vector.transfer_read %x[%c0, %c0], %zero {{in_bounds = [true, true]}} : memref<1x4xi8>, vector<1x4xi8>
  %b = vector.transfer_read %v[%c0, %c0, %c0], %zero {{in_bounds = [true, true, true]}} : {type}, vector<1x8x4xi8>
  %c = arith.extui %a : vector<1x4xi8> to vector<1x4xi32>
  %d = arith.extsi %b : vector<1x8x4xi8> to vector<1x8x4xi32>
  %acc = arith.constant dense<0> : vector<1x1x8xi32>
  %0 = vector.contract {{
    indexing_maps = [affine_map<(r, v, l, t) -> (r, t)>, affine_map<(r, v, l, t) -> (v, l, t)>,
                     affine_map<(r, v, l, t) -> (r, v, l)>],
    iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>
  }} %c, %d, %acc : vector<1x4xi32>, vector<1x8x4xi32> into vector<1x1x8xi32>
  vector.transfer_write %0, %y[%c0, %c0, %c0] {{in_bounds = [true, true, true]}} : vector<1x1x8xi32>, memref<1x1x8xi32>
  return
}}
"""
_CAST = "memref.reinterpret_cast {source} to offset: [{offset}], sizes: [1, 8, 4], strides: [32, 4, 1]"
_VIEW = "memref<1x8x4xi8, strided<[32, 4, 1], offset: {offset}>>"
PAIR_VIEWS = {
    "a dynamic offset": (
        f"%v = {_CAST.format(source='%w', offset='%o')} : memref<66xi8> to {_VIEW.format(offset='?')}",
        _VIEW.format(offset="?"),
    ),
    "an odd offset": (
        f"%v = {_CAST.format(source='%w', offset='1')} : memref<66xi8> to {_VIEW.format(offset='1')}",
        _VIEW.format(offset="1"),
    ),
    "a view behind an odd byte": (
        f"""%u = memref.view %w[%o][] : memref<66xi8> to memref<65xi8>
  %v = {_CAST.format(source="%u", offset="0")} : memref<65xi8> to memref<1x8x4xi8, strided<[32, 4, 1]>>""",
        "memref<1x8x4xi8, strided<[32, 4, 1]>>",
    ),
}
BROADCAST_PAIRS = """
func.func @main(%x: memref<8x4xi8>, %w: memref<8xi8> {qnn.pair_sums_fit}, %y: memref<8xi32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0 : i8
  %a = vector.transfer_read %x[%c0, %c0], %zero {in_bounds = [true, true]} : memref<8x4xi8>, vector<8x4xi8>
  %b = vector.transfer_read %w[%c1], %zero {in_bounds = [true]} : memref<8xi8>, vector<4xi8>
  %c = arith.extui %a : vector<8x4xi8> to vector<8x4xi32>
  %d = arith.extsi %b : vector<4xi8> to vector<4xi32>
  %acc = arith.constant dense<0> : vector<8xi32>
  %0 = vector.contract {
    indexing_maps = [affine_map<(l, t) -> (l, t)>, affine_map<(l, t) -> (t)>, affine_map<(l, t) -> (l)>],
    iterator_types = ["parallel", "reduction"], kind = #vector.kind<add>
  } %c, %d, %acc : vector<8x4xi32>, vector<4xi32> into vector<8xi32>
  vector.transfer_write %0, %y[%c0] {in_bounds = [true]} : vector<8xi32>, memref<8xi32>
  return
}
"""
NETWORK = """
func.func private @kernel_0(%x: memref<1024xi32>, %o: memref<4096xi8>) {{
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c1024 = arith.constant 1024 : index
  %z = arith.constant 0 : i32
  {view}
  scf.for %i = %c0 to %c1024 step %c16 {{
    %a = vector.transfer_read %x[%i], %z {{in_bounds = [true]}} : memref<1024xi32>, vector<16xi32>
    {write}
  }}
  return
}}
func.func private @kernel_1(%x: memref<4096xi8>, %o: memref<2048xi8>) {{
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c2048 = arith.constant 2048 : index
  %z = arith.constant 0 : i8
  scf.for %i = %c0 to %c2048 step %c16 {{
    %j = arith.addi %i, %c2048 : index
    %a = vector.transfer_read %x[%j], %z {{in_bounds = [true]}} : memref<4096xi8>, vector<16xi8>
    vector.transfer_write %a, %o[%i] {{in_bounds = [true]}} : vector<16xi8>, memref<2048xi8>
  }}
  return
}}
func.func @main(%in: memref<1024xi32>, %out: memref<2048xi8>, %constants: memref<1xi8>, %arena: memref<8192xi8>) {{
  %c0 = arith.constant 0 : index
  %b = memref.view %arena[%c0][] : memref<8192xi8> to memref<4096xi8>
  func.call @kernel_0(%in, %b) {{qnn.label = "write"}} : (memref<1024xi32>, memref<4096xi8>) -> ()
  func.call @kernel_1(%b, %out) {{qnn.label = "read"}} : (memref<4096xi8>, memref<2048xi8>) -> ()
  return
}}
"""
_DIRECT = "%v = memref.view %o[%c0][] : memref<4096xi8> to memref<1024xi32>"
_TRANSFER = "vector.transfer_write %a, {to}[%i] {{in_bounds = [true]}} : vector<16xi32>, {type}"
NETWORK_VIEWS = {
    "a view": (_DIRECT, _TRANSFER.format(to="%v", type="memref<1024xi32>")),
    "a cast view": (
        f"""{_DIRECT}
  %r = memref.reinterpret_cast %v to offset: [0], sizes: [1024], strides: [1]
    : memref<1024xi32> to memref<1024xi32, strided<[1]>>""",
        _TRANSFER.format(to="%r", type="memref<1024xi32, strided<[1]>>"),
    ),
    "a part of a view": (
        f"""{_DIRECT}
  %r = memref.subview %v[0] [1024] [1] : memref<1024xi32> to memref<1024xi32>""",
        _TRANSFER.format(to="%r", type="memref<1024xi32>"),
    ),
    "affine": (_DIRECT, "affine.vector_store %a, %v[1008] : memref<1024xi32>, vector<16xi32>"),
}
FLOATS = [np.arange(64, dtype=np.float32), np.ones(4, np.float32), np.full(4, 2, np.float32), np.zeros(64, np.float32)]
# Of AVX-512 dot products take part; one with and one without them is enough.
SOME = HOST_TARGETS[:: max(1, len(HOST_TARGETS) - 1)]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("op", ["mulf", "divf"])
def test_a_number_that_its_loop_writes_is_read_in_each_iteration(store: str, op: str) -> None:
    assert_same_on_targets(REPEATED.format(store=STORES[store], op=op), FLOATS, SOME)


@pytest.mark.parametrize("store", DOT_STORES)
def test_factors_are_what_they_were_when_they_were_read(store: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.integers(1, 255, (3, 4), np.uint8), rng.integers(1, 127, (2, 16, 4), np.int8)]
    text = DOT.format(result="r, v", shape="3x2", kind="add", store=DOT_STORES[store])
    assert_same_on_targets(text, [*arrays, np.zeros((3, 2, 16), np.int32)], SOME)


@pytest.mark.parametrize("view", PAIR_VIEWS)
def test_pairs_that_begin_at_an_odd_byte_may_exceed_16_bits(view: str) -> None:
    weights = np.tile(np.array([0, 127, 127, 0], np.int8), 17)[:66]
    arrays = [np.full((1, 4), 255, np.uint8), weights, np.ones(1, np.int32), np.zeros((1, 1, 8), np.int32)]
    text, type_ = PAIR_VIEWS[view]
    assert_same_on_targets(PAIRS.format(view=text, type=type_), arrays)


def test_pairs_at_an_odd_index_may_exceed_16_bits() -> None:
    weights = np.array([0, 127, 127, 0, 0, 127, 127, 0], np.int8)
    assert_same_on_targets(BROADCAST_PAIRS, [np.full((8, 4), 255, np.uint8), weights, np.zeros(8, np.int32)])


@pytest.mark.parametrize("view", NETWORK_VIEWS)
def test_threads_wait_for_what_others_write_as_another_type(view: str) -> None:
    shown, write = NETWORK_VIEWS[view]
    module = module_of(NETWORK.format(view=shown, write=write))
    to_threads(module, 2, 1)
    text = str(module)
    assert text.count("omp.parallel") == 1
    assert text.count("omp.barrier") == 1


def test_a_network_with_a_kernel_that_may_write_anywhere_stays_on_one_thread() -> None:
    shown, _ = NETWORK_VIEWS["a view"]
    anywhere = """%is = arith.cmpi eq, %i, %c0 : index
    %w = memref.view %o[%c16][] : memref<4096xi8> to memref<1020xi32>
    %any = scf.if %is -> (memref<?xi32>) {
      %p = memref.cast %v : memref<1024xi32> to memref<?xi32>
      scf.yield %p : memref<?xi32>
    } else {
      %p = memref.cast %w : memref<1020xi32> to memref<?xi32>
      scf.yield %p : memref<?xi32>
    }
    vector.store %a, %any[%c0] : memref<?xi32>, vector<16xi32>"""
    module = module_of(NETWORK.format(view=shown, write=anywhere))
    assert to_threads(module, 2, 1) == 0
    assert "omp." not in str(module)
