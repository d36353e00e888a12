"""Corpora: what the project answered to fixed cases, so that an answer that moves is seen.

`take` records them and prints what moved; `comparing` says how far a number may move, and why.
"""
