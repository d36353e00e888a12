"""The bridge: trained models as the theory sees them, predicted and observed smoothing."""
