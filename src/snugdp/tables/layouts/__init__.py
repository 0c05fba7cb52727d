"""How rows without a schema become vectors: matrices, boxes, points, and affine images of them."""
