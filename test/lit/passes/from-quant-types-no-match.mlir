// RUN: not %qopt %s --qnn-from-quant-types 2>&1 | filecheck %s

// Every unsupported op is a note.

// CHECK: error: qnn-from-quant-types: 7 quantized values have no counterpart in qnn
// CHECK: 10:3: note: 'func.func' op must have an interface that is quantized per tensor, but got tensor<2x!quant
// CHECK: note: 'quant.qcast' op must store quantized values of i8, ui8, i16, ui16 or i32, but got tensor<2x!quant.uniform<i4:f32

module {
  func.func @per_axis(%x: tensor<2x!quant.uniform<i8:f32:0, {0.5,0.25}>>) {
    return
  }

  func.func @half_bytes(%x: tensor<2xf32>) {
    %0 = quant.qcast %x : tensor<2xf32> to tensor<2x!quant.uniform<i4:f32, 0.5>>
    return
  }

  // CHECK: note: 'quant.qcast' op must be on static tensors, quantized per tensor or per axis, but got f32
  func.func @scalars(%x: f32) {
    %0 = quant.qcast %x : f32 to !quant.uniform<i8:f32, 0.5>
    return
  }

  // CHECK: note: 'quant.qcast' op must be on static tensors, quantized per tensor or per axis, but got tensor<?xf32>
  func.func @open_extents(%x: tensor<?xf32>) {
    %0 = quant.qcast %x : tensor<?xf32> to tensor<?x!quant.uniform<i8:f32, 0.5>>
    return
  }

  func.func @other_ops(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>, %shape: tensor<1xindex>) {
    // CHECK: note: 'tensor.reshape' op takes or gives quantized values
    %0 = tensor.reshape %x(%shape)
      : (tensor<2x!quant.uniform<i8:f32, 0.5>>, tensor<1xindex>) -> tensor<2x!quant.uniform<i8:f32, 0.5>>
    return
  }
}
