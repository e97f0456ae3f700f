func.func @same() {
  return
}
// -----

func.func @same() {
  return
}
