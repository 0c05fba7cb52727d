"""Private labels from an ensemble of teachers (PATE): propose the noise, test the agreement, release or refuse."""

from snugdp.pate.labelling import Labels, label, plan

__all__ = ["Labels", "label", "plan"]
