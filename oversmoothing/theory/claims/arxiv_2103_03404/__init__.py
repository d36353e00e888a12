"""What arXiv 2103.03404 (Dong, Cordonnier, Loukas) claims of attention without skip connections.

The abstract was at hand, not the text: what goes beyond it is recalled, and our reading.
"""
