"""The paper as printed, for the record and its figures. Nothing in this room is private: its names say so."""
