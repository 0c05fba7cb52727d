"""snugdp: propose, test, release. Data-adaptive differential privacy with proofs beside the code."""
