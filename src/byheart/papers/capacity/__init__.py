"""A ladder of random labels, after Morris et al. 2025: how many bits a trained GPT memorizes per parameter."""
