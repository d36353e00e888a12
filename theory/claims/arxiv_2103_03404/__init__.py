"""What arXiv 2103.03404 (Dong, Cordonnier, Loukas) claims of attention without skip connections.

The text was not at hand: what is attributed to it is recalled, so it is our reading throughout.
"""
