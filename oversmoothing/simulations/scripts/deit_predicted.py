"""
Predicted and observed on DeiT-Ti
=================================

The trained DeiT-Ti, layer by layer: what attention does to log HFC/LFC as the layer's own
operator says, and what the model does. You see that norms and FFN decide much of the course. It
needs the folder that OVERSMOOTHING_DATA names, with the model in deit-tiny-patch16-224.
"""

import os
from pathlib import Path

import matplotlib.pyplot as plt

import oversmoothing

folder = Path(os.environ.get("OVERSMOOTHING_DATA", "")) / "deit-tiny-patch16-224"
pictures = Path(os.environ.get("OVERSMOOTHING_DATA", "")) / "photographs"
if not folder.exists():
    print("OVERSMOOTHING_DATA names no folder with deit-tiny-patch16-224: nothing is drawn")
else:
    report = oversmoothing.inspect(folder, pictures, count=2)
    print(report.summary())
    figure = plt.figure(report.plot())
    oversmoothing.show(figure, report.to_frame().to_dict("list"))
