"""Self-attention with 1/sqrt(d) scaling and scores that have no closed form, by seeded Monte Carlo.

Scores of independent keys and queries are Gaussian with covariance qk^2 I(K)_ab I(K)_cd. With any root C of I(K)
over the tokens of all documents, C C^T = I(K), one matrix Z of independent N(0, 1) a draw gives them for every
document at once: scores_x = qk C_x Z C_x^T. Because documents share their draws, each draw's Gram matrix is positive
semi-definite, and so is the mean.

Source: "Infinite attention" (Hron et al. 2020), theorem 2 and appendix; the shared draws are ours.
"""
