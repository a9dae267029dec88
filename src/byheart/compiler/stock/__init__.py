"""Compile into a stock model: a hash of the window, SwiGLUs with words in all three matrices, reading.

A *block* is a layer of a Llama or an expert of a Qwen2-MoE (:mod:`.architectures`). Everything else is the same.
"""
