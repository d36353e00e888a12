"""What a block of a trained model does to small differences between tokens, once or for ever."""
