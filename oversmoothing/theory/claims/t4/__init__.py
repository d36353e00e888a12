"""The limits of the three notions of smoothing (T4), and the states at far depths behind them."""
