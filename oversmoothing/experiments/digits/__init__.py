"""The models trained here: their data (digits, CIFAR), their ViT, its training and store."""
