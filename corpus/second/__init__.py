"""The second corpus: the same claims in quite different papers, so that over-fitting to the first shows."""
