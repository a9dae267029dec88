"""Compile into a stock model: a hash of the window, SwiGLUs with words in all three matrices, reading.

A *block* is an expert of a Qwen2-MoE (:mod:`.experts`) or a layer of a Llama (:mod:`.uniform`). All else is the same.
"""
