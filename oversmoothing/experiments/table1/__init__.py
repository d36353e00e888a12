"""Table 1 of arXiv 2401.04301 in every reading: which eigenvalue dominates a layer, how often.

The paper counts "cases" without saying what a case is. Our readings, for any described model:
  E1        a case is an (image, layer, head): the head's own A and H_h with its exact zeros;
  E2        an (image, layer): A the mean over heads, H = sum_h H_h whole;
  E3        an (image, layer): the operator of all heads as it is, no Kronecker product (T7);
  E4        an (image, layer, j): each eigenvalue of the whole H alone against the mean A (T3b);
  E4 heads  an (image, layer, head, j): each eigenvalue of H_h alone against the head's own A.
"""
