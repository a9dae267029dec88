"""Reciting in the shape of a stock Llama: one width, equal layers, RMSNorm, RoPE, SwiGLU, and no code of our own."""
