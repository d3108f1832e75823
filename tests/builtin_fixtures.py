"""Drawn heads for the tests of the built-in models: ellipses for scalp, skull, brain and ventricles."""

import hashlib
import io

import numpy as np
from PIL import Image

from neuralmedbench.models.protocol import Message, MessageImage

SIZE = 256
GREY = {  # scalp, skull, brain, fluid, cortex
    "FLAIR": (0.42, 0.05, 0.42, 0.05, 0.47),
    "T2w": (0.35, 0.05, 0.4, 0.95, 0.48),
    "T1w": (0.9, 0.05, 0.6, 0.2, 0.48),
    "ceT1w": (0.9, 0.05, 0.6, 0.2, 0.48),
    "dwi": (0.03, 0.02, 0.35, 0.1, 0.37),
    "ADC": (0.15, 0.03, 0.3, 0.95, 0.32),
    "CT": (0.3, 1.0, 0.42, 0.1, 0.45),
}


def ellipse(x: float, y: float, across: float, along: float) -> np.ndarray:
    """Mask of an ellipse; centre and half axes in pixels, x to the right, y downwards."""
    rows, columns = np.indices((SIZE, SIZE))
    return ((columns - x) / across) ** 2 + ((rows - y) / along) ** 2 <= 1


def head(sequence: str, spots: tuple[tuple[float, float, float, float], ...] = (), *, ventricle: float = 8) -> np.ndarray:
    """Draw an axial picture; a spot is (x, y, radius, grey), and grey replaces what lies there."""
    scalp, skull, brain, fluid, cortex = GREY[sequence]
    picture = np.full((SIZE, SIZE), 0.01)
    for mask, grey in (
        (ellipse(128, 128, 88, 108), scalp),
        (ellipse(128, 128, 82, 102), skull),
        (ellipse(128, 128, 76, 96), cortex),
        (ellipse(128, 128, 70, 90), brain),
        (ellipse(128 - ventricle - 3, 120, ventricle, 26), fluid),
        (ellipse(128 + ventricle + 3, 120, ventricle, 26), fluid),
        *((ellipse(x, y, radius, radius), grey) for x, y, radius, grey in spots),
    ):
        picture[mask] = grey
    return picture + np.random.default_rng(7).normal(0, 0.008, picture.shape)


def picture(array: np.ndarray, label: str = "Picture 1") -> MessageImage:
    """Turn grey values between 0 and 1 into a picture of a message."""
    buffer = io.BytesIO()
    Image.fromarray((np.clip(array, 0, 1) * 255).astype(np.uint8)).save(buffer, "PNG")
    png = buffer.getvalue()
    return MessageImage(label, png, hashlib.sha256(png).hexdigest())


FORM = """Answer in this form:
DIFFERENTIAL:
1. <most likely diagnosis>
2. <next diagnosis>
FINDINGS: <one paragraph>
RATIONALE: <one paragraph>
CONFIDENCE: <a number from 0 to 1>"""
LESION_FORM = """Answer in this form:
LESION: <type of lesion, or "no lesion">
LOCATION: <anatomical region>
SIDE: <left | right | bilateral | midline | none>
FINDINGS: <one paragraph>
CONFIDENCE: <a number from 0 to 1>"""
FIELDS_FORM = """Answer with one JSON object with exactly these keys; null means that you cannot tell:
"modality": "MRI" | "CT" | null"""


def ask(notes: str = "", images: tuple[MessageImage, ...] = (), form: str = FORM) -> tuple[Message, ...]:
    """Ask as the prompts of the pipeline do."""
    told = f"Clinical notes:\n{notes}\n\n" if notes else ""
    shown = f"{len(images)} pictures follow this text.\n\n" if images else ""
    question = "Describe this picture: its modality." if form == FIELDS_FORM else "Question: What is the most likely diagnosis?"
    return (Message("system", "You are a neurologist."), Message("user", f"{told}{shown}{question}\n\n{form}", images))
