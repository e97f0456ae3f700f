// RUN: %python %S/Inputs/x86_step.py %s > %t && filecheck %s --input-file=%t

// A word out of a product of 32-bit vectors is computed on even and on odd lanes.

// CHECK-LABEL: func.func @signed(
// CHECK-COUNT-2: arith.muli %{{.*}} : vector<8xi64>
// CHECK: arith.select
// CHECK-NOT: arith.trunci
func.func @signed(%x: vector<16xi32>, %y: vector<16xi32>) -> vector<16xi32> {
  %a = arith.extsi %x : vector<16xi32> to vector<16xi64>
  %b = arith.extsi %y : vector<16xi32> to vector<16xi64>
  %m = arith.muli %a, %b : vector<16xi64>
  %k = arith.constant dense<1073741824> : vector<16xi64>
  %s = arith.addi %m, %k : vector<16xi64>
  %n = arith.constant dense<31> : vector<16xi64>
  %r = arith.shrsi %s, %n : vector<16xi64>
  %0 = arith.trunci %r : vector<16xi64> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @unsigned(
// CHECK-COUNT-2: arith.muli %{{.*}} : vector<8xi64>
// CHECK: vector.shuffle
// CHECK-NOT: arith.trunci
func.func @unsigned(%x: vector<16xi32>, %y: vector<16xi32>) -> vector<16xi32> {
  %a = arith.extui %x : vector<16xi32> to vector<16xi64>
  %b = arith.extui %y : vector<16xi32> to vector<16xi64>
  %m = arith.muli %a, %b : vector<16xi64>
  %n = arith.constant dense<32> : vector<16xi64>
  %r = arith.shrui %m, %n : vector<16xi64>
  %0 = arith.trunci %r : vector<16xi64> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @odd_lanes(
// CHECK-NOT: vector.bitcast
// CHECK: arith.trunci
func.func @odd_lanes(%x: vector<5xi32>, %y: vector<5xi32>) -> vector<5xi32> {
  %a = arith.extsi %x : vector<5xi32> to vector<5xi64>
  %b = arith.extsi %y : vector<5xi32> to vector<5xi64>
  %m = arith.muli %a, %b : vector<5xi64>
  %k = arith.constant dense<1073741824> : vector<5xi64>
  %s = arith.addi %m, %k : vector<5xi64>
  %n = arith.constant dense<31> : vector<5xi64>
  %r = arith.shrsi %s, %n : vector<5xi64>
  // expected-remark @below {{[high-word] 'arith.trunci' vectors must have an even number of lanes, but got 5}}
  %0 = arith.trunci %r : vector<5xi64> to vector<5xi32>
  return %0 : vector<5xi32>
}

// CHECK-LABEL: func.func @variable_addend(
// CHECK-NOT: vector.bitcast
// CHECK: arith.trunci
func.func @variable_addend(%x: vector<16xi32>, %y: vector<16xi32>, %z: vector<16xi64>) -> vector<16xi32> {
  %a = arith.extsi %x : vector<16xi32> to vector<16xi64>
  %b = arith.extsi %y : vector<16xi32> to vector<16xi64>
  %m = arith.muli %a, %b : vector<16xi64>
  %s = arith.addi %m, %z : vector<16xi64>
  %n = arith.constant dense<31> : vector<16xi64>
  %r = arith.shrsi %s, %n : vector<16xi64>
  // expected-remark @below {{[high-word] 'arith.trunci' what is added to the product must be one constant}}
  %0 = arith.trunci %r : vector<16xi64> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @mixed(
// CHECK-NOT: vector.bitcast
// CHECK: arith.trunci
func.func @mixed(%x: vector<16xi32>, %y: vector<16xi32>) -> vector<16xi32> {
  %a = arith.extui %x : vector<16xi32> to vector<16xi64>
  %b = arith.extsi %y : vector<16xi32> to vector<16xi64>
  %m = arith.muli %a, %b : vector<16xi64>
  %n = arith.constant dense<32> : vector<16xi64>
  %r = arith.shrui %m, %n : vector<16xi64>
  // expected-remark @below {{[high-word] 'arith.trunci' factors must be vectors of i32, widened by arith.extui}}
  %0 = arith.trunci %r : vector<16xi64> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @narrow_factors(
// CHECK-NOT: vector.bitcast
// CHECK: arith.trunci
func.func @narrow_factors(%x: vector<16xi16>, %y: vector<16xi16>) -> vector<16xi32> {
  %a = arith.extsi %x : vector<16xi16> to vector<16xi64>
  %b = arith.extsi %y : vector<16xi16> to vector<16xi64>
  %m = arith.muli %a, %b : vector<16xi64>
  %k = arith.constant dense<1073741824> : vector<16xi64>
  %s = arith.addi %m, %k : vector<16xi64>
  %n = arith.constant dense<31> : vector<16xi64>
  %r = arith.shrsi %s, %n : vector<16xi64>
  // expected-remark @below {{[high-word] 'arith.trunci' factors must be vectors of i32, widened by arith.extsi}}
  %0 = arith.trunci %r : vector<16xi64> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @another_shift(
// CHECK-NOT: vector.bitcast
// CHECK: arith.trunci
func.func @another_shift(%x: vector<16xi32>, %y: vector<16xi32>) -> vector<16xi32> {
  %a = arith.extsi %x : vector<16xi32> to vector<16xi64>
  %b = arith.extsi %y : vector<16xi32> to vector<16xi64>
  %m = arith.muli %a, %b : vector<16xi64>
  %k = arith.constant dense<1073741824> : vector<16xi64>
  %s = arith.addi %m, %k : vector<16xi64>
  %n = arith.constant dense<30> : vector<16xi64>
  %r = arith.shrsi %s, %n : vector<16xi64>
  %0 = arith.trunci %r : vector<16xi64> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @another_width(
// CHECK-NOT: vector.bitcast
// CHECK: arith.trunci
func.func @another_width(%x: vector<16xi32>, %y: vector<16xi32>) -> vector<16xi32> {
  %a = arith.extsi %x : vector<16xi32> to vector<16xi48>
  %b = arith.extsi %y : vector<16xi32> to vector<16xi48>
  %m = arith.muli %a, %b : vector<16xi48>
  %k = arith.constant dense<1073741824> : vector<16xi48>
  %s = arith.addi %m, %k : vector<16xi48>
  %n = arith.constant dense<31> : vector<16xi48>
  %r = arith.shrsi %s, %n : vector<16xi48>
  %0 = arith.trunci %r : vector<16xi48> to vector<16xi32>
  return %0 : vector<16xi32>
}

// CHECK-LABEL: func.func @narrow_result(
// CHECK-NOT: vector.bitcast
// CHECK: arith.trunci
func.func @narrow_result(%x: vector<16xi32>, %y: vector<16xi32>) -> vector<16xi16> {
  %a = arith.extsi %x : vector<16xi32> to vector<16xi64>
  %b = arith.extsi %y : vector<16xi32> to vector<16xi64>
  %m = arith.muli %a, %b : vector<16xi64>
  %k = arith.constant dense<1073741824> : vector<16xi64>
  %s = arith.addi %m, %k : vector<16xi64>
  %n = arith.constant dense<31> : vector<16xi64>
  %r = arith.shrsi %s, %n : vector<16xi64>
  %0 = arith.trunci %r : vector<16xi64> to vector<16xi16>
  return %0 : vector<16xi16>
}

// CHECK-LABEL: func.func @upper_signed(
// CHECK-COUNT-2: arith.muli %{{.*}} : vector<8xi64>
// CHECK: vector.shuffle
// CHECK-NOT: arith.trunci
func.func @upper_signed(%x: vector<16xi32>, %y: vector<16xi32>) -> vector<16xi32> {
  %a = arith.extsi %x : vector<16xi32> to vector<16xi64>
  %b = arith.extsi %y : vector<16xi32> to vector<16xi64>
  %m = arith.muli %a, %b : vector<16xi64>
  %n = arith.constant dense<32> : vector<16xi64>
  %r = arith.shrsi %m, %n : vector<16xi64>
  %0 = arith.trunci %r : vector<16xi64> to vector<16xi32>
  return %0 : vector<16xi32>
}
