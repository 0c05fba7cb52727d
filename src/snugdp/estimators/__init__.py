"""The scikit-learn interface: parameters in the constructor, what was released in attributes that end in ``_``."""
