"""vector -> x86: patterns that replace vector ops by instructions with the same meaning."""
