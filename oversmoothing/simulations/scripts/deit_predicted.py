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
from PIL import Image

import oversmoothing

data = Path(os.environ.get("OVERSMOOTHING_DATA", "no data"))
if not (data / "deit-tiny-patch16-224").exists():
    print("OVERSMOOTHING_DATA names no folder with deit-tiny-patch16-224: nothing is drawn")
else:
    files = sorted((data / "photographs").glob("*.jpg"))[:4]
    images = [Image.open(path).convert("RGB") for path in files]
    report = oversmoothing.inspect(str(data / "deit-tiny-patch16-224"), images)
    print(report.summary())
    figure = plt.figure(report.plot())
    oversmoothing.show(figure, report.to_frame().to_dict("list"))
