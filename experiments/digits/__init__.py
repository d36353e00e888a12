"""The models trained here: digits, their ViT, its configuration, training and store."""
