"""What arXiv 2401.04301 (first version) reports of CIFAR-100, per cent correct, mean and sd.

ViT-Ti, ViT-Ti+ and ViT-Ti- over runs whose number it does not state; as printed on its poster.
Other data at another size than the digits: a comparison, never a reproduction.
"""

# Table 2: by the share of the training images.
DATA_EFFICIENCY = {
    "vit": {1.0: (66.78, 0.1), 0.5: (56.38, 0.5), 0.1: (32.47, 0.9)},
    "vit+": {1.0: (64.34, 0.3), 0.5: (55.21, 0.5), 0.1: (28.67, 0.5)},
    "vit-": {1.0: (66.62, 0.3), 0.5: (56.58, 0.3), 0.1: (33.99, 0.4)},
}
# Table 3: by the intensity of the corruption, 0 to 5.
CORRUPTION = {
    "vit": (66.78, 61.59, 57.75, 53.12, 49.32, 39.17),
    "vit+": (64.34, 58.36, 53.83, 49.03, 45.15, 35.86),
    "vit-": (66.62, 61.62, 58.00, 53.56, 49.70, 40.07),
}
