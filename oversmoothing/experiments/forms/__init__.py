"""Forms of the value-projection product H whose spectrum lies in a stated region while it trains.

Each form states what is guaranteed, for which weights and which attention, and by which theorem.
"""
