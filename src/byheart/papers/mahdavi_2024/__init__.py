"""Mahdavi, Liao & Thrampoulidis 2024: how many examples the heads of one attention layer memorize."""
