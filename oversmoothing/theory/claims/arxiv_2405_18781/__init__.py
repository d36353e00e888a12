"""What arXiv 2405.18781 (Wu, Ajorlou, Wang, Jegelka, Jadbabaie) claims of masks and LayerNorm.

Statements follow the abstract; what goes beyond it is recalled, and our reading.
"""
