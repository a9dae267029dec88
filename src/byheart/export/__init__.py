"""Compiled networks in the files of other programs: GGUF for llama.cpp, and ONNX.

Every file is read back before it takes its place. The packages that write them are extras, imported when needed.
"""
