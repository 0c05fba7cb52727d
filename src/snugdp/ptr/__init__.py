"""The paper's framework: propose in public, test in private, release or refuse."""
