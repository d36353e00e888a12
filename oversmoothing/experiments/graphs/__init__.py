"""Attention replaced by a graph: the walk or GAT on synthetic graphs of set homophily."""
