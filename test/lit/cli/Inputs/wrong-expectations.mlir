
     func.func @f() { arith.unexpected }

// -----

// expected-error @+1 {{never said}}
func.func @f() { return }
// -----

// expected-warning @+1 {{is unknown}}
func.func @f() { arith.warning }
// -----


// expected-error-re @+1 {{a {{(}} b}}
func.func @f() { return }
