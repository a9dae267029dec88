"""How many bits a trained GPT memorizes per parameter, after Morris et al. 2025: a ladder of random labels."""
