"""The scikit-learn face: parameters in the constructor, what was released in attributes that end in ``_``."""
