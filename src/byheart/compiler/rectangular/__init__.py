"""Compile into a float Transformer whose sublayers are each as large as they need to be."""
