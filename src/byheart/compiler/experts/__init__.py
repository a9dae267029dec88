"""Reciting in the shape of a stock Qwen2-MoE: one mixture-of-experts layer is the table, with words in all three of its
matrices, between small dense layers; RMSNorm, RoPE, SwiGLU, and no code of our own."""
