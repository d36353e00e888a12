"""One layer of softmax attention near consensus, as a power series in E with symbols (T9d)."""

import sympy as sp
from sympy.polys.rings import PolyElement, ring


def series(n: int, d: int) -> tuple[list[list[PolyElement]], list[list[PolyElement]]]:
    """E' W^-1 to third order in E, and E M E^T E/n, as polynomials in c, E, M (k = 1)."""
    free = (n - 1) * d
    names = [f"e{k}" for k in range(free)] + [f"c{j}" for j in range(d)]
    _, *gens = ring([*names, *(f"m{k}" for k in range(d * d))], sp.QQ)
    e = [list(gens[i * d : (i + 1) * d]) for i in range(n - 1)]
    e.append([-sum((row[j] for row in e[1:]), e[0][j]) for j in range(d)])
    c, m = gens[free : free + d], gens[free + d :]

    def cut(p: PolyElement, order: int = 3) -> PolyElement:
        """p without the terms of more than this degree in E."""
        kept = {k: v for k, v in p.items() if sum(k[:free]) <= order}
        result: PolyElement = p.ring.from_dict(kept)
        return result

    def form(x: list[PolyElement], y: list[PolyElement]) -> PolyElement:
        return sum((x[a] * m[a * d + b] * y[b] for a in range(d) for b in range(d)), 0 * gens[0])

    moved = []
    for i in range(n):
        logits = [form([x + y for x, y in zip(c, e[i], strict=True)], e[j]) for j in range(n)]
        weights = [cut(1 + z + cut(z**2) / 2 + cut(cut(z**2) * z) / 6) for z in map(cut, logits)]
        z = sum(weights[1:], weights[0]) / n - 1
        inverse = cut(1 - z + cut(z * z) - cut(cut(z * z) * z))
        moved.append(
            [
                cut(
                    cut(sum((w * row[j] for w, row in zip(weights, e, strict=True)), 0 * z))
                    * inverse
                )
                / n
                for j in range(d)
            ]
        )
    mean = [sum((row[j] for row in moved[1:]), moved[0][j]) / n for j in range(d)]
    centre = [[x - y for x, y in zip(row, mean, strict=True)] for row in moved]
    gram = [[form(x, y) for y in e] for x in e]
    leading = [
        [
            sum((g * row[j] for g, row in zip(line, e, strict=True)), 0 * gens[0]) / n
            for j in range(d)
        ]
        for line in gram
    ]
    return centre, leading
