"""One layer as it is given: the case, its checks, pi, the quotient by consensus (T1)."""
