"""How a float network becomes a quantized model file, one flow a file."""
