"""What persons with several rows contribute: caps, weights, and how far one of them moves a release."""
